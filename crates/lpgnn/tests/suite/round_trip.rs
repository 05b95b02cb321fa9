//! What is written reads as it was, up to the losses that the writers document.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

use lpgnn::Matrix;
use lpgnn::data::{
    Builtin, Categories, Dataset, DatasetParts, FeatureColumns, Level, Overwrite, ReadOptions,
    Split, TargetColumn, WriteFormat, WriteOptions, read, write,
};
use lpgnn::graph::SparseRows;
use proptest::collection::vec;
use proptest::prelude::*;

fn write_and_read(dataset: &Dataset, format: WriteFormat) -> (Dataset, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("set");
    let options = WriteOptions { format, overwrite: Overwrite::Refuse };
    let losses = write(dataset, &folder, &options).unwrap();
    (read(&folder, &ReadOptions::default()).unwrap(), losses)
}

/// What a random data set consists of.
#[derive(Clone, Debug)]
struct Plan {
    sizes: Vec<usize>,
    edges: Vec<(usize, usize, usize)>,
    undirected: bool,
    node_categories: usize,
    node_values: usize,
    edge_categories: usize,
    edge_values: usize,
    node_targets: bool,
    graph_targets: Option<bool>,
    split: bool,
    numbers: Vec<i64>,
    reals: Vec<f32>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let features = (0_usize..3, 0_usize..3, 0_usize..3, 0_usize..3);
    let targets = (any::<bool>(), prop::option::of(any::<bool>()), any::<bool>());
    let sizes = vec(1_usize..6, 1..8);
    let edges = (vec((0_usize..8, 0_usize..6, 0_usize..6), 0..40), any::<bool>());
    let reals = vec(prop::num::f32::NORMAL | prop::num::f32::ZERO, 50);
    (sizes, edges, features, targets, vec(-9_i64..2000, 50), reals).prop_map(
        |(sizes, edges, features, targets, numbers, reals)| Plan {
            sizes,
            edges: edges.0,
            undirected: edges.1,
            node_categories: features.0,
            node_values: features.1,
            edge_categories: features.2,
            edge_values: features.3,
            node_targets: targets.0,
            graph_targets: targets.1,
            split: targets.2,
            numbers,
            reals,
        },
    )
}

/// `what`, or `what 1`, `what 2`, …: the names that the reader of TU files gives.
fn names(what: &str, count: usize) -> Vec<String> {
    match count {
        1 => vec![what.to_owned()],
        _ => (1..=count).map(|i| format!("{what} {i}")).collect(),
    }
}

impl Plan {
    /// The `i`-th column of integers; rows of the same number are equal.
    fn column(&self, i: usize, rows: &[usize]) -> Vec<i64> {
        rows.iter().map(|row| self.numbers[(row * 7 + i * 13) % self.numbers.len()]).collect()
    }

    fn matrix(&self, rows: &[usize], cols: usize) -> Matrix<f32> {
        let entry = |i: usize| self.reals[i * 11 % self.reals.len()];
        let entries =
            rows.iter().flat_map(|row| (0..cols).map(move |col| entry(row * cols + col))).collect();
        Matrix::from_entries(rows.len(), cols, entries).unwrap()
    }

    fn features(
        &self,
        what: &str,
        rows: &[usize],
        categories: usize,
        values: usize,
    ) -> FeatureColumns {
        let mut features = FeatureColumns::none(rows.len());
        for (i, name) in names(&format!("{what} label"), categories).into_iter().enumerate() {
            let column = Categories::from_integers(name, &self.column(i, rows));
            features = features.with_categories(column).unwrap();
        }
        let names = names(&format!("{what} attribute"), values);
        features.with_values(names, self.matrix(rows, values)).unwrap()
    }

    fn dataset(&self, graph_target: &str, graph_value: &str) -> Dataset {
        let mut node_starts = vec![0];
        for size in &self.sizes {
            node_starts.push(node_starts.last().unwrap() + size);
        }
        let (graphs, nodes) = (self.sizes.len(), *node_starts.last().unwrap());
        let each_graph: Vec<usize> = (0..graphs).collect();
        let each_node: Vec<usize> = (0..nodes).collect();
        let mut edges: Vec<(u32, u32)> = self
            .edges
            .iter()
            .map(|&(graph, u, v)| {
                let graph = graph % graphs;
                let node = |i| u32::try_from(node_starts[graph] + i % self.sizes[graph]).unwrap();
                (node(u), node(v))
            })
            .collect();
        if self.undirected {
            edges.extend(edges.clone().iter().map(|&(u, v)| (v, u)));
        }
        edges.sort_unstable();
        edges.dedup();
        let row = |&(u, v): &(u32, u32)| {
            let edge = if self.undirected { (u.min(v), u.max(v)) } else { (u, v) };
            edges.binary_search(&edge).unwrap()
        };
        let rows: Vec<usize> = edges.iter().map(row).collect();
        let edge_features = self.features("edge", &rows, self.edge_categories, self.edge_values);
        // A file without rows does not tell its columns.
        let edge_features = if edges.is_empty() { FeatureColumns::none(0) } else { edge_features };
        Dataset::new(DatasetParts {
            name: "random".into(),
            node_starts,
            edge_features,
            edges,
            node_features: self.features(
                "node",
                &each_node,
                self.node_categories,
                self.node_values,
            ),
            node_targets: self.node_targets.then(|| {
                TargetColumn::Classes(Categories::from_integers(
                    "node target",
                    &self.column(5, &each_node),
                ))
            }),
            graph_targets: self.graph_targets.map(|classes| {
                if classes {
                    let column = self.column(6, &each_graph);
                    TargetColumn::Classes(Categories::from_integers(graph_target, &column))
                } else {
                    let names = vec![graph_value.to_owned()];
                    TargetColumn::Values { names, values: self.matrix(&each_graph, 1) }
                }
            }),
            split: self.split.then(|| Split {
                level: Level::Graph,
                train: (0..graphs.div_ceil(2)).collect(),
                val: vec![],
                test: (graphs.div_ceil(2)..graphs).collect(),
            }),
        })
        .unwrap()
    }
}

proptest! {
    #[test]
    fn tables_hold_everything(plan in plan(), named: bool) {
        let dataset = plan.dataset("graph target", "graph target").with_chosen_features();
        let names = |letter: &str, count: usize| {
            named.then(|| (0..count).rev().map(|i| format!("{letter}{i}")).collect())
        };
        let (graphs, nodes) = (names("g", dataset.graphs()), names("v", dataset.nodes()));
        let dataset = dataset.with_names(graphs, nodes).unwrap();
        let (found, losses) = write_and_read(&dataset, WriteFormat::Tables);
        prop_assert_eq!(found, dataset);
        prop_assert_eq!(losses, Vec::<String>::new());
    }

    #[test]
    fn tu_files_hold_integers_and_reals(plan in plan()) {
        let dataset = plan.dataset("graph label", "graph attribute").with_chosen_features();
        let (found, losses) = write_and_read(&dataset, WriteFormat::Tu);
        if losses.is_empty() {
            prop_assert_eq!(found, dataset);
        } else {
            // A part without edges cannot tell that edges have features.
            prop_assert!(losses.iter().all(|loss| loss.ends_with("have no edges")), "{:?}", losses);
            prop_assert!(!dataset.edge_features().is_empty());
            prop_assert_eq!(found, dataset.with_split(None).unwrap());
        }
    }
}

#[test]
fn edges_are_written_once_if_both_directions_are_the_same() {
    let written = |edges: &[(u32, u32)], weights: &[f32]| {
        let folder = tempfile::tempdir().unwrap();
        let weights = Matrix::from_entries(edges.len(), 1, weights.to_vec()).unwrap();
        let features = FeatureColumns::none(edges.len());
        let dataset = Dataset::new(DatasetParts {
            name: "pair \"of\" nodes".into(),
            node_starts: vec![0, 2],
            edges: edges.to_vec(),
            node_features: FeatureColumns::none(2),
            edge_features: features.with_values(vec!["weight".into()], weights).unwrap(),
            node_targets: None,
            graph_targets: None,
            split: None,
        })
        .unwrap();
        let format = WriteFormat::Tables;
        let options = WriteOptions { format, overwrite: Overwrite::Replace };
        write(&dataset, folder.path(), &options).unwrap();
        assert_eq!(read(folder.path(), &ReadOptions::default()).unwrap(), dataset);
        ["dataset.toml", "edges.csv"]
            .map(|name| fs::read_to_string(folder.path().join(name)).unwrap())
    };
    let name = "name = 'pair \"of\" nodes'\n";
    for (edges, weights, directed, rows) in [
        (&[(0, 1), (1, 0)][..], &[2.0, 2.0][..], false, "0,0,1,2\n"),
        (&[(0, 1), (1, 0)], &[2.0, 3.0], true, "0,0,1,2\n0,1,0,3\n"),
        (&[(1, 0), (1, 1)], &[2.0, 3.0], true, "0,1,0,2\n0,1,1,3\n"),
        (&[(1, 1)], &[3.0], false, "0,1,1,3\n"),
    ] {
        let expected = [
            format!("{name}directed = {directed}\n"),
            format!("graph,source,target,weight:value\n{rows}"),
        ];
        assert_eq!(written(edges, weights), expected);
    }
}

#[test]
fn generated_tasks_survive_both_formats() {
    for builtin in [Builtin::Subgraph, Builtin::Clique] {
        let dataset = builtin.generate(0).unwrap();
        for format in WriteFormat::ALL {
            assert_eq!(write_and_read(&dataset, format), (dataset.clone(), vec![]), "{format}");
        }
    }
}

#[test]
fn a_split_of_nodes_survives_tables_only() {
    let dataset = Builtin::Chains.generate(0).unwrap();
    assert_eq!(write_and_read(&dataset, WriteFormat::Tables), (dataset.clone(), vec![]));
    let (found, losses) = write_and_read(&dataset, WriteFormat::Tu);
    assert_eq!(losses, ["the split is not kept, because it is one of nodes"]);
    assert_eq!(found, dataset.with_split(None).unwrap());
}

#[test]
fn words_survive_tables_and_become_numbers_in_tu_files() {
    let dataset = Builtin::Karate.generate(0).unwrap();
    let factions = |dataset: &Dataset| {
        let Some(TargetColumn::Classes(classes)) = dataset.node_targets() else { panic!() };
        (classes.values().to_vec(), classes.codes().to_vec())
    };
    let (found, losses) = write_and_read(&dataset, WriteFormat::Tables);
    assert_eq!(losses, [""; 0]);
    assert_eq!(factions(&found), factions(&dataset));
    assert_eq!(found.split(), dataset.split());
    assert_eq!(found.node_features(), dataset.node_features());

    let (found, losses) = write_and_read(&dataset, WriteFormat::Tu);
    assert_eq!(
        losses,
        [
            "the values of faction become numbers, from 0 for Mr. Hi to 1 for Officer",
            "the split is not kept, because it is one of nodes"
        ]
    );
    assert_eq!(factions(&found).0, ["0", "1"]);
    assert_eq!(factions(&found).1, factions(&dataset).1);
}

/// A graph of two nodes and one of none; targets are partly unknown, one feature is sparse.
fn awkward() -> DatasetParts {
    DatasetParts {
        name: "awkward".into(),
        node_starts: vec![0, 2, 2],
        edges: vec![(0, 1)],
        node_features: FeatureColumns::none(2)
            .with_categories(Categories::from_text("split", &["a, b", "c \"d\""]))
            .unwrap()
            .with_sparse(SparseRows::new(3, vec![0, 1, 2], vec![2, 0], vec![0.5, -1.0]).unwrap())
            .unwrap(),
        edge_features: FeatureColumns::none(1),
        node_targets: Some(TargetColumn::Classes(Categories::from_text("t", &["", "x"]))),
        graph_targets: Some(TargetColumn::Values {
            names: vec!["y".into()],
            values: Matrix::from_entries(2, 1, vec![f32::NAN, 1.0]).unwrap(),
        }),
        split: Some(Split { level: Level::Graph, train: vec![1], val: vec![], test: vec![] }),
    }
}

#[test]
fn tables_hold_what_is_unknown_empty_or_sparse() {
    let dataset = Dataset::new(awkward()).unwrap();
    let (found, losses) = write_and_read(&dataset, WriteFormat::Tables);
    assert_eq!(
        losses,
        [
            "the node feature “split” becomes “node split 1”",
            "sparse node features become a dense array"
        ]
    );
    assert_eq!(found.node_starts(), dataset.node_starts());
    assert_eq!(found.split(), dataset.split());
    let column = &found.node_features().categories()[0];
    assert_eq!((column.name(), column.value(0)), ("node split 1", Some("a, b")));
    assert_eq!(column.value(1), Some("c \"d\""));
    assert_eq!(found.node_features().values().as_slice(), [0.0, 0.0, 0.5, -1.0, 0.0, 0.0]);
    let known = |targets: Option<&TargetColumn>| {
        (0..2).map(|row| targets.unwrap().is_known(row)).collect::<Vec<_>>()
    };
    assert_eq!(known(found.node_targets()), [false, true]);
    assert_eq!(known(found.graph_targets()), [false, true]);
}

#[test]
fn what_tu_files_cannot_hold_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let said = |parts: DatasetParts| {
        let options = WriteOptions { format: WriteFormat::Tu, overwrite: Overwrite::Refuse };
        let dataset = Dataset::new(parts).unwrap();
        let error = write(&dataset, &folder.path().join("out"), &options).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{error}");
        error.to_string()
    };
    let but = "which TU files cannot represent, but tables can";
    assert_eq!(said(awkward()), format!("node 0 of awkward has no target, {but}"));
    let parts = DatasetParts { node_targets: None, ..awkward() };
    assert_eq!(said(parts), format!("graph 0 of awkward has no target, {but}"));
    let parts = DatasetParts { node_targets: None, graph_targets: None, ..awkward() };
    assert_eq!(said(parts), format!("graph 1 of awkward has neither nodes nor a target, {but}"));
    let values = Matrix::zeros(2, 1);
    let real = TargetColumn::Values { names: vec!["y".into()], values };
    let parts = DatasetParts { node_targets: Some(real), graph_targets: None, ..awkward() };
    assert_eq!(said(parts), format!("the node targets of awkward are real values, {but}"));
}

#[test]
fn a_folder_is_replaced_only_when_told_and_only_if_it_is_a_data_set() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = Builtin::Karate.generate(0).unwrap();
    let write_to = |path: &Path, format, overwrite| {
        write(&dataset, path, &WriteOptions { format, overwrite })
            .map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), "F"))
    };
    let out = folder.path().join("deep/out");
    fs::create_dir_all(&out).unwrap();
    write_to(&out, WriteFormat::Tu, Overwrite::Refuse).unwrap();
    assert_eq!(
        write_to(&out, WriteFormat::Tables, Overwrite::Refuse).unwrap_err(),
        "F/deep/out already exists"
    );
    write_to(&out, WriteFormat::Tables, Overwrite::Replace).unwrap();
    let mut files: Vec<_> =
        fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["dataset.toml", "edges.csv", "graphs.csv", "nodes.csv"]);

    fs::write(out.join("thesis.tex"), "").unwrap();
    assert_eq!(
        write_to(&out, WriteFormat::Tables, Overwrite::Replace).unwrap_err(),
        "F/deep/out is not replaced, because it contains thesis.tex, which is not part of a data set"
    );
    assert_eq!(
        write_to(&out.join("nodes.csv"), WriteFormat::Tu, Overwrite::Replace).unwrap_err(),
        "F/deep/out/nodes.csv is a file, not a folder"
    );
    assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 1);
}
