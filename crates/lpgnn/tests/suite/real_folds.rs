//! Published folds, where there are any: a folder `shared` beside the checkout, or the one that
//! `LPGNN_SHARED` names.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use std::path::{Path, PathBuf};

use lpgnn::data::{Level, ReadOptions, Split, TargetColumn, read};

#[test]
fn published_folds_are_as_balanced_as_drawn_ones() {
    let shared = std::env::var_os("LPGNN_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    for name in ["MUTAG", "PTC", "NCI1", "PROTEINS", "IMDB-BINARY", "IMDB-MULTI"] {
        let folder = shared.join("datasets/folds").join(name).join("stratified-seed0");
        if !folder.exists() {
            println!("skipped: there is no {}", folder.display());
            continue;
        }
        let dataset =
            read(&shared.join("datasets/tu").join(name), &ReadOptions::default()).unwrap();
        let graphs = dataset.graphs();
        let published = Split::read_folds(&folder, Level::Graph, graphs).unwrap();
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
