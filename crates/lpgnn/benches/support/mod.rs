//! What the benchmarks share: workloads, updates on them, the limits of the machine, and clocks.
#![allow(dead_code, reason = "no benchmark needs all of it")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are known")]

pub(crate) mod clock;
pub(crate) mod counted;
pub(crate) mod machine;
pub(crate) mod roofline;
pub(crate) mod training;
pub(crate) mod updates;
pub(crate) mod wire;
pub(crate) mod workload;
