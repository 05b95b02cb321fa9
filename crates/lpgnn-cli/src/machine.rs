//! What a result should say about where and when it was made.

use std::time::{SystemTime, UNIX_EPOCH};

/// The processor, as far as the operating system tells.
pub(crate) fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// Seconds that the processor has worked for this thread, where the operating system tells; else
/// those that have passed.
pub(crate) fn processor_seconds() -> f64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
    }
    #[cfg(not(unix))]
    {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

/// Today in Greenwich, as in 2024-02-29.
pub(crate) fn today() -> String {
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
    fn work_takes_time() {
        let begun = processor_seconds();
        while processor_seconds() - begun < 1e-3 {}
        assert!(processor_seconds() > begun);
    }

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
