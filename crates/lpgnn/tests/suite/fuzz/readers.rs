//! Readers of data sets, and of folds.

use std::io::Write;

use lpgnn::data::{Encoding, FeatureOptions, Format, Level, ReadOptions, Split, read};
use rand_chacha::ChaCha8Rng;

use super::Target;
use super::files::Files;
use super::mutate::{damage_files, damage_json, damage_packed};

/// Reads damaged variants of `valid`, at `path` within their folder.
fn fuzz(
    name: &str,
    (format, path): (Format, &str),
    valid: &Files,
    damage: impl Fn(&mut ChaCha8Rng, &mut Files),
) {
    let options = ReadOptions { format: Some(format) };
    Target { name, valid, writes: false }.fuzz(damage, |folder| {
        let path = folder.join(path);
        // It may be anything now, but that must be found out in peace.
        let _ = Format::recognise(&path);
        let dataset = read(&path, &options)?;
        // What is read is valid: it can be turned into numbers, or that is refused.
        let encoding = Encoding::new(&dataset, &FeatureOptions::default());
        let _ = encoding.and_then(|encoding| encoding.batch::<f32>(&dataset));
        Ok(())
    });
}

fn tu_files() -> Files {
    vec![
        ("T_A.txt", b"2, 1\n1, 2\n3,3\n4, 3\n5,4\n".to_vec()),
        ("T_graph_indicator.txt", b"1\n1\n3\n3\n3\n".to_vec()),
        ("T_graph_labels.txt", b"-1\n7\n-1\n".to_vec()),
        ("T_graph_attributes.txt", b"1.5\n2\n3\n".to_vec()),
        ("T_node_labels.txt", b"5, 0\n-3, 0\n5, 1\n5, 2\n1000, 2\n".to_vec()),
        ("T_node_attributes.txt", b"0.5, 1e2\n1,2\n3,4\n5,-6.25\n0, 0".to_vec()),
        ("T_edge_labels.txt", b"1\n2\n3\n4\n2\n".to_vec()),
        ("T_edge_attributes.txt", b"1.5\n2.5\n3.5\n4.5\n0\n".to_vec()),
        ("T_node_targets.txt", b"1\n-1\n-1\n1\n1\n".to_vec()),
    ]
}

#[test]
fn tu_folders() {
    fuzz("tu", (Format::Tu, ""), &tu_files(), damage_files);
}

fn zip(files: &Files) -> Files {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    for (name, content) in files {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    vec![("x.zip", writer.finish().unwrap().into_inner())]
}

#[test]
fn tu_zip_files() {
    let content = tu_files();
    fuzz("tu zip", (Format::Tu, "x.zip"), &zip(&content), |random, files| {
        damage_packed(random, files, &content, zip);
    });
}

#[test]
fn gin_files() {
    let text = b"3\n2 5\n0 1 1 0.5\n3 1 0 -1\n0 -2\n3 5\n3 1 0 2\n1 2 0 2 1e3\n1 0 7\n".to_vec();
    fuzz("gin", (Format::Gin, "g.txt"), &vec![("g.txt", text)], damage_files);
}

#[test]
fn citation_folders() {
    let files = vec![
        ("edges.txt", b"0 1\n2 2\n1 2\n3 0\n".to_vec()),
        ("features.txt", b"4:1 0:0.5\n\n2:1\n7:-2.5 1:1\n".to_vec()),
        ("labels.txt", b"3\n-1\n5\n3\n".to_vec()),
        ("train_idx.txt", b"2\n".to_vec()),
        ("val_idx.txt", b"1\n".to_vec()),
        ("test_idx.txt", b"0\n3\n".to_vec()),
    ];
    fuzz("citation", (Format::Citation, ""), &files, damage_files);
}

fn npy(rows: usize, cols: usize) -> Vec<u8> {
    let header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    for i in 0..rows * cols {
        bytes.extend((i as f32).to_le_bytes());
    }
    bytes
}

pub(super) fn table_files() -> Files {
    let nodes = "graph,id,x,colour,y,split\nb,1,0.5,red,yes,train\na,1,1,blue,,\n\
                 b,2,-2,\"red, or so\",no,test\n";
    let edges = "graph,target,source,weight,kind:category\nb,1,2,0.5,1\na,1,1,2,2\nb,2,1,0.5,1\n";
    let graphs = "graph,y\na,1.5\nb,2\nc,\n";
    vec![
        ("nodes.csv", nodes.as_bytes().to_vec()),
        ("edges.csv", edges.as_bytes().to_vec()),
        ("graphs.csv", graphs.as_bytes().to_vec()),
        ("dataset.toml", b"name = \"abc\"\ndirected = true\n".to_vec()),
        ("nodes.npy", npy(3, 2)),
        ("edges.npy", npy(3, 1)),
    ]
}

#[test]
fn tables() {
    fuzz("tables", (Format::Tables, ""), &table_files(), damage_files);
}

fn gzip(files: &Files) -> Files {
    let packed = |name: &str| match name {
        "nodes.csv" => Some("nodes.csv.gz"),
        "edges.csv" => Some("edges.csv.gz"),
        _ => None,
    };
    let mut all = vec![];
    for (name, content) in files {
        if let Some(name) = packed(name) {
            let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
            encoder.write_all(content).unwrap();
            all.push((name, encoder.finish().unwrap()));
        } else {
            all.push((*name, content.clone()));
        }
    }
    all
}

#[test]
fn gzipped_tables() {
    let content = table_files();
    fuzz("gzipped tables", (Format::Tables, ""), &gzip(&content), |random, files| {
        damage_packed(random, files, &content, gzip);
    });
}

fn data_set() -> Vec<u8> {
    use crate::mat::{dense, sparse, structure};
    let set = |shift: f64| {
        let labels: Vec<f64> = (0..8).map(|i| f64::from(i) + shift).collect();
        structure(
            "",
            &[
                ("graphNum", dense("", 1, 1, &[2.0])),
                ("connMatrix", sparse("", 4, 4, &[(1, 0, 1.0), (0, 1, 1.0), (2, 3, 1.0)])),
                ("nodeLabels", dense("", 2, 4, &labels)),
                ("targets", dense("", 1, 4, &[-1.0, 1.0, 1.0, -1.0])),
                ("maskMatrix", sparse("", 4, 4, &[(0, 0, 1.0), (1, 1, 1.0), (3, 3, 1.0)])),
            ],
        )
    };
    let config = structure("", &[("graphDim", dense("", 1, 1, &[2.0]))]);
    let sets = [("config", config), ("trainSet", set(0.0)), ("testSet", set(0.5))];
    structure("dataSet", &sets)
}

#[test]
fn matlab_structs() {
    let valid = vec![("x.mat", crate::mat::file(&[data_set()], false))];
    fuzz("matlab", (Format::Matlab, "x.mat"), &valid, damage_files);
}

#[test]
fn compressed_matlab_structs() {
    let content = vec![("x.mat", data_set())];
    let pack = |files: &Files| {
        let variables: Vec<Vec<u8>> = files.iter().map(|(_, bytes)| bytes.clone()).collect();
        vec![("x.mat", crate::mat::file(&variables, true))]
    };
    fuzz("matlab", (Format::Matlab, "x.mat"), &pack(&content), |random, files| {
        damage_packed(random, files, &content, pack);
    });
}

#[test]
fn matlab_folders() {
    use crate::mat::{dense, file, sparse};
    let files = vec![
        ("conmattrain.mat", file(&[sparse("c", 6, 6, &[(0, 1, 1.0), (5, 4, 2.0)])], false)),
        ("nodelabtrain.mat", file(&[dense("l", 1, 6, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])], false)),
        ("tartrain.mat", file(&[dense("t", 1, 6, &[0.0, 0.5, 0.0, 1.0, 0.0, 0.0])], false)),
        ("conmattest.mat", file(&[sparse("c", 2, 2, &[(0, 1, 1.5)])], true)),
        ("nodelabtest.mat", file(&[dense("l", 1, 2, &[1.0, 2.0])], true)),
        ("tartest.mat", file(&[dense("t", 1, 2, &[0.5, 0.0])], true)),
    ];
    fuzz("matlab folder", (Format::Matlab, ""), &files, damage_files);
}

fn npz(files: &Files) -> Files {
    vec![("x.npz", crate::npz::npz(files))]
}

#[test]
fn npz_files_with_masks() {
    let content = crate::npz::with_masks();
    fuzz("npz masks", (Format::Npz, "x.npz"), &npz(&content), |random, files| {
        damage_packed(random, files, &content, npz);
    });
}

#[test]
fn npz_files_with_matrices() {
    let content = crate::npz::with_matrices();
    fuzz("npz matrices", (Format::Npz, "x.npz"), &npz(&content), |random, files| {
        damage_packed(random, files, &content, npz);
    });
}

#[test]
fn splits_of_npz_files() {
    let content = crate::npz::with_masks();
    let valid = npz(&content);
    Target { name: "npz folds", valid: &valid, writes: false }.fuzz(
        |random, files| damage_packed(random, files, &content, npz),
        |folder| Split::read_folds(&folder.join("x.npz"), Level::Node, 3).map(drop),
    );
}

#[test]
fn ogb_folders() {
    // Flat, as in the folder `raw`: the splits are in files of indices like those of folds.
    let files = vec![
        ("num-node-list.csv", b"2\n3\n".to_vec()),
        ("num-edge-list.csv", b"1\n2\n".to_vec()),
        ("edge.csv", b"0,1\n0,1\n1,2\n".to_vec()),
        ("node-feat.csv", b"5,0\n6,0\n5,1\n7,0\n5,0\n".to_vec()),
        ("edge-feat.csv", b"0.5\n1\n-2\n".to_vec()),
        ("graph-label.csv", b"0\n1\n".to_vec()),
        ("node-label.csv", b"0,\n1,2\n,1.5\nnan,0\n1,1\n".to_vec()),
        ("dataset.toml", b"directed = true\n".to_vec()),
    ];
    fuzz("ogb", (Format::Ogb, ""), &files, damage_files);
    // Without rows for nodes, their number is only claimed.
    let bare = files.into_iter().filter(|(name, _)| !name.starts_with("node-")).collect();
    fuzz("ogb bare", (Format::Ogb, ""), &bare, damage_files);
}

const GRAPHS: &str = r#"[{"directed": true, "multigraph": true, "graph": {"name": "a", "y": [1, null]},
 "nodes": [{"id": "a", "c": 1, "t": "x", "v": [0.5, 1], "b": true, "y": "u", "split": "train"},
           {"id": 2, "c": 3, "t": "y", "v": [1.5, 2], "b": false, "y": null, "split": "test"}],
 "edges": [{"source": "a", "target": 2, "key": 0, "w": 0.5}]},
{"graph": {"y": [0, 2.5]}, "nodes": [{"c": 2, "t": "x", "v": [0, 1], "b": true, "y": "v"}],
 "links": [{"source": 0, "target": 0, "w": 1}]}]
"#;

#[test]
fn node_link_files() {
    let valid = vec![("g.json", GRAPHS.as_bytes().to_vec())];
    fuzz("node link", (Format::NodeLink, "g.json"), &valid, damage_files);
    fuzz("node link", (Format::NodeLink, "g.json"), &valid, |random, files| {
        let mut document = serde_json::from_str(GRAPHS).unwrap();
        damage_json(random, &mut document);
        files[0].1 = serde_json::to_vec(&document).unwrap();
    });
}

#[test]
fn fold_files() {
    let valid = vec![
        ("folds.txt", b"0 1\n1 1 # two\n2 2\n3 2\n4 3\n".to_vec()),
        ("train_idx-1.txt", b"0\n1\n2\n".to_vec()),
        ("test_idx-1.txt", b"3\n4\n".to_vec()),
        ("train_idx-2.txt", b"4\n3\n2\n".to_vec()),
        ("test_idx-2.txt", b"0\n1\n".to_vec()),
    ];
    Target { name: "folds", valid: &valid, writes: false }.fuzz(damage_files, |folder| {
        Split::read_folds(&folder.join("folds.txt"), Level::Node, 5)?;
        Split::read_folds(folder, Level::Graph, 5).map(drop)
    });
}

/// A small graph in parts, as files.
fn parts_files() -> Files {
    use lpgnn::data::generate::CommunitiesConfig;
    use lpgnn::data::{Overwrite, parts::write_parts};
    use lpgnn::run::RunConfig;

    let config = CommunitiesConfig { nodes: 24, degree: 3.0, ..CommunitiesConfig::default() };
    let (dataset, order) = (config.generate(1).unwrap(), (0..24).collect::<Vec<_>>());
    let place = tempfile::tempdir().unwrap();
    let config = (&RunConfig::for_data("communities", &dataset, &[]), None);
    write_parts(&dataset, (&order, &[0, 9, 15]), config, place.path(), Overwrite::Refuse).unwrap();
    let names = [
        "parts.json",
        "neighbour_starts.npy",
        "neighbours.npy",
        "features.npy",
        "y.npy",
        "split.npy",
    ];
    let names = names.into_iter().chain(["original.npy"]);
    names.map(|name| (name, std::fs::read(place.path().join(name)).unwrap())).collect()
}

#[test]
fn graphs_in_parts() {
    use lpgnn::data::parts::Parts;
    use lpgnn::graph::Alone;
    use std::sync::Arc;

    let valid = parts_files();
    Target { name: "parts", valid: &valid, writes: false }.fuzz(damage_files, |folder| {
        Parts::read(folder, 1, 2)?;
        Parts::read(folder, 0, 1)?.shared_by(&(Arc::new(Alone) as _))?;
        Ok(())
    });
}
