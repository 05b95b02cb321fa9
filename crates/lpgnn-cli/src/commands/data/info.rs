use std::fmt::{Display, Write};

use clap::Args;
use lpgnn::data::{
    Cache, Encoding, FeatureCounts, Format, ReadOptions, Source, Spread, Statistics, TargetCounts,
};
use lpgnn::run::RunConfig;

use super::read_format;
use crate::console::{print, print_json, visible_line};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file or folder, or the name of a built-in or downloaded data set.
    #[arg(value_name = "PATH|NAME")]
    data: String,

    /// The format of DATA [default: recognised by content].
    #[arg(long, value_parser = read_format())]
    format: Option<Format>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Statistics of the data, and the features that training uses by default.
#[derive(serde::Serialize)]
struct Info {
    format: &'static str,
    #[serde(flatten)]
    statistics: Statistics,
    node_feature: Label,
    edge_feature: Label,
}

#[derive(serde::Serialize)]
struct Label {
    size: usize,
    source: String,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let options = ReadOptions { format: arguments.format };
    let source = Source::find(&arguments.data, &Cache::of_user()?)?;
    let format = match (&source, arguments.format) {
        (Source::Builtin(_), _) => "built-in",
        (Source::Path(_), Some(format)) => format.as_str(),
        (Source::Path(path), None) => Format::recognise(path)?.as_str(),
    };
    let dataset = source.load(&options)?;
    let config = RunConfig::for_data(&arguments.data, &dataset, &[]);
    let encoding = Encoding::new(&dataset, &config.features)?;
    let statistics = Statistics::of(&dataset);
    let info = Info {
        format,
        node_feature: Label { size: encoding.node_width(), source: encoding.describe_nodes() },
        edge_feature: Label { size: encoding.edge_width(), source: encoding.describe_edges() },
        statistics,
    };
    if arguments.json { print_json(&info) } else { print(&text(&info)?) }
}

fn text(info: &Info) -> Result<String, std::fmt::Error> {
    let found = &info.statistics;
    let mut table = Table(format!("{} ({})\n\n", visible_line(&found.name), info.format));
    table.row("graphs", found.graphs, "")?;
    table.row("nodes", found.nodes, per_graph(found.graphs, found.nodes_per_graph))?;
    let edges = per_graph(found.graphs, found.edges_per_graph);
    let direction = if found.undirected { "undirected" } else { "directed" };
    let comma = if edges.is_empty() { "" } else { ", " };
    table.row("edges", found.edges, format_args!("{edges}{comma}{direction}"))?;
    let Spread { min, mean, max } = found.degree;
    table.row("degree", format_args!("{mean:.1}"), format_args!("{min} to {max}"))?;
    let features = describe_features(&found.node_features);
    let source = &info.node_feature.source;
    let feature = if *source == features || features.is_empty() {
        source.clone()
    } else {
        format!("{source}; there are {features}")
    };
    table.row("node feature", info.node_feature.size, feature)?;
    table.row("edge feature", info.edge_feature.size, &info.edge_feature.source)?;
    table.targets("graph", found.graph_targets.as_ref(), found.graphs)?;
    table.targets("node", found.node_targets.as_ref(), found.nodes)?;
    if let Some(split) = found.split {
        let sizes = format!("train {}, val {}, test {}", split.train, split.val, split.test);
        table.row("split", format_args!("by {}", split.level.as_str()), sizes)?;
    }
    table.warnings(found)?;
    Ok(table.0)
}

/// Further classes are summarised; JSON lists all of them.
const MOST_CLASSES: usize = 25;

/// Rows of a name, a number and a remark.
struct Table(String);

impl Table {
    fn row(
        &mut self,
        name: impl Display,
        number: impl Display,
        more: impl Display,
    ) -> std::fmt::Result {
        // `format_args!` ignores a width, text does not.
        let (name, number) = (name.to_string(), number.to_string());
        let line = format!("{name:<14}{number:>10}  {more}");
        writeln!(self.0, "{}", visible_line(line.trim_end()))
    }

    fn targets(
        &mut self,
        level: &str,
        targets: Option<&TargetCounts>,
        members: usize,
    ) -> std::fmt::Result {
        let unknown = match targets {
            None => return Ok(()),
            Some(TargetCounts::Classes { classes, unknown }) => {
                self.row(format_args!("{level} classes"), classes.len(), "")?;
                for class in classes.iter().take(MOST_CLASSES) {
                    let share = 100.0 * class.count as f64 / members.max(1) as f64;
                    let name = format_args!("{:.1} %  {}", share, class.class);
                    self.row("", class.count, name)?;
                }
                if classes.len() > MOST_CLASSES {
                    self.row("", "…", format_args!("{} more", classes.len() - MOST_CLASSES))?;
                }
                unknown
            }
            Some(TargetCounts::Values { names, unknown }) => {
                self.row(format_args!("{level} values"), names.len(), names.join(", "))?;
                unknown
            }
        };
        if *unknown > 0 {
            self.row("", unknown, format_args!("without a target"))?;
        }
        Ok(())
    }

    fn warnings(&mut self, found: &Statistics) -> std::fmt::Result {
        let odd = found.warnings;
        let mut name = "warnings";
        for (count, what) in [
            (odd.duplicate_edges, "duplicate edges, merged"),
            (odd.conflicting_duplicates, "of these with conflicting features, first kept"),
            (odd.self_loops, "self-loops"),
            (odd.isolated_nodes, "isolated nodes"),
            (odd.empty_graphs, "graphs without nodes"),
            (odd.graphs_without_edges, "graphs with nodes but no edges"),
            (odd.disconnected_graphs, "disconnected graphs"),
        ] {
            if count > 0 {
                self.row(name, count, what)?;
                name = "";
            }
        }
        if name.is_empty() { Ok(()) } else { self.row(name, "none", "") }
    }
}

/// Empty for a single graph.
fn per_graph(graphs: usize, Spread { min, mean, max }: Spread) -> String {
    if graphs == 1 {
        return String::new();
    }
    format!("{mean:.1} per graph, {min} to {max}")
}

/// In the words of [`Encoding::describe_nodes`].
fn describe_features(features: &FeatureCounts) -> String {
    let mut parts: Vec<String> = features
        .categories
        .iter()
        .map(|column| format!("{} ({} values)", column.name, column.values))
        .collect();
    if features.values > 0 {
        parts.push(format!("{} real values", features.values));
    }
    if features.sparse > 0 {
        parts.push(format!("{} sparse values", features.sparse));
    }
    parts.join(" + ")
}
