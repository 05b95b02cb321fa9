//! What users wait for: epochs with their evaluations, and predictions.
//!
//! ```sh
//! cargo bench -p lpgnn --bench training -- DATA [OPTION…]
//! ```
//!
//! | option | |
//! |---|---|
//! | `--threads N` | threads [default: 1] |
//! | `--epochs N` | epochs per turn [default: 5] |
//! | `--set PATH=VALUE` | a setting; may be given more than once |
//! | `--categories N` | generated graphs with that many categories of nodes, in place of DATA |
//! | `--serve` | wait for orders: see `benchmarks/README.md` |
//!
//! The model, its solver and all else are the defaults for the data, as in `lpgnn train DATA`.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "this is a program")]

mod support;

use std::cell::LazyCell;
use std::io::BufRead;

use serde_json::json;
use support::clock::{median, peak_megabytes};
use support::training::Training;

#[derive(Default)]
struct Arguments {
    data: Option<String>,
    settings: Vec<String>,
    threads: Option<usize>,
    epochs: Option<usize>,
    categories: Option<u32>,
    serve: bool,
}

fn main() {
    let arguments = Arguments::new();
    let threads = arguments.threads.unwrap_or(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread();
    pool.build_global().unwrap();
    let training = match (arguments.categories, &arguments.data) {
        (Some(categories), _) => Training::generated(categories, &arguments.settings),
        (None, Some(data)) => Training::read(data.as_ref(), &arguments.settings),
        (None, None) => panic!("a folder with a data set is expected, or --categories"),
    };
    let epochs = arguments.epochs.unwrap_or(5);
    if arguments.serve {
        return serve(&training);
    }
    let (plain, evaluated) = (training.epochs(epochs, false), training.epochs(epochs, true));
    let both = median(&evaluated);
    println!(
        "epoch {:.1} ms (least {:.1}), with evaluation {both:.1} ms (least {:.1}); an evaluation is {:.2} of an epoch",
        median(&plain),
        plain[0],
        evaluated[0],
        both / median(&plain) - 1.0
    );
    let model = training.model();
    let rate = training.predictions_per_second(&model, 1.0);
    let latencies = training.latencies(&model, 2000);
    println!(
        "{rate:.0} graphs/s; one graph {:.3} ms (99 of 100 within {:.3} ms); {} MB",
        median(&latencies),
        latencies[latencies.len() * 99 / 100],
        peak_megabytes()
    );
}

impl Arguments {
    fn new() -> Self {
        let mut found = Self::default();
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().expect("a value after the option");
            match argument.as_str() {
                "--threads" => found.threads = Some(value().parse().unwrap()),
                "--epochs" => found.epochs = Some(value().parse().unwrap()),
                "--set" => found.settings.push(value()),
                "--categories" => found.categories = Some(value().parse().unwrap()),
                "--serve" => found.serve = true,
                name if !name.starts_with('-') => found.data = Some(argument),
                other => panic!("there is no option {other}"),
            }
        }
        found
    }
}

/// Takes orders, one a line, and answers each with a line of JSON; until there are no more.
fn serve(training: &Training) {
    let model = LazyCell::new(|| training.model());
    println!("{}", json!({ "version": env!("CARGO_PKG_VERSION"), "graphs": training.graphs() }));
    for order in std::io::stdin().lock().lines() {
        let order = order.unwrap();
        let answer = match order.split_whitespace().collect::<Vec<_>>()[..] {
            ["epochs", count] => {
                json!({ "ms": training.epochs(count.parse().unwrap(), false) })
            }
            ["evaluated", count] => {
                json!({ "ms": training.epochs(count.parse().unwrap(), true) })
            }
            ["predict", seconds] => {
                let seconds = seconds.parse().unwrap();
                json!({ "graphs_per_second": training.predictions_per_second(&model, seconds) })
            }
            ["latency", count] => {
                json!({ "ms": training.latencies(&model, count.parse().unwrap()) })
            }
            _ => panic!("{order} is not an order"),
        };
        println!("{answer}");
    }
}
