#![no_main]

use libfuzzer_sys::fuzz_target;
use lpgnn::data::Format;

const NAMES: [&str; 9] = [
    "T_A.txt",
    "T_graph_indicator.txt",
    "T_graph_labels.txt",
    "T_graph_attributes.txt",
    "T_node_labels.txt",
    "T_node_attributes.txt",
    "T_edge_labels.txt",
    "T_edge_attributes.txt",
    "T_node_targets.txt",
];

fuzz_target!(|bytes: &[u8]| lpgnn_fuzz::data(bytes, Format::Tu, &NAMES, ""));
