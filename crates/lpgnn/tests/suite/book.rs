//! The book and the decisions: every name they give exists, and every link leads somewhere.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder, or the file itself.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let Ok(entries) = fs::read_dir(path) else { return vec![] };
    let mut all: Vec<PathBuf> = entries.flat_map(|entry| files(&entry.unwrap().path())).collect();
    all.sort_unstable();
    all
}

/// The names in a text of code.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}

/// The names in the files of a module.
fn names_of_module(module: &str) -> HashSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let places = [source.join(format!("{module}.rs")), source.join(module)];
    let texts = places.iter().flat_map(|place| files(place)).map(fs::read_to_string);
    texts.flat_map(|text| names(&text.unwrap()).map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn every_name_in_the_notation_exists() {
    let text = fs::read_to_string(root().join("docs/src/theory/notation.md")).unwrap();
    let mut found = 0;
    for line in text.lines().filter(|line| line.starts_with('|')) {
        // `\|` is part of a cell.
        let line = line.replace("\\|", "¦");
        let code = line.split('|').nth(3).unwrap_or_default().to_owned();
        // `gnn-sum`: and what follows are values of a setting.
        let code = code.rsplit_once("`: ").map_or(code.as_str(), |(_, code)| code);
        let paths: Vec<&str> = code.split('`').skip(1).step_by(2).collect();
        // A name without a module is one in the item that follows it.
        for (i, path) in paths.iter().enumerate() {
            let module = paths[i..].iter().find_map(|path| path.split_once("::")).unwrap().0;
            let known = names_of_module(module);
            for name in names(path).filter(|&name| name != module) {
                assert!(known.contains(name), "{name} of {path} is not in the module {module}");
                found += 1;
            }
        }
    }
    assert!(found > 150, "only {found} names were looked for");
}

#[test]
fn every_link_leads_to_a_file() {
    let documents = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs"];
    let markdown = documents.iter().flat_map(|name| files(&root().join(name)));
    for file in markdown.filter(|file| file.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(&file).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            let found = file.parent().unwrap().join(path).exists();
            assert!(found, "{} links to {path}, which does not exist", file.display());
        }
    }
}

#[test]
fn every_decision_is_listed() {
    let list = fs::read_to_string(root().join("docs/adr/README.md")).unwrap();
    for file in files(&root().join("docs/adr")) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name == "README.md" || list.contains(&format!("({name})")), "{name} is not listed");
    }
}
