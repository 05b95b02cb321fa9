//! The readers on public data sets, if they are available: see `common/skip.rs`.

use std::io::Write;
use std::path::{Path, PathBuf};

use lpgnn::data::{Categories, Dataset, Level, ReadOptions, Split, TargetColumn, read};

/// The folder `datasets/{name}`; none if it does not exist.
fn shared(name: &str) -> Option<PathBuf> {
    crate::common::shared(&format!("datasets/{name}"))
}

fn load(path: &Path) -> Dataset {
    read(path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn graph_classes(dataset: &Dataset) -> &Categories {
    match dataset.graph_targets() {
        Some(TargetColumn::Classes(classes)) => classes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn tu_sets_have_the_published_counts() {
    for (name, graphs, classes, nodes, edges, duplicates) in [
        ("MUTAG", 188, 2, 3371, 7442, 0),
        ("PTC", 344, 2, 8792, 17862, 0),
        ("PTC_MR", 344, 2, 4915, 10108, 0),
        ("NCI1", 4110, 2, 122_747, 265_506, 0),
        ("PROTEINS", 1113, 2, 43_471, 162_088, 0),
        ("IMDB-BINARY", 1000, 2, 19_773, 193_062, 193_062),
        ("IMDB-MULTI", 1500, 3, 19_502, 197_806, 197_806),
    ] {
        let Some(path) = shared(&format!("tu/{name}")) else { continue };
        let found = load(&path);
        assert_eq!(found.name(), name);
        let counts = (found.graphs(), graph_classes(&found).values().len(), found.nodes());
        assert_eq!(counts, (graphs, classes, nodes), "{name}");
        assert_eq!((found.edges().len(), found.duplicates()), (edges, duplicates), "{name}");
    }
}

#[test]
fn tu_sets_have_their_features() {
    if let Some(path) = shared("tu/PROTEINS") {
        let proteins = load(&path);
        assert_eq!(proteins.node_features().categories()[0].values(), ["0", "1", "2"]);
        assert_eq!(proteins.node_features().values().row(0), [23.0]);
    }
    if let Some(path) = shared("tu/MUTAG") {
        let mutag = load(&path);
        assert_eq!(mutag.edge_features().categories()[0].name(), "edge label");
        assert_eq!(graph_classes(&mutag).values(), ["-1", "1"]);
    }
    if let Some(path) = shared("tu/NCI1") {
        assert_eq!(load(&path).node_features().categories()[0].values().len(), 37);
    }
}

#[test]
fn a_zip_file_of_a_tu_set_is_the_set() {
    let Some(path) = shared("tu/PROTEINS") else { return };
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    let options = zip::write::SimpleFileOptions::default();
    writer.add_directory("PROTEINS", options).unwrap();
    for file in std::fs::read_dir(&path).unwrap() {
        let file = file.unwrap();
        let name = format!("PROTEINS/{}", file.file_name().to_str().unwrap());
        writer.start_file(name, options).unwrap();
        writer.write_all(&std::fs::read(file.path()).unwrap()).unwrap();
    }
    let zip = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(zip.path(), writer.finish().unwrap().into_inner()).unwrap();
    assert_eq!(load(zip.path()), load(&path));
}

/// The degrees of every graph, in order.
fn degrees(dataset: &Dataset) -> Vec<Vec<usize>> {
    let mut degrees = vec![0; dataset.nodes()];
    for &(source, _) in dataset.edges() {
        degrees[source as usize] += 1;
    }
    let starts = dataset.node_starts().windows(2);
    starts
        .map(|w| {
            let mut graph = degrees[w[0]..w[1]].to_vec();
            graph.sort_unstable();
            graph
        })
        .collect()
}

#[test]
fn mutag_of_gin_is_mutag_of_tu() {
    let (Some(gin), Some(tu)) = (shared("gin/MUTAG.txt"), shared("tu/MUTAG")) else { return };
    let (gin, tu) = (load(&gin), load(&tu));
    assert_eq!((gin.graphs(), gin.nodes()), (tu.graphs(), tu.nodes()));
    // The two files list the graphs in different orders.
    let described = |dataset: &Dataset| {
        let mut graphs: Vec<_> = degrees(dataset);
        graphs.sort_unstable();
        graphs
    };
    assert_eq!(described(&gin), described(&tu));
    let sizes = |dataset: &Dataset| {
        let mut counts = graph_classes(dataset).counts();
        counts.sort_unstable();
        counts
    };
    assert_eq!(sizes(&gin), sizes(&tu));
    let tags = |dataset: &Dataset| {
        let mut counts = dataset.node_features().categories()[0].counts();
        counts.sort_unstable();
        counts
    };
    assert_eq!(tags(&gin), tags(&tu));
}

#[test]
fn citation_graphs_have_the_published_counts() {
    for (name, nodes, edges, width, classes, train) in
        [("cora", 2708, 10556, 1433, 7, 140), ("citeseer", 3327, 9104, 3703, 6, 120)]
    {
        let Some(path) = shared(&format!("planetoid/{name}")) else { continue };
        let found = load(&path);
        assert_eq!((found.graphs(), found.nodes(), found.edges().len()), (1, nodes, edges));
        let sparse = found.node_features().sparse().expect("the features are sparse");
        assert_eq!(sparse.width(), width);
        let Some(TargetColumn::Classes(labels)) = found.node_targets() else { panic!("{name}") };
        assert_eq!(labels.values().len(), classes);
        let split = found.split().expect("a split comes with the data");
        assert_eq!(split.level, Level::Node);
        assert_eq!((split.train.len(), split.val.len(), split.test.len()), (train, 500, 1000));
    }
}

#[test]
fn authors_text_has_three_parts() {
    for (name, graphs, nodes, edges) in [
        ("sub_7_3_100", 100, 7, 1492 + 1504 + 1490),
        ("cli_7_3_100", 100, 7, 1678 + 1696 + 1720),
        ("sub_30_15_200", 200, 30, 33516 + 33446 + 33644),
        ("cli_15_7_200", 200, 15, 15074 + 15100 + 15098),
    ] {
        let Some(path) = shared(&format!("authors/{name}")) else { continue };
        let found = load(&path);
        assert_eq!(found.name(), name);
        assert_eq!((found.graphs(), found.nodes()), (3 * graphs, 3 * graphs * nodes), "{name}");
        assert_eq!(found.edges().len(), edges, "{name}");
        let split = found.split().expect("the folders make a split");
        assert_eq!(split.level, Level::Graph);
        assert_eq!((split.train.len(), split.test.first()), (graphs, Some(&(2 * graphs))));
    }
}

#[test]
fn authors_matlab_files_are_their_text_files() {
    for (mat, text) in [
        ("", "sub_7_3_100"),
        ("conmattrain.mat", "sub_7_3_100"),
        ("tartest.mat", "sub_7_3_100"),
        ("cliquedataset.mat", "cli_7_3_100"),
        ("sub_30_15_200.mat", "sub_30_15_200"),
        ("cli_15_7_200.mat", "cli_15_7_200"),
    ] {
        let (Some(mat), Some(text)) =
            (shared(&format!("authors/mat/{mat}")), shared(&format!("authors/{text}")))
        else {
            continue;
        };
        let (a, b) = (load(&mat), load(&text));
        assert_eq!(a.node_starts(), b.node_starts(), "{}", mat.display());
        assert_eq!(a.edges(), b.edges(), "{}", mat.display());
        assert_eq!(a.node_features(), b.node_features(), "{}", mat.display());
        assert_eq!(a.edge_features(), b.edge_features(), "{}", mat.display());
        assert_eq!(a.node_targets(), b.node_targets(), "{}", mat.display());
        assert_eq!(a.split(), b.split(), "{}", mat.display());
    }
}

#[test]
fn npz_graphs_have_the_published_counts() {
    // Each undirected edge counts twice, and a self-loop once.
    for (name, nodes, edges, width, classes, splits) in [
        ("texas", 183, 558, 1703, 5, 10),
        ("cornell", 183, 554, 1703, 5, 10),
        ("wisconsin", 251, 900, 1703, 5, 10),
        ("chameleon", 2277, 62_742, 2325, 5, 10),
        ("squirrel", 5201, 396_706, 2089, 5, 10),
        ("minesweeper", 10_000, 78_804, 7, 2, 10),
        ("amazon-photo", 7650, 238_162, 745, 8, 1),
        ("amazon-computer", 13_752, 491_722, 767, 10, 1),
        ("coauthor-physics", 34_493, 495_924, 8415, 5, 1),
    ] {
        let Some(path) = shared(&format!("nodes/{name}.npz")) else { continue };
        let found = load(&path);
        assert_eq!(
            (found.graphs(), found.nodes(), found.edges().len()),
            (1, nodes, edges),
            "{name}"
        );
        let features = found.node_features();
        let found_width =
            features.sparse().map_or(features.values().cols(), lpgnn::graph::SparseRows::width);
        assert_eq!(found_width, width, "{name}");
        let Some(TargetColumn::Classes(labels)) = found.node_targets() else { panic!("{name}") };
        assert_eq!(labels.values().len(), classes, "{name}");
        let folds = Split::read_folds(&path, Level::Node, nodes).unwrap();
        assert_eq!((folds.len(), found.split()), (splits, folds.first()), "{name}");
        let sizes = |split: &Split| split.train.len() + split.val.len() + split.test.len();
        assert!(folds.iter().all(|fold| sizes(fold) <= nodes && !fold.val.is_empty()), "{name}");
    }
}
