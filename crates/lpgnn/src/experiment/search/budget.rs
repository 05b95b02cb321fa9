use std::str::FromStr;
use std::time::Duration;

use crate::Error;

/// The budget of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// A number of trials.
    Trials(usize),
    /// A time budget.
    Time(Duration),
}

impl FromStr for Budget {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Option {
            option: "budget",
            value: text.to_owned(),
            expected: "a number of trials or a duration such as 30s, 10m, 2h is expected".into(),
        };
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let seconds = match &text[digits.len()..] {
            "" if number > 0 => {
                return Ok(Self::Trials(usize::try_from(number).map_err(|_| wrong())?));
            }
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return Err(wrong()),
        };
        Ok(Self::Time(Duration::from_secs(number.saturating_mul(seconds))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_number_or_a_time() {
        let parse = |text: &str| text.parse::<Budget>();
        assert!(matches!(parse("50"), Ok(Budget::Trials(50))));
        assert!(matches!(parse("2h"), Ok(Budget::Time(time)) if time.as_secs() == 7200));
        for wrong in ["", "0", "soon", "3d", "-1", "1.5h"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
