//! Published folds, if they are available (see `common/skip.rs`), and those in `experiments/folds`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use lpgnn::data::{Level, ReadOptions, Split, TargetColumn, read};

use crate::common::shared;

const NAMES: [&str; 6] = ["MUTAG", "PTC", "NCI1", "PROTEINS", "IMDB-BINARY", "IMDB-MULTI"];

#[test]
fn published_folds_are_as_balanced_as_drawn_ones() {
    for name in NAMES {
        let Some(folder) = shared(&format!("datasets/folds/{name}/stratified-seed0")) else {
            continue;
        };
        let Some(data) = shared(&format!("datasets/tu/{name}")) else { continue };
        let dataset = read(&data, &ReadOptions::default()).unwrap();
        let graphs = dataset.graphs();
        let published = Split::read_folds(&folder, Level::Graph, graphs).unwrap();
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/folds");
        let shipped = shipped.join(format!("{name}.txt"));
        assert_eq!(Split::read_folds(&shipped, Level::Graph, graphs).unwrap(), published, "{name}");
        let drawn = Split::k_fold(&dataset, Level::Graph, 10, 0).unwrap();
        let Some(TargetColumn::Classes(classes)) = dataset.graph_targets() else { panic!() };
        for (source, folds) in [("published", published), ("drawn", drawn)] {
            assert_eq!(folds.len(), 10, "{name}");
            let mut all: Vec<usize> = folds.iter().flat_map(|fold| fold.test.clone()).collect();
            all.sort_unstable();
            assert_eq!(all, (0..graphs).collect::<Vec<_>>(), "{source} {name}");
            for class in 0..classes.values().len() {
                let count = |fold: &Split| {
                    let members = fold.test.iter();
                    members.filter(|&&graph| classes.codes()[graph] as usize == class).count()
                };
                let counts: Vec<usize> = folds.iter().map(count).collect();
                let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
                assert!(spread <= 1, "{source} {name}, class {class}: {counts:?}");
            }
        }
    }
}

#[test]
fn every_graph_is_in_one_of_the_ten_shipped_folds() {
    let counts = [188, 344, 4110, 1113, 1000, 1500];
    for (name, graphs) in NAMES.into_iter().zip(counts) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/folds");
        let path = folder.join(format!("{name}.txt"));
        let folds = Split::read_folds(&path, Level::Graph, graphs).unwrap();
        assert_eq!(folds.len(), 10, "{name}");
        let tested: usize = folds.iter().map(|fold| fold.test.len()).sum();
        assert_eq!(tested, graphs, "{name}");
    }
}
