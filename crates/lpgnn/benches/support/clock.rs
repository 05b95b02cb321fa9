//! Clocks and memory.

use std::time::Instant;

/// Milliseconds per call, sorted, over blocks of about a tenth of a second (`50 ms` where less than
/// a second is asked for), for at least `seconds` and three blocks.
pub(crate) fn blocks(seconds: f64, mut step: impl FnMut()) -> Vec<f64> {
    let begin = Instant::now();
    step();
    let block = if seconds < 1.0 { 0.05 } else { 0.1 };
    let per_block = ((block / begin.elapsed().as_secs_f64()) as usize).clamp(1, 1 << 20);
    let (mut blocks, begin) = (vec![], Instant::now());
    while blocks.len() < 3 || begin.elapsed().as_secs_f64() < seconds {
        let block = Instant::now();
        for _ in 0..per_block {
            step();
        }
        blocks.push(1e3 * block.elapsed().as_secs_f64() / per_block as f64);
    }
    blocks.sort_by(f64::total_cmp);
    blocks
}

/// The middle of sorted numbers.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

/// The shortest of many calls in seconds: the one that was disturbed least.
pub(crate) fn shortest(seconds: f64, mut call: impl FnMut()) -> f64 {
    call();
    let (mut least, begin) = (f64::INFINITY, Instant::now());
    while begin.elapsed().as_secs_f64() < seconds {
        let once = Instant::now();
        call();
        least = least.min(once.elapsed().as_secs_f64());
    }
    least
}

/// The largest memory of this process so far; 0 where the system does not say.
pub(crate) fn peak_megabytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kilobytes.unwrap_or(0) / 1024
}
