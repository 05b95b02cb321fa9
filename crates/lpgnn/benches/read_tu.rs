//! How fast TU text is read, on one core, and how much memory that takes.
//!
//! `cargo bench --bench read_tu -- 500` makes a set of 500 MB in a temporary folder, or of as many
//! as told, and reads it. The aims are 100 MB/s, and memory below 4 times the arrays that result.

#![allow(clippy::print_stdout, reason = "this is a program")]

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use lpgnn::data::{Dataset, FeatureColumns, ReadOptions, TargetColumn, read};
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo itself passes `--bench`.
    let megabytes = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let megabytes: u64 = megabytes.unwrap_or(500);
    let folder = tempfile::tempdir()?;
    let bytes = generate(folder.path(), megabytes * 1_000_000)?;

    let before = reset_peak()?;
    let (start, processor) = (Instant::now(), processor_seconds()?);
    let dataset = read(folder.path(), &ReadOptions::default())?;
    let seconds = start.elapsed().as_secs_f64();
    let processor = processor_seconds()? - processor;
    let growth = peak()?.saturating_sub(before);

    let arrays = arrays(&dataset);
    println!(
        "{} graphs, {} nodes, {} edges",
        dataset.graphs(),
        dataset.nodes(),
        dataset.edges().len()
    );
    let size = bytes as f64 / 1e6;
    println!("{size:.0} MB in {seconds:.2} s: {:.0} MB/s", size / seconds);
    // Less than that, when other programs request the processor too.
    println!("{processor:.2} s of it on the processor: {:.0} MB/s", size / processor);
    let times = growth as f64 / arrays as f64;
    println!(
        "{:.0} MB at the peak for arrays of {:.0} MB: {times:.2} times as much",
        growth as f64 / 1e6,
        arrays as f64 / 1e6
    );
    Ok(())
}

/// Writes a set of about `size` bytes that looks like the molecules of the TU collection: sparse
/// graphs of 10 to 50 nodes, edges both ways and in no order, a label per node and edge, two real
/// values per node, a class per graph.
fn generate(folder: &Path, size: u64) -> io::Result<u64> {
    let create = |file: &str| Ok::<_, io::Error>(BufWriter::new(File::create(folder.join(file))?));
    let mut adjacency = create("BIG_A.txt")?;
    let mut edge_features = create("BIG_edge_labels.txt")?;
    let mut indicator = create("BIG_graph_indicator.txt")?;
    let mut node_labels = create("BIG_node_labels.txt")?;
    let mut attributes = create("BIG_node_attributes.txt")?;
    let mut classes = create("BIG_graph_labels.txt")?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut first, mut graph, mut written) = (1_usize, 0_usize, 0_u64);
    let mut edges = vec![];
    while written < size {
        graph += 1;
        let nodes = random.random_range(10..=50);
        edges.clear();
        for node in 0..nodes {
            // A tree, and half as many ties again.
            let mut tie = |u: usize, v: usize| edges.extend([(u, v), (v, u)]);
            if node > 0 {
                tie(node, random.random_range(0..node));
            }
            if random.random_bool(0.5) {
                tie(node, random.random_range(0..nodes));
            }
            let line = format!("{graph}\n");
            indicator.write_all(line.as_bytes())?;
            let label = format!("{}\n", random.random_range(0..37));
            node_labels.write_all(label.as_bytes())?;
            let (x, y) = (random.random_range(-5.0..5.0), random.random_range(0.0..100.0));
            let values = format!("{x:.6}, {y:.6}\n");
            attributes.write_all(values.as_bytes())?;
            written += (line.len() + label.len() + values.len()) as u64;
        }
        edges.shuffle(&mut random);
        for (u, v) in &edges {
            let line = format!("{}, {}\n", first + u, first + v);
            adjacency.write_all(line.as_bytes())?;
            let label = format!("{}\n", (u + v) % 4);
            edge_features.write_all(label.as_bytes())?;
            written += (line.len() + label.len()) as u64;
        }
        writeln!(classes, "{}", graph % 2)?;
        written += 2;
        first += nodes;
    }
    for mut file in [adjacency, edge_features, indicator, node_labels, attributes, classes] {
        file.flush()?;
    }
    Ok(written)
}

/// The bytes of all arrays of a data set.
fn arrays(dataset: &Dataset) -> usize {
    let features = |features: &FeatureColumns| {
        let codes: usize = features.categories().iter().map(|c| 4 * c.codes().len()).sum();
        codes + 4 * features.values().as_slice().len()
    };
    let targets = |targets: Option<&TargetColumn>| 4 * targets.map_or(0, TargetColumn::rows);
    8 * dataset.node_starts().len()
        + 8 * dataset.edges().len()
        + features(dataset.node_features())
        + features(dataset.edge_features())
        + targets(dataset.graph_targets())
}

/// How long this thread has been on a processor.
fn processor_seconds() -> io::Result<f64> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = times.split_whitespace().next().and_then(|time| time.parse::<f64>().ok());
    nanoseconds.map(|time| time / 1e9).ok_or_else(|| io::Error::other("no time is told"))
}

/// Sets the peak of this process's memory to its present memory, and returns that, in bytes.
fn reset_peak() -> io::Result<usize> {
    std::fs::write("/proc/self/clear_refs", "5")?;
    status("VmRSS:")
}

fn peak() -> io::Result<usize> {
    status("VmHWM:")
}

/// A size that Linux tells of this process, in bytes.
fn status(key: &str) -> io::Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    number.map(|kilobytes| 1024 * kilobytes).ok_or_else(|| io::Error::other("no such line"))
}
