use std::fmt::Write;

use clap::{Args, ValueEnum};
use lpgnn::data::parts::GraphInParts;
use lpgnn::evaluate::probabilities;
use lpgnn::graph::Level;
use serde_json::{Map, Value, json};

use super::model::{ModelArguments, Used};
use super::parts::{Lines, Sink};
use crate::console::{Console, print, print_data};
use crate::ranks;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,

    /// Output format.
    #[arg(long = "as", value_name = "FORMAT", value_enum, default_value_t = Shape::Csv)]
    shape: Shape,

    /// Add a column with a bound on the distance of the states of a graph from their fixed point
    #[arg(long)]
    distance: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// Comma-separated values with a header.
    Csv,
    /// A JSON object per line.
    Jsonl,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let used = arguments.model.apply(false, console)?;
    let names = Columns::new(&used, arguments.distance)?;
    if let Some(graph) = used.dataset.in_parts() {
        return of_parts(arguments.shape, &used, graph, &names);
    }
    match arguments.shape {
        Shape::Csv => {
            let mut text = names.header();
            for row in 0..used.predictions.outputs.rows() {
                let cells: Vec<String> = names.row(&used, row).iter().map(cell).collect();
                writeln!(text, "{}", cells.join(","))?;
            }
            print_data(&text)?;
        }
        Shape::Jsonl => {
            let mut text = String::new();
            for row in 0..used.predictions.outputs.rows() {
                let cells = names.names.iter().cloned().zip(names.row(&used, row));
                writeln!(text, "{}", Value::Object(cells.collect::<Map<_, _>>()))?;
            }
            print(&text)?;
        }
    }
    // Every row is written, and those without a prediction are empty; but a script should notice.
    Ok(used.predictions.check_finite()?)
}

/// The predictions of a graph in parts, in the order of the data set.
fn of_parts(
    shape: Shape,
    used: &Used,
    graph: &GraphInParts,
    columns: &Columns,
) -> anyhow::Result<()> {
    let header = match shape {
        Shape::Csv => columns.header(),
        Shape::Jsonl => String::new(),
    };
    let mut lines = Lines::new(graph, Sink::Stdout, header.as_bytes())?;
    graph.in_original_order(&used.predictions.outputs, &mut |node, outputs| {
        lines.write(node, |name, text| {
            let cells = columns.cells(used, 0, Some(name), outputs);
            let line = match shape {
                Shape::Csv => cells.iter().map(cell).collect::<Vec<_>>().join(","),
                Shape::Jsonl => {
                    let cells = columns.names.iter().cloned().zip(cells);
                    Value::Object(cells.collect::<Map<_, _>>()).to_string()
                }
            };
            text.extend(line.as_bytes());
            text.push(b'\n');
        });
    });
    lines.finish()?;
    ranks::agree(used.predictions.check_finite())
}

/// The columns of the output.
struct Columns {
    names: Vec<String>,
    /// How far the states of every graph are from the fixed point at most, if that is asked for.
    distances: Option<Vec<f64>>,
}

impl Columns {
    fn new(used: &Used, with_distances: bool) -> Result<Self, lpgnn::Error> {
        let mut names = vec!["graph".to_owned()];
        if used.model.task == Level::Node {
            names.push("node".into());
        }
        match used.model.classes() {
            Some(classes) => {
                names.push("class".into());
                names.extend(classes.iter().map(|class| format!("p({class})")));
            }
            None => names.extend(used.model.value_names.iter().cloned()),
        }
        names.extend(["converged".into(), "residual".into()]);
        names.extend(with_distances.then(|| "distance".into()));
        let distances = with_distances.then(|| used.model.distances(&used.predictions));
        Ok(Self { names, distances: distances.transpose()? })
    }

    fn header(&self) -> String {
        let names: Vec<String> = self.names.iter().map(|name| quoted(name)).collect();
        names.join(",") + "\n"
    }

    fn row(&self, used: &Used, row: usize) -> Vec<Value> {
        let outputs = used.predictions.outputs.row(row);
        match used.model.task {
            Level::Graph => self.cells(used, row, None, outputs),
            Level::Node => self.cells(used, used.place(row).0, Some(used.node(row)), outputs),
        }
    }

    /// Of a graph, or of a node of it.
    fn cells(&self, used: &Used, graph: usize, node: Option<Value>, outputs: &[f32]) -> Vec<Value> {
        let mut cells = Vec::with_capacity(self.names.len());
        cells.push(used.graph(graph));
        cells.extend(node);
        match used.model.classes() {
            Some(classes) => {
                let shares = probabilities(outputs);
                let best = (0..shares.len()).rev().max_by(|&a, &b| shares[a].total_cmp(&shares[b]));
                let best = best.filter(|_| outputs.iter().all(|x| x.is_finite()));
                cells.push(json!(best.map(|best| &classes[best])));
                cells.extend(shares.iter().map(|share| json!((share * 1e6).round() / 1e6)));
            }
            None => cells.extend(outputs.iter().map(|value| json!(shortest(*value)))),
        }
        let converged = &used.predictions.fixed_point;
        cells.push(json!(converged.converged[graph]));
        cells.push(json!(rounded(converged.residuals[graph])));
        // Nothing is known where f_a may not contract.
        let known = |distance: f64| distance.is_finite().then(|| rounded_up(distance));
        cells.extend(self.distances.as_ref().map(|all| json!(known(all[graph]))));
        cells
    }
}

/// To three significant digits, enough to judge how far to trust a row.
fn rounded(residual: f64) -> f64 {
    format!("{residual:.2e}").parse().unwrap_or(residual)
}

/// A bound to three significant digits, which stays one.
fn rounded_up(bound: f64) -> f64 {
    let near = rounded(bound);
    if near >= bound { near } else { rounded(bound * 1.01) }
}

/// The shortest decimal that identifies a single-precision number.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// A value in a line of CSV.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

/// Quoted if CSV requires it.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
