use std::fmt::Write;

use clap::{Args, ValueEnum};
use lpgnn::evaluate::probabilities;
use lpgnn::graph::Level;
use serde_json::{Map, Value, json};

use super::model::{ModelArguments, Used};
use crate::console::{Console, print, print_data};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,

    /// Output format.
    #[arg(long = "as", value_name = "FORMAT", value_enum, default_value_t = Shape::Csv)]
    shape: Shape,
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
    let names = Columns::new(&used);
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

/// The columns of the output.
struct Columns {
    names: Vec<String>,
}

impl Columns {
    fn new(used: &Used) -> Self {
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
        Self { names }
    }

    fn header(&self) -> String {
        let names: Vec<String> = self.names.iter().map(|name| quoted(name)).collect();
        names.join(",") + "\n"
    }

    fn row(&self, used: &Used, row: usize) -> Vec<Value> {
        let mut cells = Vec::with_capacity(self.names.len());
        let graph = match used.model.task {
            Level::Graph => row,
            Level::Node => used.place(row).0,
        };
        cells.push(used.graph(graph));
        if used.model.task == Level::Node {
            cells.push(used.node(row));
        }
        let outputs = used.predictions.outputs.row(row);
        match used.model.classes() {
            Some(classes) => {
                let shares = probabilities(outputs);
                let best = (0..shares.len()).rev().max_by(|&a, &b| shares[a].total_cmp(&shares[b]));
                let best = best.filter(|_| used.predictions.is_finite(row));
                cells.push(json!(best.map(|best| &classes[best])));
                cells.extend(shares.iter().map(|share| json!((share * 1e6).round() / 1e6)));
            }
            None => cells.extend(outputs.iter().map(|value| json!(shortest(*value)))),
        }
        let converged = &used.predictions.fixed_point;
        cells.push(json!(converged.converged[graph]));
        cells.push(json!(rounded(converged.residuals[graph])));
        cells
    }
}

/// To three significant digits, enough to judge how far to trust a row.
fn rounded(residual: f64) -> f64 {
    format!("{residual:.2e}").parse().unwrap_or(residual)
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
