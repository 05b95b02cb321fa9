//! JSON has no number that is not finite: `"NaN"`, `"Infinity"` and `"-Infinity"` are written for them, as in the
//! JSON of Protocol Buffers, and read again as what they were. Where `null` was written for them, NaN is read.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number as JSON has it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Finite(f64),
    Other(Name),
    Null,
}

#[derive(Serialize, Deserialize)]
enum Name {
    #[serde(rename = "NaN")]
    Nan,
    #[serde(rename = "Infinity")]
    Infinity,
    #[serde(rename = "-Infinity")]
    MinusInfinity,
}

impl From<f64> for Written {
    fn from(x: f64) -> Self {
        match x {
            _ if x.is_finite() => Self::Finite(x),
            f64::INFINITY => Self::Other(Name::Infinity),
            f64::NEG_INFINITY => Self::Other(Name::MinusInfinity),
            _ => Self::Other(Name::Nan),
        }
    }
}

impl From<Written> for f64 {
    fn from(written: Written) -> Self {
        match written {
            Written::Finite(x) => x,
            Written::Other(Name::Infinity) => Self::INFINITY,
            Written::Other(Name::MinusInfinity) => Self::NEG_INFINITY,
            Written::Other(Name::Nan) | Written::Null => Self::NAN,
        }
    }
}

/// A number.
pub(crate) mod number {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Written};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(crate) fn serialize<S: Serializer>(x: &f64, to: S) -> Result<S::Ok, S::Error> {
        Written::from(*x).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Written::deserialize(from).map(f64::from)
    }
}

/// Numbers.
pub(crate) mod numbers {
    use super::{Deserialize, Deserializer, Serializer, Written};

    pub(crate) fn serialize<S: Serializer>(numbers: &[f64], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(numbers.iter().map(|&x| Written::from(x)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        let numbers: Vec<Written> = Vec::deserialize(from)?;
        Ok(numbers.into_iter().map(f64::from).collect())
    }
}

/// Three numbers.
pub(crate) mod three {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Written};

    pub(crate) fn serialize<S: Serializer>(numbers: &[f64; 3], to: S) -> Result<S::Ok, S::Error> {
        numbers.map(Written::from).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[f64; 3], D::Error> {
        let numbers: [Written; 3] = Deserialize::deserialize(from)?;
        Ok(numbers.map(f64::from))
    }
}

/// A number, or `null` for none. With `default`, what is missing is none too.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Written};

    #[allow(clippy::ref_option, reason = "serde asks for it")]
    pub(crate) fn serialize<S: Serializer>(x: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        x.map(Written::from).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        let number: Option<Written> = Option::deserialize(from)?;
        Ok(number.map(f64::from))
    }
}

#[cfg(test)]
mod tests {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Numbers {
        #[serde(with = "super::number")]
        one: f64,
        #[serde(with = "super::numbers")]
        some: Vec<f64>,
        #[serde(with = "super::three")]
        three: [f64; 3],
        #[serde(default, with = "super::optional")]
        there: Option<f64>,
        #[serde(default, with = "super::optional")]
        none: Option<f64>,
    }

    #[test]
    fn whatever_is_written_is_read_again() {
        let numbers = Numbers {
            one: f64::NAN,
            some: vec![1.5, f64::INFINITY, 0.1, 3.0],
            three: [0.1, f64::NAN, f64::NEG_INFINITY],
            there: Some(f64::INFINITY),
            none: None,
        };
        let text = serde_json::to_string(&numbers).unwrap();
        assert_eq!(
            text,
            r#"{"one":"NaN","some":[1.5,"Infinity",0.1,3.0],"three":[0.1,"NaN","-Infinity"],"there":"Infinity","none":null}"#
        );
        let again: Numbers = serde_json::from_str(&text).unwrap();
        assert!(again.one.is_nan() && again.three[1].is_nan());
        let bits = |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&again.some), bits(&numbers.some));
        assert_eq!(again.three[2].to_bits(), f64::NEG_INFINITY.to_bits());
        assert_eq!((again.there, again.none), (numbers.there, None));
    }

    #[test]
    fn null_and_integers_are_numbers_too() {
        let text = r#"{"one":null,"some":[2,null],"three":[1,2,3]}"#;
        let read: Numbers = serde_json::from_str(text).unwrap();
        assert!(read.one.is_nan() && read.some[1].is_nan());
        assert_eq!(read.some[0].to_bits(), 2.0_f64.to_bits());
        assert!(serde_json::from_str::<Numbers>(&text.replace("null", "\"many\"")).is_err());
    }
}
