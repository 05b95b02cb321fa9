//! Everything that is read, on thousands of damaged inputs: readers of data, models, checkpoints,
//! folders of runs and of results, settings, search spaces, events on live graphs.
//!
//! A damaged input is read and then behaves, or is refused in a sentence. It never panics, never
//! takes long or much memory, and nothing outside its own folder is written.
//!
//! 2,000 inputs each; `LPGNN_FUZZ=100000` makes it as many as told. `LPGNN_FUZZ_SEED` sets
//! where the random numbers start; an input that fails is named by its seed, and comes again with
//! `LPGNN_FUZZ=1 LPGNN_FUZZ_SEED=…`. With `LPGNN_CORPUS=DIR`, the undamaged inputs are written
//! there, as seeds for the coverage-guided fuzzers in `fuzz/`.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::print_stdout, reason = "a count is worth seeing")]

mod cost;
mod files;
mod mutate;
mod signed;

mod checkpoints;
mod events;
mod memory;
mod models;
mod readers;
mod result_folders;
mod run_folders;
mod settings;
mod spaces;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use lpgnn::Error;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use cost::{Watchdog, measure};
use files::Files;

/// No input is longer than a few ten thousand bytes, and nothing has reason to need more than this:
/// a handful of buffers of 256 kB.
const MEMORY: usize = 16 << 20;
const TIME: Duration = Duration::from_secs(2);

/// What is fuzzed.
struct Target<'a> {
    name: &'a str,
    /// What is read if it is not damaged.
    valid: &'a Files,
    /// Whether reading it may write into its folder.
    writes: bool,
}

impl Target<'_> {
    /// Damages the valid input again and again, tries the folder that holds it, and checks what
    /// that costs.
    fn fuzz(
        &self,
        damage: impl Fn(&mut ChaCha8Rng, &mut Files),
        attempt: impl Fn(&Path) -> Result<(), Error>,
    ) {
        if self.write_seed().is_break() {
            return;
        }
        let Self { name, valid, writes } = *self;
        let (inputs, first) = (number("LPGNN_FUZZ", 2000), number("LPGNN_FUZZ_SEED", 0));
        // In memory where that can be had: the test writes far more than it reads.
        let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let folder = place.path().join("here");
        std::fs::create_dir(&folder).unwrap();
        files::write(&folder, valid);
        attempt(&folder).unwrap_or_else(|error| panic!("the valid input is refused: {error}"));
        let watchdog = Watchdog::new();
        let mut accepted = 0;
        for seed in first..first + inputs {
            let mut damaged = valid.clone();
            damage(&mut ChaCha8Rng::seed_from_u64(seed), &mut damaged);
            if writes {
                std::fs::remove_dir_all(&folder).unwrap();
                std::fs::create_dir(&folder).unwrap();
                files::write(&folder, &damaged);
            } else {
                files::update(&folder, valid, &damaged);
            }
            let input = format!("{name}, seed {seed}");
            watchdog.watch(input.clone());
            let (outcome, cost) = measure(|| attempt(&folder));
            let outcome = outcome.unwrap_or_else(|| panic!("{input}: it panics"));
            assert!(cost.memory < MEMORY, "{input}: {cost:?}");
            assert!(cost.time < TIME, "{input}: {cost:?}");
            match outcome {
                Ok(()) => accepted += 1,
                Err(error) => sentence(&input, &error),
            }
            let outside = std::fs::read_dir(place.path()).unwrap().count() - 1;
            assert_eq!(outside, 0, "{input}: something was written outside its folder");
            if !writes {
                files::update(&folder, &damaged, valid);
            }
        }
        println!("{name}: {accepted} of {inputs} inputs are still valid");
        // Damage that is always noticed at the door would test nothing behind it.
        assert!(inputs < 100 || accepted > 0, "{name}: no input was accepted");
    }

    /// Writes the valid input as a seed of coverage-guided fuzzing, if that is asked for.
    fn write_seed(&self) -> ControlFlow<()> {
        let Some(corpus) = std::env::var_os("LPGNN_CORPUS") else {
            return ControlFlow::Continue(());
        };
        let folder = Path::new(&corpus).join(self.name.replace(' ', "_"));
        std::fs::create_dir_all(&folder).unwrap();
        let seed = files::join(self.valid);
        std::fs::write(folder.join(format!("valid-{}", seed.len())), seed).unwrap();
        // The description of a model can be damaged without its checksum.
        for contents in self.valid.iter().filter_map(|(_, file)| signed::Contents::read(file)) {
            std::fs::write(folder.join("about"), contents.about).unwrap();
        }
        ControlFlow::Break(())
    }
}

fn number(key: &str, default: u64) -> u64 {
    std::env::var(key).map_or(default, |text| text.parse().expect("this is a number"))
}

/// Checks that an error is one sentence, for people.
fn sentence(input: &str, error: &Error) {
    let message = error.to_string();
    assert!(
        !message.is_empty() && !message.contains('\n') && message.len() < 1000,
        "{input}: {message:?}"
    );
}
