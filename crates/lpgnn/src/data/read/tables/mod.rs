//! Tables: `nodes.csv`, `edges.csv` and optionally `graphs.csv`, each plain or gzipped, with more
//! features in `nodes.npy` and `edges.npy` beside them, and an optional `dataset.toml`.

mod cells;
mod description;
mod edges;
mod lookalike;
mod nodes;
mod table;

use std::collections::HashMap;
use std::path::Path;

use super::name_of;
use super::text::quote;
use crate::data::{Dataset, DatasetParts, Level, Split, TargetColumn};
use crate::{Error, Place};
use cells::{Splits, Targets};
pub(super) use description::Description;
pub(super) use edges::both_directions;
use nodes::Nodes;
use table::{Role, Table, place_of};

/// The files of this format.
const FILES: [&str; 9] = [
    "dataset.toml",
    "edges.csv",
    "edges.csv.gz",
    "edges.npy",
    "graphs.csv",
    "graphs.csv.gz",
    "nodes.csv",
    "nodes.csv.gz",
    "nodes.npy",
];

/// Reads a folder of tables.
///
/// `nodes.csv` has one row per node. All its columns are optional: `graph` (without it, all nodes
/// belong to one graph), `id` (unique within its graph; without it, the nodes of each graph are
/// counted from 0), `y`, `split`, and any others, which are features.
///
/// `edges.csv` has the columns `source` and `target`, which refer to nodes by `id`; `graph`, unless
/// ids are unique across all graphs; and any others, which are features. A row is an undirected
/// edge, that is, both directions with the same features, unless `dataset.toml` says
/// `directed = true`.
///
/// `graphs.csv`, which is optional, has the columns `graph`, `y` and `split`.
pub(super) fn read(folder: &Path) -> Result<Dataset, Error> {
    check_names(folder)?;
    let description = Description::read(folder)?;
    let graphs = Table::open(folder, "graphs")?.map(read_graphs).transpose()?;
    let nodes = nodes::read(Table::require(folder, "nodes")?, graphs.as_ref())?;
    let edges = Table::require(folder, "edges")?;
    let (edges, edge_features) = edges::read(edges, &nodes, description.directed)?;
    let Nodes { order, node_starts, features, targets, split, path, names, graphs: places, .. } =
        nodes;
    let graph_names = places.map(|places| {
        let mut names = vec![String::new(); places.len()];
        places.into_iter().for_each(|(name, place)| names[place as usize] = name.into());
        names
    });
    let split = match (split, graphs.as_ref().and_then(|graphs| graphs.split.clone())) {
        (Some(_), Some(_)) => {
            let problem = "has a column split, and so has graphs.csv: split one or the other";
            return Err(Place::file(&path).error(problem));
        }
        (by_node, by_graph) => by_node.or(by_graph),
    };
    Dataset::new(DatasetParts {
        name: description.name.unwrap_or_else(|| name_of(folder)),
        node_starts,
        edges,
        node_features: features.select(&order),
        edge_features,
        node_targets: targets.map(|targets| targets.select(&order)),
        graph_targets: graphs.and_then(|graphs| graphs.targets),
        split,
    })?
    .with_chosen_features()
    .with_names(graph_names, names)
}

/// That no file is left out because its name has capital letters.
fn check_names(folder: &Path) -> Result<(), Error> {
    let Ok(entries) = folder.read_dir() else { return Ok(()) };
    let mut found: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    found.sort_unstable();
    for name in found {
        let meant = name.to_ascii_lowercase();
        // Some file systems take both for the same name.
        if name != meant && FILES.contains(&&meant[..]) && !folder.join(&meant).exists() {
            let problem =
                format!("would be left out, because the file is called {meant} in this format");
            return Err(Place::file(&folder.join(name)).error(problem));
        }
    }
    Ok(())
}

/// The contents of `graphs.csv`.
struct Graphs {
    places: HashMap<Box<str>, u32>,
    count: usize,
    targets: Option<TargetColumn>,
    split: Option<Split>,
}

fn read_graphs(mut table: Table) -> Result<Graphs, Error> {
    let columns = table.roles(&[Role::Graph, Role::Y, Role::Split])?;
    let Some(graph) = place_of(&columns, Role::Graph) else {
        return Err(Place::line(&table.path, 1).error("has no column graph"));
    };
    let mut places = HashMap::new();
    let mut targets = Targets::new(&columns);
    let mut splits = Splits::new(&columns);
    let count = table.for_each(|number, row| {
        let place = u32::try_from(number).map_err(|_| Error::TooLarge)?;
        if places.insert(row.name(graph)?.into(), place).is_some() {
            let problem = format!("names {} for the second time", quote(row.bytes(graph)));
            return Err(row.column_error(graph, problem));
        }
        targets.push(row)?;
        splits.push(row, number)
    })?;
    Ok(Graphs {
        places,
        count,
        targets: targets.finish(&table.path, "graph target")?,
        split: splits.finish(Level::Graph, None),
    })
}
