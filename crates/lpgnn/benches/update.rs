//! Whole updates: forward, all gradients, the three optimiser steps.
//!
//! ```sh
//! cargo bench -p lpgnn --bench update -- [WORKLOAD…] [OPTION…]
//! ```
//!
//! | option | |
//! |---|---|
//! | `--threads N` | threads [default: 1] |
//! | `--seconds S` | time per workload [default: 3] |
//! | `--tanh` | `h` with tanh on its output |
//! | `--solver KIND` | `bdmm`, `one-shot`, `implicit` or `unrolled-T` |
//! | `--transition KIND` | transition [default: `gnn-sum`] |
//! | `--every` | every solver with every transition |
//! | `--bound` | the least time this machine could need, for `gnn-sum` by `bdmm` |
//! | `--json` | a line of JSON per workload |
//! | `--data PATH` | a data set, instead of a generated workload; may be given more than once |
//! | `--raw DIR` | workloads from raw arrays in `DIR/NAME` |
//! | `--write DIR` | write the workloads as raw arrays, and do nothing else |
//! | `--start DIR` | the point to start from, as raw arrays |
//! | `--serve` | wait for orders: see `benchmarks/README.md` |
//!
//! The variable `LPGNN_SIMD` (`portable`, `neon`, `avx2`, `avx512`) limits the instructions that loops use.
//!
//! Workloads are those of [`Workload::generate`] [default: `a b b_l c`].
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "this is a program")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are small")]

mod support;

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;
use support::clock::{blocks, median, peak_megabytes};
use support::machine::Machine;
use support::roofline::Work;
use support::updates::{Options, evaluate, train};
use support::workload::Workload;

#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "as many as there are switches")]
struct Arguments {
    names: Vec<String>,
    data: Vec<PathBuf>,
    options: Options,
    threads: Option<usize>,
    seconds: Option<f64>,
    every: bool,
    bound: bool,
    json: bool,
    raw: Option<PathBuf>,
    write: Option<PathBuf>,
    start: Option<PathBuf>,
    serve: bool,
}

fn main() {
    let mut arguments = Arguments::new();
    let threads = arguments.threads.unwrap_or(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread();
    pool.build_global().unwrap();
    let machine = arguments.bound.then(Machine::measure);
    if arguments.names.is_empty() && arguments.data.is_empty() {
        arguments.names = ["a", "b", "b_l", "c"].map(str::to_owned).to_vec();
    }
    let generated = arguments.names.iter().map(|name| match &arguments.raw {
        Some(folder) => Workload::read(folder, name),
        None => Workload::generate(name),
    });
    for workload in generated.chain(arguments.data.iter().map(|path| Workload::real(path))) {
        if let Some(folder) = &arguments.write {
            workload.write(folder);
        } else if arguments.serve {
            serve(&workload, &arguments);
        } else if arguments.every {
            every(&workload, &arguments);
        } else {
            report(&workload, &arguments, &arguments.options, machine);
        }
    }
}

impl Arguments {
    fn new() -> Self {
        let mut found = Self::default();
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().expect("a value after the option");
            match argument.as_str() {
                "--threads" => found.threads = Some(value().parse().unwrap()),
                "--seconds" => found.seconds = Some(value().parse().unwrap()),
                "--tanh" => found.options.tanh = true,
                "--solver" => found.options.solver = value(),
                "--transition" => found.options.transition = value(),
                "--every" => found.every = true,
                "--bound" => found.bound = true,
                "--json" => found.json = true,
                "--data" => found.data.push(value().into()),
                "--raw" => found.raw = Some(value().into()),
                "--write" => found.write = Some(value().into()),
                "--start" => found.start = Some(value().into()),
                "--serve" => found.serve = true,
                name if !name.starts_with('-') => found.names.push(argument),
                other => panic!("there is no option {other}"),
            }
        }
        found
    }
}

/// Times a workload, and says what came out.
fn report(workload: &Workload, arguments: &Arguments, options: &Options, machine: Option<Machine>) {
    let seconds = arguments.seconds.unwrap_or(3.0);
    let (first, times) = train(workload, options, arguments.start.as_deref(), |updates| {
        let begin = Instant::now();
        updates.step();
        let first = 1e3 * begin.elapsed().as_secs_f64();
        for _ in 0..((200.0 / first) as usize).min(200) {
            updates.step();
        }
        (first, blocks(seconds, || updates.step()))
    });
    let (ms, least, most) = (median(&times), times[0], times[times.len() - 1]);
    let bound = machine.map(|machine| Work::of(workload, options.tanh).bound(machine));
    let output = if options.tanh { "tanh" } else { "linear" };
    let transition = &options.transition;
    if arguments.json {
        let line = json!({
            "workload": workload.name, "simd": lpgnn::kernels::instruction_set(), "threads": rayon::current_num_threads(), "output": output,
            "solver": options.solver, "transition": transition,
            "nodes": workload.batch.nodes(), "edges": workload.batch.neighbours().len(),
            "ms": ms, "least": least, "most": most, "first_ms": first, "bound_ms": bound,
            "peak_mb": peak_megabytes(),
        });
        println!("{line}");
    } else {
        // Of several workloads in one process, or beside the limits of the machine, memory says nothing.
        let alone = arguments.names.len() + arguments.data.len() == 1 && machine.is_none();
        let memory = if alone { format!(", {} MB", peak_megabytes()) } else { String::new() };
        let bound = bound.map_or(String::new(), |bound| {
            format!("   bound {bound:.4} ms, {:.1} times", ms / bound)
        });
        let (name, solver) = (&workload.name, &options.solver);
        println!(
            "{name:12} {solver:10} {transition:14} {output:6} {ms:10.4} ms ({least:.4} to {most:.4}){memory}{bound}"
        );
    }
}

/// Times every solver with every transition.
fn every(workload: &Workload, arguments: &Arguments) {
    for transition in
        ["gnn-sum", "gnn-mean", "gnn-normalized", "gin", "gcn-mean", "gcn", "sage-max"]
    {
        for solver in ["bdmm", "one-shot", "unrolled-5"] {
            let options = Options {
                solver: solver.into(),
                transition: transition.into(),
                ..arguments.options.clone()
            };
            report(workload, arguments, &options, None);
        }
    }
}

/// Takes orders, one a line, and answers each with a line of JSON; until there are no more.
fn serve(workload: &Workload, arguments: &Arguments) {
    let options = &arguments.options;
    train(workload, options, arguments.start.as_deref(), |updates| {
        updates.step();
        let work = Work::of(workload, options.tanh);
        println!(
            "{}",
            json!({ "flops": work.flops, "tanhs": work.tanhs, "bytes": work.bytes,
                    "nodes": workload.batch.nodes(), "edges": workload.batch.neighbours().len(),
                    "version": env!("CARGO_PKG_VERSION") })
        );
        for order in std::io::stdin().lock().lines() {
            let order = order.unwrap();
            let answer = match order.split_whitespace().collect::<Vec<_>>()[..] {
                ["run", seconds] => {
                    let times = blocks(seconds.parse().unwrap(), || updates.step());
                    json!({ "ms": times, "peak_mb": peak_megabytes() })
                }
                ["evaluate", constraint, from, to] => {
                    let (from, to) = (Path::new(from), Path::new(to));
                    json!({ "loss": evaluate(workload, options, constraint, from, to) })
                }
                _ => panic!("{order} is not an order"),
            };
            println!("{answer}");
        }
    });
}
