//! What messages between two processes take.

use std::time::Instant;

use lpgnn::graph::Communicator;
use serde_json::{Value, json};

/// Bytes of the messages that are tried.
const SIZES: [usize; 5] = [8, 1 << 12, 1 << 16, 1 << 20, 1 << 24];

/// The least seconds of an exchange between all ranks, each of which sends so many bytes to every other, by size.
pub(crate) fn ping(ranks: &dyn Communicator, seconds: f64) -> Value {
    let (own, count) = (ranks.rank(), ranks.ranks());
    let others = || (0..count).filter(|&other| other != own);
    let found = SIZES.map(|size| {
        let bytes = vec![1_u8; size];
        let mut received = vec![vec![0_u8; size]; count - 1];
        let mut once = || {
            let sends: Vec<(usize, &[u8])> = others().map(|to| (to, &bytes[..])).collect();
            let places = received.iter_mut().map(|bytes| &mut bytes[..]);
            let mut receives: Vec<(usize, &mut [u8])> = others().zip(places).collect();
            let begin = Instant::now();
            ranks.exchange(&sends, &mut receives);
            begin.elapsed().as_secs_f64()
        };
        once();
        let each = seconds / SIZES.len() as f64;
        let times = ranks.all(once())[0];
        let tries = ((each / times) as usize).clamp(3, 10_000);
        let mut all: Vec<f64> = (0..tries).map(|_| once()).collect();
        all.sort_by(f64::total_cmp);
        json!({ "bytes": size, "seconds": all[all.len() / 2], "least": all[0] })
    });
    json!({ "ranks": count, "messages": found })
}
