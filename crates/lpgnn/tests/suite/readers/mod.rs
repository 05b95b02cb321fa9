//! Every reader on files that the tests make themselves: what it reads, and what it refuses.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::too_many_lines, reason = "a list of cases may be long")]

use std::io::Write;
use std::path::Path;

use lpgnn::data::{Dataset, Format, Level, ReadOptions, TargetColumn, read};
use lpgnn::graph::NO_TARGET;
use lpgnn::{Error, Matrix};
use tempfile::TempDir;

mod citation;
mod gin;
mod matlab;
mod node_link;
mod npz;
mod ogb;
mod recognition;
mod tables;
mod tu;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn load(path: &Path) -> Result<Dataset, Error> {
    read(path, &ReadOptions::default())
}

fn good(path: &Path) -> Dataset {
    load(path).unwrap_or_else(|error| panic!("{error}"))
}

/// The message for a folder that cannot be read, without the path of the folder.
fn refusal(folder: &Path, path: &Path) -> String {
    let error = load(path).expect_err("this cannot be read").to_string();
    assert!(!error.contains('\n'), "{error}");
    error
        .replace(&format!("{}/", folder.display()), "")
        .replace(&format!("{}", folder.display()), "DIR")
}

/// The same files with some replaced, removed (`None`) or added.
fn changed<'a>(
    files: &[(&'a str, &'a str)],
    changes: &[(&'a str, Option<&'a str>)],
) -> Vec<(&'a str, &'a str)> {
    let mut all: Vec<_> = files
        .iter()
        .filter(|(name, _)| !changes.iter().any(|(changed, _)| name == changed))
        .copied()
        .collect();
    all.extend(changes.iter().filter_map(|&(name, content)| Some((name, content?))));
    all
}

fn classes(targets: Option<&TargetColumn>) -> (Vec<String>, Vec<u32>) {
    match targets {
        Some(TargetColumn::Classes(classes)) => {
            (classes.values().to_vec(), classes.codes().to_vec())
        }
        other => panic!("{other:?}"),
    }
}
