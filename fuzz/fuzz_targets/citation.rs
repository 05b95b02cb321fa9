#![no_main]

use libfuzzer_sys::fuzz_target;
use lpgnn::data::Format;

const NAMES: [&str; 6] =
    ["edges.txt", "features.txt", "labels.txt", "train_idx.txt", "val_idx.txt", "test_idx.txt"];

fuzz_target!(|bytes: &[u8]| lpgnn_fuzz::data(bytes, Format::Citation, &NAMES, ""));
