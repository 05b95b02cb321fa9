use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use lpgnn::Matrix;
use lpgnn::data::parts::GraphInParts;
use lpgnn::run::write_file;

use super::model::{ModelArguments, Used};
use super::parts::{Lines, Sink};
use super::predict::cell;
use crate::console::{Console, print_data};
use crate::ranks;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,

    /// Output file: .npy for an array of nodes × components, otherwise CSV [default: CSV on stdout].
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Overwrite FILE if it exists.
    #[arg(long, requires = "out")]
    force: bool,

    /// The layer, counted from 1 [default: the last layer].
    #[arg(long, value_name = "N")]
    layer: Option<usize>,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    if let Some(path) = arguments.out.as_ref().filter(|path| path.exists() && !arguments.force) {
        bail!("{} exists; --force overwrites it", path.display());
    }
    let used = arguments.model.apply_keeping_states(console)?;
    let layers = used.predictions.fixed_point.states.len();
    let layer = arguments.layer.unwrap_or(layers);
    if !(1..=layers).contains(&layer) {
        bail!(lpgnn::Error::Option {
            option: "--layer",
            value: layer.to_string(),
            expected: format!("the model has {layers} layers, counted from 1"),
        });
    }
    if let Some(graph) = used.dataset.in_parts() {
        return of_parts(arguments, &used, graph, layer - 1, console);
    }
    let bytes = match &arguments.out {
        Some(path) if path.extension().is_some_and(|extension| extension == "npy") => {
            npy(&used, layer - 1)?
        }
        _ => csv(&used, layer - 1)?.into_bytes(),
    };
    let written = match &arguments.out {
        Some(path) => {
            if !ranks::follows() {
                write_file(path, &bytes)?;
            }
            let states = &used.predictions.fixed_point.states[layer - 1];
            console.say(format_args!(
                "wrote {}: {} nodes × {} components",
                path.display(),
                states.rows(),
                states.cols()
            ));
            Ok(())
        }
        None => print_data(&String::from_utf8(bytes).context("CSV is text")?),
    };
    written.and_then(|()| check_finite(&used.predictions.fixed_point.states[layer - 1]))
}

/// The states of a graph in parts, in the order of the data set.
fn of_parts(
    arguments: &Arguments,
    used: &Used,
    graph: &GraphInParts,
    layer: usize,
    console: &Console,
) -> anyhow::Result<()> {
    let states = &used.predictions.fixed_point.states[layer];
    let (nodes, width) = (graph.info().nodes(), states.cols());
    let out = arguments.out.as_deref();
    let is_npy = out.and_then(Path::extension).is_some_and(|extension| extension == "npy");
    let header = if is_npy { npy_header(nodes, width)? } else { csv_header(width).into_bytes() };
    let sink = out.map_or(Sink::Stdout, |path| Sink::File(path.to_owned()));
    let mut lines = Lines::new(graph, sink, &header)?;
    graph.in_original_order(states, &mut |node, state| {
        lines.write(node, |name, text| {
            if is_npy {
                return text.extend(state.iter().flat_map(|x| x.to_le_bytes()));
            }
            let cells = state.iter().map(|x| format!(",{x}"));
            let line = format!("0,{}{}\n", cell(&name), cells.collect::<String>());
            text.extend(line.as_bytes());
        });
    });
    lines.finish()?;
    if let Some(path) = out {
        console.say(format_args!("wrote {}: {nodes} nodes × {width} components", path.display()));
    }
    ranks::agree(check_finite(states))
}

/// States that are not finite are written as they are, but a script should notice.
fn check_finite(states: &Matrix<f32>) -> anyhow::Result<()> {
    let finite = |&row: &usize| states.row(row).iter().all(|x| x.is_finite());
    let (nodes, count) = (states.rows(), (0..states.rows()).filter(finite).count());
    if count < nodes {
        bail!("the states of {} of {nodes} nodes are infinite or not a number", nodes - count);
    }
    Ok(())
}

fn csv_header(width: usize) -> String {
    let components = (0..width).map(|component| format!("x{component}"));
    let names = ["graph".to_owned(), "node".to_owned()].into_iter().chain(components);
    names.collect::<Vec<_>>().join(",") + "\n"
}

fn csv(used: &Used, layer: usize) -> Result<String, std::fmt::Error> {
    let states = &used.predictions.fixed_point.states[layer];
    let mut text = csv_header(states.cols());
    for row in 0..states.rows() {
        let graph = used.graph(used.place(row).0);
        write!(text, "{},{}", cell(&graph), cell(&used.node(row)))?;
        for x in states.row(row) {
            write!(text, ",{x}")?;
        }
        text.push('\n');
    }
    Ok(text)
}

/// Version 1.0 of numpy's format: single precision, little-endian, row-major.
fn npy(used: &Used, layer: usize) -> anyhow::Result<Vec<u8>> {
    let states = &used.predictions.fixed_point.states[layer];
    let mut bytes = npy_header(states.rows(), states.cols())?;
    bytes.extend(states.as_slice().iter().flat_map(|x| x.to_le_bytes()));
    Ok(bytes)
}

fn npy_header(rows: usize, cols: usize) -> anyhow::Result<Vec<u8>> {
    let shape = format!("({rows}, {cols})");
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    // The header ends with a newline and is padded to a multiple of 64 bytes.
    let padding = 64 - (10 + header.len() + 1) % 64;
    header.extend(std::iter::repeat_n(' ', padding % 64));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.write_all(&u16::try_from(header.len()).context("a header is short")?.to_le_bytes())?;
    bytes.extend(header.as_bytes());
    Ok(bytes)
}
