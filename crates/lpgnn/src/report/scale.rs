use crate::train::Monitor;

/// What the values of trainings are, and how a page shows them.
pub(super) struct ValueScale {
    pub(super) name: &'static str,
    /// Whether they are shares of one, shown in percent.
    pub(super) share: bool,
}

impl ValueScale {
    pub(super) fn of(metric: Monitor, values: impl Iterator<Item = f64>) -> Self {
        let negative = |value: f64| value < 0.0 && value.is_finite();
        match metric {
            // No accuracy is below zero.
            Monitor::Auto if values.into_iter().any(negative) => {
                Self { name: "negative loss", share: false }
            }
            Monitor::R2 => Self { name: metric.title(), share: false },
            _ => Self { name: metric.title(), share: true },
        }
    }
}
