#![no_main]

use libfuzzer_sys::fuzz_target;
use lpgnn::data::Format;

const NAMES: [&str; 6] = [
    "conmattrain.mat",
    "nodelabtrain.mat",
    "tartrain.mat",
    "conmattest.mat",
    "nodelabtest.mat",
    "tartest.mat",
];

fuzz_target!(|bytes: &[u8]| lpgnn_fuzz::data(bytes, Format::Matlab, &NAMES, ""));
