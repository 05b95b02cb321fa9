#![no_main]

use libfuzzer_sys::fuzz_target;
use lpgnn::data::Format;

const NAMES: [&str; 1] = ["g.txt"];

fuzz_target!(|bytes: &[u8]| lpgnn_fuzz::data(bytes, Format::Gin, &NAMES, "g.txt"));
