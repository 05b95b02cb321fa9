//! How much memory this process may take.
//!
//! Memory belongs to the process, so its limit does too: it is one number for all threads and all calls,
//! 80 % of what the machine has available unless [`set_limit`](crate::memory::set_limit) is called. Whatever takes memory
//! in proportion to a number that a file, a model or a setting states compares that number with
//! what is left *before* it allocates, and fails with [`Error::Memory`](crate::Error::Memory).
//!
//! The limit is a promise about what is asked for, not an allocator: small amounts are not counted.
//! The program `lpgnn` also has the operating system enforce it.

use std::fmt::Display;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;

/// The limit that was set; 0 if none was.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// The limit in bytes: the one that was [set](set_limit), or else 80 % of the memory that was available
/// when this was first called. A limit of the control group or of the address space
/// (`ulimit -v`) counts as the memory of the machine. Where the operating system does not tell,
/// there is no limit: [`u64::MAX`].
pub fn limit() -> u64 {
    static DEFAULT: OnceLock<u64> = OnceLock::new();
    match LIMIT.load(Ordering::Relaxed) {
        0 => *DEFAULT.get_or_init(|| machine().map_or(u64::MAX, |bytes| bytes / 5 * 4)),
        limit => limit,
    }
}

/// Sets the limit, for all threads and from now on. Work that has begun is not interrupted.
pub fn set_limit(bytes: u64) {
    LIMIT.store(bytes.max(1), Ordering::Relaxed);
}

/// The size that a user writes: `4G`, `512M`, `1.5GiB`, or a number of bytes.
///
/// ```
/// assert_eq!(lpgnn::memory::parse_size("1.5 GiB")?, 3 << 29);
/// # Ok::<(), lpgnn::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Option`] if it is none.
pub fn parse_size(text: &str) -> Result<u64, Error> {
    let wrong = || Error::Option {
        option: "max-memory",
        value: format!("“{text}”"),
        expected: "a size such as 800M or 4G is expected".into(),
    };
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b')
    {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * f64::from(shift).exp2();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked here")]
    if bytes >= 1.0 && bytes < u64::MAX as f64 { Ok(bytes as u64) } else { Err(wrong()) }
}

/// Amounts below are not worth a look at how much is in use.
const SMALL: u64 = 1 << 22;

/// # Errors
///
/// [`Error::Memory`] if another `bytes` for `what` would exceed the limit.
pub(crate) fn require(bytes: u64, what: impl Display) -> Result<(), Error> {
    let limit = limit();
    if bytes < SMALL.min(limit) {
        return Ok(());
    }
    let used = in_use();
    if used.saturating_add(bytes) <= limit {
        return Ok(());
    }
    Err(Error::Memory { what: what.to_string(), bytes, left: limit.saturating_sub(used), limit })
}

/// The bytes of so many numbers of type `S`; a product that overflows is more than any limit.
pub(crate) fn bytes_of<S>(factors: &[usize]) -> u64 {
    let size = std::mem::size_of::<S>();
    factors.iter().fold(size as u64, |bytes, &factor| bytes.saturating_mul(factor as u64))
}

/// `2.7 GB`, `350 MB`, `12 kB`
pub(crate) fn readable(bytes: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let bytes = bytes as f64;
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes < 10.0 * unit => format!("{:.1} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.0} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

/// The memory in use, as far as the operating system tells.
fn in_use() -> u64 {
    kilobytes("/proc/self/status", "VmRSS:").unwrap_or(0)
}

/// The memory that this process can have.
fn machine() -> Option<u64> {
    let available = kilobytes("/proc/meminfo", "MemAvailable:");
    [available, control_group(), address_space()].into_iter().flatten().min()
}

/// The value of a line `name   123 kB`, in bytes.
fn kilobytes(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The smallest limit of the control groups that the process is in.
fn control_group() -> Option<u64> {
    let number = |path: &Path| std::fs::read_to_string(path).ok()?.trim().parse().ok();
    // Version 1 has one file per kind of resource, mounted at its own place.
    let first = number(Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let second = root
        .join(own)
        .ancestors()
        .take_while(|group| group.starts_with(root))
        .filter_map(|group| number(&group.join("memory.max")))
        .min();
    first.into_iter().chain(second).min()
}

/// The soft limit that `ulimit -v` shows.
fn address_space() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    soft.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_two_digits() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (2_684_354_560, "2.7 GB"),
            (35_000_000_000, "35 GB"),
        ] {
            assert_eq!(readable(bytes), text);
        }
    }

    #[test]
    fn sizes_are_read_in_the_usual_spellings() {
        for (text, bytes) in [
            ("4G", 4 << 30),
            ("4g", 4 << 30),
            ("1.5GiB", 3 << 29),
            ("800 MB", 800 << 20),
            ("1K", 1 << 10),
            ("2T", 2 << 40),
            ("123", 123),
        ] {
            assert_eq!(parse_size(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "G", "0", "-1G", "4X", "1e99G", "99999999T", "4 G x", "nan"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_no_machine_has_is_refused() {
        assert!(require(1 << 10, "a little").is_ok());
        assert_eq!(bytes_of::<f32>(&[3, 5]), 60);
        assert_eq!(bytes_of::<f32>(&[usize::MAX, 5]), u64::MAX);
        if cfg!(target_os = "linux") {
            let error = require(1 << 60, "a claim").unwrap_err().to_string();
            assert!(error.starts_with("a claim takes 1152922 TB, but only "), "{error}");
            assert!(in_use() > 1 << 20 && limit() < 1 << 60);
        }
    }
}
