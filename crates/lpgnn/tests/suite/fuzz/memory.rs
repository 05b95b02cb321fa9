//! Memory in proportion to the size of a file, for files that are far larger than those of the other
//! tests here.

use lpgnn::data::{Format, ReadOptions, read};

use super::cost::measure;
use super::files::{self, Files};

/// What the widest and the longest files of 1 MB cost.
#[test]
fn memory_follows_the_size_of_the_file() {
    let wide = "0 ".repeat(500_000) + "\n";
    let names: Vec<String> = (0..150_000).map(|i| format!("c{i}")).collect();
    let cells = "a,".repeat(names.len());
    let table = format!("{}\n{}\n", names.join(","), cells.trim_end_matches(','));
    let single = |files: &[(&'static str, &str)]| -> Files {
        files.iter().map(|(name, text)| (*name, text.as_bytes().to_vec())).collect()
    };
    let tu = |labels: &str, attributes: &str| {
        single(&[
            ("T_A.txt", ""),
            ("T_graph_indicator.txt", "1\n"),
            ("T_node_labels.txt", labels),
            ("T_node_attributes.txt", attributes),
        ])
    };
    let indicator = "1\n".repeat(500_000);
    let citation = |features: &str| {
        single(&[("edges.txt", ""), ("labels.txt", "1\n"), ("features.txt", features)])
    };
    let ogb = |sizes: &str, features: &str| {
        let mut files =
            vec![("edge.csv", "0,0\n"), ("num-edge-list.csv", "1\n"), ("num-node-list.csv", sizes)];
        if !features.is_empty() {
            files.push(("node-feat.csv", features));
        }
        single(&files)
    };
    let nodes = |node: &str| {
        let list = vec![node; 1_000_000 / node.len()];
        format!("{{\"nodes\":[{}]}}", list.join(","))
    };
    // A long list of targets before very many nodes that have none.
    let late = format!("[{{\"y\":[{}0]}},{{", "0,".repeat(1000));
    for (format, path, files) in [
        (Format::Tu, "", tu(&wide, "1\n")),
        (Format::Tu, "", tu(&"511 ".repeat(65_000), "1\n")),
        (Format::Tu, "", tu("1\n", &wide)),
        (Format::Tu, "", single(&[("T_A.txt", ""), ("T_graph_indicator.txt", &indicator)])),
        (Format::Tu, "", single(&[("T_A.txt", &indicator), ("T_graph_indicator.txt", "1\n")])),
        (Format::Tables, "", single(&[("nodes.csv", &table), ("edges.csv", "source,target\n")])),
        (Format::Gin, "g", single(&[("g", &format!("1\n1 0\n0 0 {wide}"))])),
        (Format::Citation, "", citation("16777215:1\n")),
        (Format::Ogb, "", ogb("500000000\n", "")),
        (Format::Ogb, "", ogb("1\n", &"0,".repeat(500_000))),
        (Format::NodeLink, "g", single(&[("g", &nodes("{}"))])),
        (Format::NodeLink, "g", single(&[("g", &nodes(r#"{"a":0}"#))])),
        (Format::NodeLink, "g", single(&[("g", &nodes(r#"{"a":{"b":[[0],[0]]}}"#))])),
        (Format::NodeLink, "g", single(&[("g", &nodes(r#"{"y":null}"#).replace("[{", &late))])),
    ] {
        let folder = tempfile::tempdir().unwrap();
        files::write(folder.path(), &files);
        let size: usize = files.iter().map(|(_, content)| content.len()).sum();
        let options = ReadOptions { format: Some(format) };
        let (outcome, cost) = measure(|| read(&folder.path().join(path), &options));
        assert!(cost.memory < (4 << 20) + 200 * size, "{format}: {cost:?} for {size} bytes");
        assert!(outcome.is_some(), "{format}: it panics");
    }
}
