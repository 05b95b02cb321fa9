/// A stream of reproducible uniform numbers in `[0, 1)`.
pub fn uniform(seed: u64) -> impl FnMut() -> f64 {
    use rand::{Rng, SeedableRng};
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    move || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}
