#![no_main]

use libfuzzer_sys::fuzz_target;
use lpgnn::data::Format;

const NAMES: [&str; 1] = ["x.mat"];

fuzz_target!(|bytes: &[u8]| lpgnn_fuzz::data(bytes, Format::Matlab, &NAMES, "x.mat"));
