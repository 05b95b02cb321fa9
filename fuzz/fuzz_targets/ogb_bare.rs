#![no_main]

use libfuzzer_sys::fuzz_target;
use lpgnn::data::Format;

const NAMES: [&str; 6] = [
    "num-node-list.csv",
    "num-edge-list.csv",
    "edge.csv",
    "edge-feat.csv",
    "graph-label.csv",
    "dataset.toml",
];

fuzz_target!(|bytes: &[u8]| lpgnn_fuzz::data(bytes, Format::Ogb, &NAMES, ""));
