//! Words that spreadsheets write for numbers and dates.

/// The advice for a column of which all words are numbers or dates to whoever wrote them, with the first such word; none if they are words.
///
/// `1,234.5`, `0,5`, `12 %`, `€3.50`, `'7` and `2024-05-31` are each a category of its own when they are read as words, and mean nothing then.
pub(super) fn meant(words: &[Box<str>]) -> Option<(&str, &'static str)> {
    if words.iter().all(|word| is_number(word) || word.parse::<f64>().is_ok()) {
        let advice =
            "a number as a spreadsheet shows it: write it with a decimal point and nothing else";
        return words.iter().find(|word| is_number(word)).map(|word| (&**word, advice));
    }
    let dates = words.iter().all(|word| is_date(word));
    words
        .first()
        .filter(|_| dates)
        .map(|word| (&**word, "a date: write a number, for instance of days"))
}

/// `1,234.5`, `1.234,5`, `0,5`, `12 %`, `€3.50`, `'7`; not what [`f64`] reads.
fn is_number(word: &str) -> bool {
    let before = |c: char| "$€£¥'+-−".contains(c) || c.is_whitespace();
    let after = |c: char| "%‰$€£¥".contains(c) || c.is_whitespace();
    let bare = word.trim_start_matches(before).trim_end_matches(after);
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    if word.parse::<f64>().is_ok()
        || !digit(bare.chars().next())
        || !digit(bare.chars().next_back())
    {
        return false;
    }
    bare.parse::<f64>().is_ok() || in_parts(bare)
}

/// Groups of three digits with one separator, and then a fraction with another one, of which at least one is there.
fn in_parts(bare: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let whole = |text: &str, separator: char| {
        let mut groups = text.split(separator);
        let first = groups.next().is_some_and(|group| is_digits(group) && group.len() <= 3);
        first && groups.all(|group| is_digits(group) && group.len() == 3)
    };
    let fraction = |decimal: char| {
        bare.rsplit_once(decimal).map_or((bare, true), |(before, after)| (before, is_digits(after)))
    };
    let (before, fits) = fraction(',');
    if fits
        && (is_digits(before)
            || [' ', '.', '\'', '\u{a0}', '\u{202f}', '’'].iter().any(|&mark| whole(before, mark)))
    {
        return true;
    }
    let (before, fits) = fraction('.');
    fits && [' ', ',', '\'', '\u{a0}', '\u{202f}', '’'].iter().any(|&mark| whole(before, mark))
}

/// `2024-05-31`, `2024/05/31 12:00`, `31.5.2024`, `5/31/24`.
fn is_date(word: &str) -> bool {
    let day = word.split(['T', ' ']).next().unwrap_or_default();
    ['-', '/', '.'].iter().any(|&mark| {
        let lengths: Option<Vec<usize>> = day
            .split(mark)
            .map(|part| part.bytes().all(|byte| byte.is_ascii_digit()).then_some(part.len()))
            .collect();
        matches!(lengths.as_deref(), Some([4, 1 | 2, 1 | 2] | [1 | 2, 1 | 2, 2 | 4]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates_of_spreadsheets_are_recognised() {
        for word in [
            "1,234.5",
            "1.234,5",
            "0,5",
            "-0,5",
            "12 %",
            "12%",
            "€3.50",
            "3,50 €",
            "'7",
            "1 234",
            "1'234.50",
            "1,234,567",
            "1.234.567",
        ] {
            assert!(is_number(word), "{word}");
        }
        for word in [
            "2024-05-31",
            "2024/5/31",
            "2024-05-31T12:00:00Z",
            "31.5.2024",
            "5/31/24",
            "31.05.2024 08:15",
        ] {
            assert!(is_date(word), "{word}");
        }
    }

    #[test]
    fn words_are_words() {
        let words = [
            "",
            "7",
            "-1.5",
            "1e3",
            "C",
            "C6",
            "1,2,3",
            "1-2",
            "a,5",
            "127.0.0.1",
            "1.2.3",
            "12,34,56",
            "%",
            "'",
            "0x1f",
            "nan",
            "5-HT",
            "1/2",
        ];
        for word in words {
            assert!(!is_number(word) && !is_date(word), "{word}");
        }
        let mixed = ["1,5".into(), "2,5".into(), "x".into()];
        assert_eq!(meant(&mixed), None);
        assert_eq!(meant(&[]), None);
    }
}
