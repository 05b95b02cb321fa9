#![no_main]

use libfuzzer_sys::fuzz_target;
use lpgnn::data::Format;

const NAMES: [&str; 8] = [
    "num-node-list.csv",
    "num-edge-list.csv",
    "edge.csv",
    "node-feat.csv",
    "edge-feat.csv",
    "graph-label.csv",
    "node-label.csv",
    "dataset.toml",
];

fuzz_target!(|bytes: &[u8]| lpgnn_fuzz::data(bytes, Format::Ogb, &NAMES, ""));
