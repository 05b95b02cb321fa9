use std::num::NonZeroUsize;

/// Parses an option that counts something: an integer from 1 to `MOST`.
pub(crate) fn count<const MOST: usize>(text: &str) -> Result<NonZeroUsize, String> {
    let parsed = text.parse().ok().filter(|count: &NonZeroUsize| count.get() <= MOST);
    parsed.ok_or_else(|| match MOST {
        usize::MAX => "an integer of at least 1 is expected".into(),
        _ => format!("an integer from 1 to {MOST} is expected"),
    })
}

/// Parses an option that counts something and may be as large as there are numbers.
pub(crate) fn positive(text: &str) -> Result<NonZeroUsize, String> {
    count::<{ usize::MAX }>(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_range() {
        assert_eq!(count::<9>("9").map(NonZeroUsize::get), Ok(9));
        for text in ["0", "10", "-1", "1.5", "", "99999999999999999999"] {
            assert_eq!(
                count::<9>(text),
                Err("an integer from 1 to 9 is expected".into()),
                "{text}"
            );
        }
        assert_eq!(positive("0"), Err("an integer of at least 1 is expected".into()));
    }
}
