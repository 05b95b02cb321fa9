#![no_main]

use libfuzzer_sys::fuzz_target;
use lpgnn::data::Format;

const NAMES: [&str; 6] =
    ["nodes.csv.gz", "edges.csv.gz", "graphs.csv", "dataset.toml", "nodes.npy", "edges.npy"];

fuzz_target!(|bytes: &[u8]| lpgnn_fuzz::data(bytes, Format::Tables, &NAMES, ""));
