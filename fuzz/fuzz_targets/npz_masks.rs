#![no_main]

use libfuzzer_sys::fuzz_target;
use lpgnn::data::Format;

fuzz_target!(|bytes: &[u8]| lpgnn_fuzz::data(bytes, Format::Npz, &["x.npz"], "x.npz"));
