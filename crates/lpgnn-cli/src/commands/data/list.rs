use std::fmt::Write;

use clap::Args;
use lpgnn::data::{Builtin, Cache, CachedSet, PUBLISHED, PublishedSet};

use crate::console::{print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct List {
    built_in: Vec<BuiltinSet>,
    fetchable: &'static [PublishedSet],
    cache: String,
    here: Vec<CachedSet>,
}

#[derive(serde::Serialize)]
struct BuiltinSet {
    name: Builtin,
    description: &'static str,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cache = Cache::of_user()?;
    let list = List {
        built_in: Builtin::ALL
            .map(|set| BuiltinSet { name: set, description: set.describe() })
            .into(),
        fetchable: &PUBLISHED,
        cache: cache.folder().display().to_string(),
        here: cache.list()?,
    };
    if arguments.json { print_json(&list) } else { print(&text(&list)?) }
}

fn text(list: &List) -> Result<String, std::fmt::Error> {
    let mut text = String::from("built-in\n");
    for set in &list.built_in {
        writeln!(text, "  {:<16} {}", set.name.as_str(), set.description)?;
    }
    writeln!(text, "\navailable from the TU collection, among others: lpgnn data fetch NAME")?;
    writeln!(text, "  {:<16} {:>6} {:>8} {:>11}", "", "graphs", "classes", "mean nodes")?;
    for PublishedSet { name, graphs, classes, mean_nodes } in list.fetchable {
        writeln!(text, "  {name:<16} {graphs:>6} {classes:>8} {mean_nodes:>11.1}")?;
    }
    writeln!(text, "\ndownloaded to {}", list.cache)?;
    for set in &list.here {
        writeln!(text, "  {:<16} {}", set.name, set.path.display())?;
    }
    if list.here.is_empty() {
        writeln!(text, "  none")?;
    }
    Ok(text)
}
