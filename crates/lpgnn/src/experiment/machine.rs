//! The provenance of a result: machine, date and software.

use std::time::{SystemTime, UNIX_EPOCH};

/// The software that computed a result.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Versions {
    /// The version of this library.
    pub library: String,
    /// The commit that the program was built from, if it is known.
    pub commit: Option<String>,
    /// The target that rustc compiled for, as in `x86_64-unknown-linux-gnu`.
    pub target: String,
}

/// The machine that computed a result.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// The model of the processor, as far as the operating system tells; else its architecture.
    pub cpu: String,
    /// Number of available processors.
    pub cores: usize,
    /// Number of threads used.
    pub threads: usize,
}

impl Versions {
    /// This program. Builds outside the repository can set the commit with `LPGNN_COMMIT`.
    pub fn here() -> Self {
        Self {
            library: env!("CARGO_PKG_VERSION").into(),
            commit: option_env!("LPGNN_COMMIT").map(Into::into),
            target: env!("LPGNN_TARGET").into(),
        }
    }
}

impl Machine {
    /// This machine, with the current number of threads.
    pub fn here() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Self { cpu: cpu(), cores, threads: rayon::current_num_threads() }
    }
}

fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// Today's date in UTC, as in 2024-02-29.
pub fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = date(since.as_secs() / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// The date that lies so many days behind the first of January 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Years that begin in March have their leap day at the end, and repeat after 400.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * era + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (19_782, (2024, 2, 29)),
            (20_819, (2027, 1, 1)),
        ] {
            assert_eq!(date(days), expected, "{days}");
        }
    }
}
