/// How numbers are distributed.
///
/// The quantile `q` of `n` numbers in order lies at the place `q (n − 1)`, between two of them where that
/// is no integer: as the default of `numpy.quantile`. Numbers that are not finite are the largest.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Quantiles {
    /// How many numbers there are.
    pub count: usize,
    /// Their mean.
    #[serde(with = "crate::nan::number")]
    pub mean: f64,
    /// The smallest.
    #[serde(with = "crate::nan::number")]
    pub min: f64,
    /// 5 % are below.
    #[serde(with = "crate::nan::number")]
    pub p5: f64,
    /// A quarter is below.
    #[serde(with = "crate::nan::number")]
    pub p25: f64,
    /// The median.
    #[serde(with = "crate::nan::number")]
    pub p50: f64,
    /// A quarter is above.
    #[serde(with = "crate::nan::number")]
    pub p75: f64,
    /// 5 % are above.
    #[serde(with = "crate::nan::number")]
    pub p95: f64,
    /// The largest.
    #[serde(with = "crate::nan::number")]
    pub max: f64,
}

impl Quantiles {
    /// Of these numbers; none of none.
    ///
    /// ```
    /// use lpgnn::evaluate::Quantiles;
    ///
    /// let four = Quantiles::of([4.0, 1.0, 3.0, 2.0].into_iter()).unwrap();
    /// assert_eq!((four.min, four.p25, four.p50, four.max), (1.0, 1.75, 2.5, 4.0));
    /// ```
    pub fn of(numbers: impl Iterator<Item = f64>) -> Option<Self> {
        // Some NaNs have a sign, which would put them first.
        let mut numbers: Vec<f64> =
            numbers.map(|x| if x.is_nan() { f64::NAN } else { x }).collect();
        let (count, sum) = (numbers.len(), numbers.iter().sum::<f64>());
        let last = count.checked_sub(1)?;
        // From the smallest quantile to the largest: what lies below the last one found stays below.
        let mut found = 0;
        let mut at = |q: f64| {
            let place = q * last as f64;
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a count is a count"
            )]
            let below = place.floor() as usize;
            let share = place - below as f64;
            let (_, &mut low, above) =
                numbers[found..].select_nth_unstable_by(below - found, f64::total_cmp);
            found = below;
            match above.iter().copied().min_by(f64::total_cmp) {
                // Without the sum, which would make NaN of an infinite neighbour.
                Some(next) if share > 0.0 => low + share * (next - low),
                _ => low,
            }
        };
        let [min, p5, p25, p50, p75, p95, max] =
            [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0].map(&mut at);
        Some(Self { count, mean: sum / count as f64, min, p5, p25, p50, p75, p95, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_numbers_in_order() {
        for count in [1_u32, 2, 3, 20, 21, 1000] {
            let numbers: Vec<f64> = (0..count).map(|k| f64::from(k * 7919 % 997)).collect();
            let mut sorted = numbers.clone();
            sorted.sort_by(f64::total_cmp);
            let of = Quantiles::of(numbers.into_iter()).unwrap();
            for (twentieths, found) in [(1, of.p5), (5, of.p25), (10, of.p50), (19, of.p95)] {
                let place = twentieths * (sorted.len() - 1);
                let (low, high) = (sorted[place / 20], sorted[place.div_ceil(20)]);
                let expected = low + (place % 20) as f64 / 20.0 * (high - low);
                assert!((found - expected).abs() < 1e-9, "{twentieths} of {count}: {found}");
            }
            assert_eq!((of.min.to_bits(), of.count), (sorted[0].to_bits(), sorted.len()));
            assert_eq!(of.max.to_bits(), sorted[sorted.len() - 1].to_bits());
        }
    }

    #[test]
    fn what_is_not_a_number_is_the_largest() {
        let some = Quantiles::of([-f64::NAN, 2.0, 1.0].into_iter()).unwrap();
        assert!(some.max.is_nan() && some.mean.is_nan());
        assert_eq!(
            (some.min.to_bits(), some.p50.to_bits()),
            (1.0_f64.to_bits(), 2.0_f64.to_bits())
        );
        let one = Quantiles::of(std::iter::once(3.0)).unwrap();
        assert_eq!((one.p5.to_bits(), one.p95.to_bits()), (3.0_f64.to_bits(), 3.0_f64.to_bits()));
        assert_eq!(Quantiles::of(std::iter::empty()), None);
    }
}
