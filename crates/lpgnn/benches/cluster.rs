//! Updates of a graph in parts, on as many processes as `mpirun` starts; and what they send each other.
//!
//! ```sh
//! cargo bench -p lpgnn --features mpi --bench cluster -- --write WORKLOAD --parts N FOLDER
//! mpirun -n 2 target/release/deps/cluster-… FOLDER [OPTION…]
//! ```
//!
//! | option | |
//! |---|---|
//! | `--threads N` | threads of a process [default: 1] |
//! | `--seconds S` | time [default: 3] |
//! | `--tanh` | `h` with tanh on its output |
//! | `--state N`, `--hidden N` | state dimension and hidden units [default: 32] |
//! | `--wait` | wait for rows as soon as they are asked for, for comparison |
//! | `--ping` | instead, what messages take: see [`support::wire`] |
//!
//! Prints a line of JSON.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "this is a program")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are small")]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use lpgnn::data::parts::{Parts, write_parts};
use lpgnn::data::{
    Categories, Dataset, DatasetParts, FeatureColumns, Overwrite, TargetColumn, partition,
};
use lpgnn::graph::{Alone, Communicator, Features, GraphBatch, Level, Targets};
use lpgnn::mpi::Mpi;
use lpgnn::run::RunConfig;
use serde_json::json;
use support::clock::peak_megabytes;
use support::counted::{Counted, Counts};
use support::updates::{Options, Updates, train};
use support::workload::Workload;

struct Arguments {
    folder: Option<String>,
    write: Option<String>,
    parts: usize,
    threads: usize,
    seconds: f64,
    state: usize,
    hidden: usize,
    wait: bool,
    ping: bool,
    options: Options,
}

fn main() {
    let arguments = Arguments::new();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(arguments.threads);
    pool.use_current_thread().build_global().unwrap();
    let folder = arguments.folder.as_deref().map(Path::new);
    if let Some(name) = &arguments.write {
        return write(name, arguments.parts, folder.expect("a folder"));
    }
    let ranks = Mpi::start().unwrap().unwrap_or_else(|| Arc::new(Alone));
    let line = if arguments.ping {
        support::wire::ping(&*ranks, arguments.seconds)
    } else {
        measure(&arguments, folder.expect("a folder of parts"), ranks.clone())
    };
    if ranks.rank() == 0 {
        println!("{line}");
    }
}

impl Arguments {
    fn new() -> Self {
        let mut found = Self {
            folder: None,
            write: None,
            parts: 64,
            threads: 1,
            seconds: 3.0,
            state: 32,
            hidden: 32,
            wait: false,
            ping: false,
            options: Options::default(),
        };
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().expect("a value after the option");
            match argument.as_str() {
                "--write" => found.write = Some(value()),
                "--parts" => found.parts = value().parse().unwrap(),
                "--threads" => found.threads = value().parse().unwrap(),
                "--seconds" => found.seconds = value().parse().unwrap(),
                "--state" => found.state = value().parse().unwrap(),
                "--hidden" => found.hidden = value().parse().unwrap(),
                "--tanh" => found.options.tanh = true,
                "--wait" => found.wait = true,
                "--ping" => found.ping = true,
                folder if !folder.starts_with('-') => found.folder = Some(argument),
                other => panic!("there is no option {other}"),
            }
        }
        found
    }
}

/// Writes a workload in parts that METIS has cut.
fn write(name: &str, parts: usize, folder: &Path) {
    let workload = Workload::generate(name);
    let (batch, nodes) = (&workload.batch, workload.batch.nodes());
    let lists = (0..nodes as u32).map(|v| (v, batch.neighbours().of(v as usize)));
    let edges =
        lists.flat_map(|(v, list)| list.iter().filter(move |&&u| u < v).map(move |&u| (u, v)));
    let edges: Vec<(u32, u32)> = edges.collect();
    let Features::Dense(values) = batch.node_features() else { panic!("features are dense") };
    let Targets::Classes { class, .. } = batch.node_targets() else { panic!("there are classes") };
    let names: Vec<String> = (0..values.cols()).map(|column| format!("x{column}")).collect();
    let classes = (0..workload.classes).map(|class| class.to_string()).collect();
    let dataset = Dataset::new(DatasetParts {
        name: name.to_owned(),
        node_starts: vec![0, nodes],
        edge_features: FeatureColumns::none(edges.len()),
        edges,
        node_features: FeatureColumns::none(nodes).with_values(names, values.clone()).unwrap(),
        node_targets: Some(TargetColumn::Classes(
            Categories::from_codes("y", classes, class.clone()).unwrap(),
        )),
        graph_targets: None,
        split: None,
    });
    let dataset = dataset.unwrap();
    drop(workload);
    let cut = partition(&dataset, parts).unwrap();
    let config = RunConfig::for_data(name, &dataset, &[]);
    let order = (&cut.order[..], &cut.starts[..]);
    write_parts(&dataset, order, (&config, None), folder, Overwrite::Replace).unwrap();
}

/// Updates, by the clock of the first rank, and what every rank has sent on the way.
fn measure(
    arguments: &Arguments,
    folder: &Path,
    ranks: Arc<dyn Communicator>,
) -> serde_json::Value {
    let counted = Arc::new(Counted::new(ranks, arguments.wait));
    let ranks: Arc<dyn Communicator> = counted.clone();
    let dataset = Parts::read(folder, ranks.rank(), ranks.ranks()).unwrap();
    let dataset = dataset.shared_by(&ranks).unwrap();
    let graph = dataset.in_parts().unwrap();
    let batch = graph.batch().clone();
    let workload = Workload {
        name: dataset.name().to_owned(),
        level: Level::Node,
        classes: batch.node_targets().width(),
        state: arguments.state,
        hidden: arguments.hidden,
        batch,
    };
    train(&workload, &arguments.options, None, |updates| {
        let per_block = warm_up(updates, &*ranks);
        let blocks = ((arguments.seconds / per_block.1) as usize).max(3);
        let before = counted.counts();
        let begin = Instant::now();
        let mut times = vec![];
        for _ in 0..blocks {
            let block = Instant::now();
            (0..per_block.0).for_each(|_| updates.step());
            times.push(1e3 * block.elapsed().as_secs_f64() / per_block.0 as f64);
        }
        let elapsed = begin.elapsed().as_secs_f64();
        times.sort_by(f64::total_cmp);
        let count = (blocks * per_block.0) as f64;
        let found = of_rank(&workload, &counted.counts().since(&before), count, elapsed);
        let all: Vec<Vec<f64>> = found.iter().map(|&(_, x)| ranks.all(x)).collect();
        let names = found.iter().map(|(name, _)| *name);
        let each: serde_json::Map<_, _> =
            names.zip(all).map(|(name, all)| (name.to_owned(), json!(all))).collect();
        json!({ "ranks": ranks.ranks(), "threads": arguments.threads, "ms": times, "weights": updates.weights(), "of_ranks": each })
    })
}

/// A few updates; how many make up a block of a tenth of a second, and its seconds, which all ranks agree on.
fn warm_up(updates: &mut Updates<'_>, ranks: &dyn Communicator) -> (usize, f64) {
    (0..2).for_each(|_| updates.step());
    let begin = Instant::now();
    updates.step();
    let once = ranks.all(begin.elapsed().as_secs_f64())[0];
    let count = ((0.1 / once) as usize).max(1);
    (count, count as f64 * once)
}

/// What a rank owns, and what it has sent and waited for in an update.
fn of_rank(
    workload: &Workload,
    counts: &Counts,
    updates: f64,
    elapsed: f64,
) -> Vec<(&'static str, f64)> {
    let batch: &GraphBatch<f32> = &workload.batch;
    let topology = batch.topology();
    vec![
        ("nodes", topology.nodes() as f64),
        ("pairs", batch.neighbours().len() as f64),
        (
            "interior",
            topology.ghosts().interior.iter().map(ExactSizeIterator::len).sum::<usize>() as f64,
        ),
        ("ghosts", (topology.rows() - topology.nodes()) as f64),
        ("row_bytes", counts.row_bytes as f64 / updates),
        ("row_messages", counts.row_messages as f64 / updates),
        ("other_bytes", counts.other_bytes as f64 / updates),
        ("other_messages", counts.other_messages as f64 / updates),
        ("row_share", counts.row_seconds / elapsed),
        ("other_share", counts.other_seconds / elapsed),
        ("peak_mb", peak_megabytes() as f64),
    ]
}
