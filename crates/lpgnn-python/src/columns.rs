use lpgnn::data::{Dataset, FeatureColumns, TargetColumn};

use crate::selection::known;

/// The argument of `from_arrays` that a column belongs to, its name, and what it is understood as.
pub(crate) type Description = (&'static str, String, String);

/// Values of a column that are listed, and numbers that are listed one by one.
const LISTED: usize = 8;

/// A line for every column and target.
pub(crate) fn describe(data: &Dataset) -> Vec<Description> {
    let mut lines = vec![];
    features("x", data.node_features(), &mut lines);
    features("edge_attr", data.edge_features(), &mut lines);
    target("y", data.node_targets(), &mut lines);
    target("graph_y", data.graph_targets(), &mut lines);
    if let Some(weights) = data.weights() {
        let (least, most) = (weights.as_slice().iter())
            .fold((f32::INFINITY, 0_f32), |(least, most), &w| (least.min(w), most.max(w)));
        let text = format!("sample weights of {}, {least} to {most}", weights.level().plural());
        lines.push(("weight", String::new(), text));
    }
    lines
}

fn features(place: &'static str, features: &FeatureColumns, lines: &mut Vec<Description>) {
    for column in features.categories() {
        let text = format!("category, {}", values(column.values(), "value", "values"));
        lines.push((place, column.name().to_owned(), text));
    }
    let names = features.value_names();
    match (names.iter().next(), names.iter().last()) {
        (Some(first), Some(last)) if names.len() > LISTED => {
            lines.push((place, format!("{first} … {last}"), format!("{} numbers", names.len())));
        }
        _ => lines.extend(names.iter().map(|name| (place, name.into(), "number".to_owned()))),
    }
    if let Some(sparse) = features.sparse() {
        lines.push((place, "(sparse)".to_owned(), format!("{} numbers", sparse.width())));
    }
}

fn target(place: &'static str, target: Option<&TargetColumn>, lines: &mut Vec<Description>) {
    let Some(target) = target else { return };
    let (known, rows) = known(target);
    let unknown =
        if known < rows { format!("; {} of {rows} unknown", rows - known) } else { String::new() };
    match target {
        TargetColumn::Classes(column) => {
            let text = format!("{}{unknown}", values(column.values(), "class", "classes"));
            lines.push((place, column.name().to_owned(), text));
        }
        TargetColumn::Values { names, values } => {
            for (column, name) in names.iter().enumerate() {
                let finite = (0..rows).filter(|&row| values.row(row)[column].is_finite()).count();
                let unknown = match rows - finite {
                    0 => String::new(),
                    unknown => format!("; {unknown} of {rows} unknown"),
                };
                lines.push((place, name.clone(), format!("number to predict{unknown}")));
            }
        }
    }
}

/// As in `3 values: C, N, O`.
fn values(values: &[String], one: &str, many: &str) -> String {
    let listed: Vec<&str> = values.iter().take(LISTED).map(String::as_str).collect();
    let more = if values.len() > LISTED { ", …" } else { "" };
    let what = if values.len() == 1 { one } else { many };
    format!("{} {what}: {}{more}", values.len(), listed.join(", "))
}
