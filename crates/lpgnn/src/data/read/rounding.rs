/// How far rounding to single precision moves the values of a column, beside how far these are apart.
///
/// 1,700,000,001 and 1,700,000,002 are the same number in single precision, and so are 1e-50 and 2e-50: a column of such
/// values would be read without an error, and mean nothing.
#[derive(Clone, Copy)]
pub(super) struct Rounding {
    smallest: f64,
    largest: f64,
    moved: f64,
    /// The last value, and whether two values in a row have become one.
    last: f64,
    lost: bool,
}

/// The share of their range by which rounding may move values.
const SHARE: f64 = 1.0 / 32.0;

impl Rounding {
    pub(super) fn new() -> Self {
        let (smallest, largest) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { smallest, largest, moved: 0.0, last: f64::NAN, lost: false }
    }

    /// The value in single precision.
    #[allow(clippy::cast_possible_truncation, reason = "that is what is watched")]
    #[allow(clippy::float_cmp, reason = "numbers that are the same are meant")]
    pub(super) fn round(&mut self, x: f64) -> f32 {
        let rounded = x as f32;
        self.smallest = self.smallest.min(x);
        self.largest = self.largest.max(x);
        self.moved = self.moved.max((x - f64::from(rounded)).abs());
        self.lost |= x != self.last && rounded == self.last as f32;
        self.last = x;
        rounded
    }

    /// What is wrong with the values of all rows, as the end of a sentence.
    ///
    /// # Errors
    ///
    /// When single precision cannot tell them apart.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self { smallest, largest, moved, lost, .. } = *self;
        if !lost || moved <= SHARE * (largest - smallest) {
            return Ok(());
        }
        Err(format!(
            "has values from {smallest:?} to {largest:?}, which single precision cannot distinguish: \
             subtract a constant or multiply by one"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_cannot_be_told_apart_are_noticed() {
        let check = |values: &[f64]| {
            let mut rounding = Rounding::new();
            for &x in values {
                rounding.round(x);
            }
            rounding.check().is_ok()
        };
        assert!(!check(&[1.7e9, 1.7e9 + 39.0]));
        assert!(!check(&[0.0, 1e-50]));
        assert!(!check(&[1e-50, 2e-50]));
        assert!(check(&[1.7e9, 1.7e9 + 1e7]));
        assert!(check(&[0.1, 0.1]));
        // Neighbours in single precision, as they are written.
        assert!(check(&[0.1, 0.100_000_01]));
        assert!(check(&[0.1]));
        assert!(check(&[0.0, 1e-50, 0.5]));
        assert!(check(&[]));
    }
}
