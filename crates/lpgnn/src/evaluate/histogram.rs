/// How many numbers lie in each of some bins of equal width, from the smallest to the largest number. Numbers that are
/// not finite do not count.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The smallest number.
    pub min: f64,
    /// The largest number.
    pub max: f64,
    /// The sum of all numbers.
    pub sum: f64,
    /// The sum of their squares.
    pub sum_of_squares: f64,
    /// How many numbers lie in each bin; one on the edge of two is in the upper one.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// Number of bins, unless all numbers are the same.
    pub const BINS: usize = 30;

    /// Of these numbers; none of none.
    ///
    /// ```
    /// use lpgnn::evaluate::Histogram;
    ///
    /// let some = Histogram::of([0.0, 0.1, 15.0, 30.0, f64::NAN].into_iter()).unwrap();
    /// assert_eq!((some.min, some.max, some.sum), (0.0, 30.0, 45.1));
    /// assert_eq!((some.counts[0], some.counts[15], some.counts[29]), (2, 1, 1));
    /// ```
    #[allow(clippy::needless_pass_by_value, reason = "iterators are passed so")]
    pub fn of(numbers: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let finite = || numbers.clone().filter(|x| x.is_finite());
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut sum, mut sum_of_squares) = (0.0, 0.0);
        for x in finite() {
            (min, max) = (min.min(x), max.max(x));
            sum += x;
            sum_of_squares += x * x;
        }
        if min > max {
            return None;
        }
        let mut counts = vec![0; if min < max { Self::BINS } else { 1 }];
        let (bins, last) = (counts.len() as f64, counts.len() - 1);
        for x in finite() {
            let place = (x - min) / (max - min) * bins;
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is a number of bins, or NaN where there is no width, which is zero"
            )]
            let bin = place as usize;
            counts[bin.min(last)] += 1;
        }
        Some(Self { min, max, sum, sum_of_squares, counts })
    }

    /// The upper end of a bin.
    pub fn upper(&self, bin: usize) -> f64 {
        let share = (bin + 1) as f64 / self.counts.len() as f64;
        if bin + 1 == self.counts.len() {
            self.max
        } else {
            self.min + share * (self.max - self.min)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_counted_once() {
        let numbers = (0..1000_i32).map(|k| f64::from(k * k % 977) - 400.0);
        let all = Histogram::of(numbers).unwrap();
        assert_eq!((all.counts.len(), all.counts.iter().sum::<u64>()), (Histogram::BINS, 1000));
        assert!((0..29).all(|bin| all.upper(bin) < all.upper(bin + 1)));
        let same = Histogram::of([2.0, 2.0].into_iter()).unwrap();
        assert_eq!((same.counts.clone(), same.upper(0).to_bits()), (vec![2], 2.0_f64.to_bits()));
        assert_eq!(Histogram::of([f64::NAN, f64::INFINITY].into_iter()), None);
    }
}
