//! A reader of your own: files in the DIMACS format for graph colouring become a data set that every other part
//! of the library can use.
//!
//! ```text
//! c a comment
//! p edge 4 3        4 nodes, 3 undirected edges
//! e 1 2             an edge, nodes counted from 1
//! n 1 red           our addition: the class of a node
//! ```
#![allow(clippy::unwrap_used, reason = "an example that cannot go on has failed")]

use std::fmt::Write as _;
use std::path::Path;

use lpgnn::data::{Categories, Dataset, DatasetParts, FeatureColumns, TargetColumn};
use lpgnn::run::{RunConfig, SavedModel, Setup};
use lpgnn::train::{SplitName, Trainer};
use lpgnn::{Error, Place};

/// Reads a file; what does not fit is an error with its line.
fn read_dimacs(path: &Path) -> Result<Dataset, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Place::file(path).error(format!("cannot be read: {error}")))?;
    let (mut classes, mut edges): (Vec<String>, Vec<(u32, u32)>) = (vec![], vec![]);
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |problem: &str| Place::line(path, number).error(problem);
        let words: Vec<&str> = line.split_whitespace().collect();
        let node = |word: &str, nodes: usize| match word.parse::<usize>() {
            Ok(node) if (1..=nodes).contains(&node) => Ok(node - 1),
            _ => Err(wrong(&format!("names node {word}, but nodes are counted from 1 to {nodes}"))),
        };
        match words[..] {
            [] | ["c", ..] => {}
            ["p", "edge", nodes, _] => {
                let nodes: u16 = nodes.parse().map_err(|_| wrong("has no number of nodes"))?;
                classes = vec![String::new(); nodes.into()];
            }
            ["e", u, v] => {
                let (u, v) = (node(u, classes.len())?, node(v, classes.len())?);
                let (u, v) = (u32::try_from(u).unwrap(), u32::try_from(v).unwrap());
                edges.extend([(u, v), (v, u)]);
            }
            ["n", v, class] => {
                let v = node(v, classes.len())?;
                class.clone_into(&mut classes[v]);
            }
            _ => return Err(wrong("is none of c, p edge N M, e U V and n V CLASS")),
        }
    }
    Dataset::new(DatasetParts {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        node_starts: vec![0, classes.len()],
        node_features: FeatureColumns::none(classes.len()),
        edge_features: FeatureColumns::none(edges.len()),
        edges,
        // Where the text is empty, the class is not known.
        node_targets: Some(TargetColumn::Classes(Categories::from_text("colour", &classes))),
        graph_targets: None,
        split: None,
    })
}

/// A wheel: hubs have many neighbours, the nodes on the rim three.
fn wheels(count: usize) -> String {
    let (size, mut text) = (9, format!("c wheels\np edge {} 0\n", 9 * count));
    for first in (0..count).map(|wheel| wheel * size + 1) {
        let _ = writeln!(text, "n {first} hub");
        for spoke in 1..size {
            let next = first + spoke % (size - 1) + 1;
            let _ = writeln!(text, "e {first} {0}\ne {0} {next}\nn {0} rim", first + spoke);
        }
    }
    text
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("wheels.col");
    std::fs::write(&path, wheels(40))?;
    let dataset = read_dimacs(&path)?;

    let mut config = RunConfig::for_data("wheels", &dataset, &[]);
    config.training.epochs = 60;
    let setup = Setup::new(&config, &dataset)?;
    let trained = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?.run(&mut ())?;
    let metrics = trained.evaluation.as_ref().and_then(|all| all.of(SplitName::Test)).unwrap();
    assert!(metrics.accuracy > Some(0.95), "{metrics:?}: 89 % of the nodes are on a rim");

    let model = SavedModel::new(&setup, &config, "wheels", trained.epoch, trained.weights);
    model.write(&folder.path().join("wheels.safetensors"))?;
    let loaded = SavedModel::read(&folder.path().join("wheels.safetensors"))?;
    let predicted = loaded.predict(&dataset, false)?;
    assert_eq!(predicted.outputs, model.predict(&dataset, false)?.outputs);

    std::fs::write(&path, "p edge 2 1\ne 1 3\n")?;
    let error = read_dimacs(&path).unwrap_err().to_string();
    assert!(error.ends_with("line 2: names node 3, but nodes are counted from 1 to 2"), "{error}");
    Ok(())
}
