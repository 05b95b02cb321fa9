//! What the processor and its memory can do at best.

use std::hint::black_box;

use lpgnn::kernels;

use super::clock::shortest;

/// The limits of the machine, for some number of threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// `a ← b + s c` over arrays far larger than any cache, in bytes per second.
    pub(crate) triad: f64,
    /// Independent multiply-adds, in operations per second.
    pub(crate) peak: f64,
    /// Our product of `[rows, 64]` and `[64, 48]` in cache, in operations per second.
    pub(crate) product: f64,
    /// Our tanh in cache, in values per second.
    pub(crate) tanh: f64,
}

impl Machine {
    /// Measures for about two seconds, on all threads of the pool this is called from.
    pub(crate) fn measure() -> Self {
        let threads = rayon::current_num_threads() as f64;
        let product = threads * product();
        Self {
            triad: triad(),
            // Where the loop below is not written for the processor, the product is the best known.
            peak: peak().map_or(product, |peak| threads * peak),
            product,
            tanh: threads * tanh(),
        }
    }
}

/// The slowest thread counts: the shortest call on every thread at once.
fn on_all_threads(seconds: f64, call: impl Fn() + Sync) -> f64 {
    let times = rayon::broadcast(|_| shortest(seconds, &call));
    times.into_iter().fold(0.0, f64::max)
}

fn triad() -> f64 {
    use rayon::prelude::*;
    const LEN: usize = 1 << 25;
    let (mut a, b, c) = (vec![0.0_f32; LEN], vec![1.0_f32; LEN], vec![2.0_f32; LEN]);
    let seconds = shortest(0.8, || {
        let chunk = LEN.div_ceil(rayon::current_num_threads());
        let parts = a.par_chunks_mut(chunk).zip(b.par_chunks(chunk).zip(c.par_chunks(chunk)));
        parts.for_each(|(a, (b, c))| {
            for ((a, &b), &c) in a.iter_mut().zip(b).zip(c) {
                *a = b + 1.5 * c;
            }
        });
        black_box(&mut a);
    });
    3.0 * 4.0 * LEN as f64 / seconds
}

fn product() -> f64 {
    const ROWS: usize = 96;
    let small = kernels::Small::new(&vec![0.5; 64 * 48], 64, 48);
    let seconds = on_all_threads(0.3, || {
        let (a, mut c) = (vec![0.25; ROWS * 64], vec![0.0; ROWS * kernels::row(48)]);
        for _ in 0..1000 {
            small.product(ROWS, black_box(&a), &mut c);
            black_box(&mut c);
        }
    });
    1000.0 * 2.0 * (ROWS * 64 * 48) as f64 / seconds
}

fn tanh() -> f64 {
    let seconds = on_all_threads(0.3, || {
        let mut y = vec![0.5; 4096];
        for _ in 0..500 {
            kernels::tanh(black_box(&mut y));
        }
    });
    500.0 * 4096.0 / seconds
}

/// Multiply-adds in chains that do not wait for each other, as many as cover the latency on all
/// ports: operations per second on each thread.
macro_rules! chains {
    ($features:literal, $splat:ident, $fma:ident, $lanes:literal, $chains:literal) => {{
        const ROUNDS: usize = 1_000_000;

        #[target_feature(enable = $features)]
        fn chains() {
            let (m, d) = ($splat(black_box(0.999_999)), $splat(black_box(1e-7)));
            let mut sums = [$splat(black_box(1.0)); $chains];
            for _ in 0..ROUNDS {
                for sum in &mut sums {
                    *sum = $fma(*sum, m, d);
                }
            }
            black_box(sums);
        }

        // SAFETY: the processor has been found to have these features.
        let seconds = on_all_threads(0.3, || unsafe { chains() });
        (ROUNDS * $chains * $lanes * 2) as f64 / seconds
    }};
}

/// By the widest multiply-add the processor has, whatever our loops run on.
#[cfg(target_arch = "x86_64")]
fn peak() -> Option<f64> {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_set1_ps, _mm512_fmadd_ps, _mm512_set1_ps};

    // Not all processors have twice as many with vectors twice as long.
    let wide = is_x86_feature_detected!("avx512f")
        .then(|| chains!("avx512f", _mm512_set1_ps, _mm512_fmadd_ps, 16, 16));
    let narrow = (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"))
        .then(|| chains!("avx2,fma", _mm256_set1_ps, _mm256_fmadd_ps, 8, 12));
    wide.into_iter().chain(narrow).reduce(f64::max)
}

#[cfg(target_arch = "aarch64")]
fn peak() -> Option<f64> {
    use std::arch::aarch64::{vdupq_n_f32, vfmaq_f32};

    Some(chains!("neon", vdupq_n_f32, vfmaq_f32, 4, 24))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn peak() -> Option<f64> {
    None
}
