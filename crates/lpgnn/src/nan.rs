//! JSON has no word for a number that is not finite: `null` is written for it, and read as NaN here.

use serde::{Deserialize, Deserializer};

/// A number, or NaN for `null`.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Numbers, each NaN for `null`.
pub(crate) fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let numbers: Vec<Option<f64>> = Vec::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

/// A number that is there, NaN for `null`. With `default`, what is missing is none; who writes it leaves
/// out what is none.
pub(crate) fn optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    number(deserializer).map(Some)
}

/// Three numbers, each NaN for `null`.
pub(crate) fn three<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[f64; 3], D::Error> {
    let numbers: [Option<f64>; 3] = Deserialize::deserialize(deserializer)?;
    Ok(numbers.map(|number| number.unwrap_or(f64::NAN)))
}

#[cfg(test)]
mod tests {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Numbers {
        #[serde(deserialize_with = "super::number")]
        one: f64,
        #[serde(deserialize_with = "super::numbers")]
        some: Vec<f64>,
        #[serde(deserialize_with = "super::three")]
        three: [f64; 3],
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "super::optional"
        )]
        there: Option<f64>,
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "super::optional"
        )]
        missing: Option<f64>,
    }

    #[test]
    fn what_is_not_finite_comes_back_as_nan() {
        let numbers = Numbers {
            one: f64::NAN,
            some: vec![1.5, f64::INFINITY],
            three: [0.1, f64::NAN, f64::NEG_INFINITY],
            there: Some(f64::NAN),
            missing: None,
        };
        let text = serde_json::to_string(&numbers).unwrap();
        let again: Numbers = serde_json::from_str(&text).unwrap();
        assert!(again.one.is_nan() && again.some[1].is_nan());
        assert_eq!(again.some[0].to_bits(), 1.5_f64.to_bits());
        assert!(again.there.is_some_and(f64::is_nan) && again.missing.is_none());
        assert!(again.three[1].is_nan() && again.three[2].is_nan());
    }
}
