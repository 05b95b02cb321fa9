use std::time::{Duration, Instant};

use lpgnn::train::StepProgress;

/// Decides when the progress within an epoch is worth telling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slow {
    /// When the epoch began.
    begun: Instant,
    /// When the last line was printed.
    printed: Instant,
}

/// An epoch or evaluation that takes longer shows its progress.
const LONG: Duration = Duration::from_secs(2);
/// Without a terminal, progress within epochs is printed only after so long without a line.
const SILENCE: Duration = Duration::from_secs(10);

impl Slow {
    pub(crate) fn new(now: Instant) -> Self {
        Self { begun: now, printed: now }
    }

    /// An epoch is over.
    pub(crate) fn epoch(&mut self, now: Instant) {
        self.begun = now;
    }

    /// A line was printed.
    pub(crate) fn line(&mut self, now: Instant) {
        self.printed = now;
    }

    /// The text for a progress bar, if the epoch takes long.
    pub(crate) fn message(&self, step: &StepProgress, now: Instant) -> Option<String> {
        let long = now - self.begun;
        (long >= LONG).then(|| format!("epoch {}: {step}, {} s", step.epoch, long.as_secs()))
    }

    /// The same to be printed as a line: not more often than a log can bear.
    pub(crate) fn plain(&mut self, step: &StepProgress, now: Instant) -> Option<String> {
        let message = self.message(step, now).filter(|_| now - self.printed >= SILENCE)?;
        self.printed = now;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use lpgnn::train::Stage;

    use super::*;

    #[test]
    fn a_slow_epoch_is_told_at_once_on_a_terminal_and_rarely_in_a_log() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut slow = Slow::new(start);
        let step = StepProgress { epoch: 3, stage: Stage::Update, number: 7, total: 9, passes: 2 };
        assert_eq!(slow.message(&step, after(1)), None);
        let said = slow.message(&step, after(2));
        assert_eq!(said.as_deref(), Some("epoch 3: update 7 of 9, pass 2, 2 s"));
        let plain: Vec<u64> =
            (0..60).filter(|&second| slow.plain(&step, after(second)).is_some()).collect();
        assert_eq!(plain, [10, 20, 30, 40, 50]);
        slow.epoch(after(60));
        assert_eq!(slow.plain(&step, after(61)), None);
        slow.line(after(62));
        assert_eq!(slow.plain(&step, after(71)), None);
        assert!(slow.plain(&step, after(72)).is_some());
    }
}
