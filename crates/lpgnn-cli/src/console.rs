use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use lpgnn::shortened;

/// Messages to the user, on stderr.
pub(crate) struct Console {
    quiet: bool,
}

impl Console {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints a line, unless `--quiet` is given.
    pub(crate) fn say(&self, line: impl Display) {
        if !self.quiet {
            // If stderr cannot be written to, there is nowhere left to report it.
            let text = line.to_string();
            let lines: Vec<_> = text.split('\n').map(shortened).collect();
            let _ = writeln!(io::stderr(), "{}", visible(&lines.join("\n")));
        }
    }
}

/// Prints an error to stderr, with its causes below it.
pub(crate) fn tell_error(error: &anyhow::Error) {
    let causes = error.chain().skip(1).map(|cause| format!("  cause: {cause}"));
    for line in std::iter::once(format!("error: {error}")).chain(causes) {
        // A line that only looks like a message of its own is indented.
        let line = visible(&shortened(&line)).replace('\n', "\n  ");
        let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
    }
}

/// The text with control characters as `\u001b`: they would make a terminal do things, or show
/// something else than is there. Lines and tabs stay.
///
/// It is the escape of JSON, which still is the same JSON then.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            // What turns the direction of writing, and ends lines and paragraphs.
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hidden(c) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// The same for what is to be one line.
pub(crate) fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\u000a")
}

/// Writes text to stdout.
///
/// # Errors
///
/// Those of the operating system.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write(&visible(text))
}

/// Writes data to stdout: as they are, unless it is a terminal.
///
/// # Errors
///
/// Those of the operating system.
pub(crate) fn print_data(text: &str) -> anyhow::Result<()> {
    if io::stdout().is_terminal() { print(text) } else { write(text) }
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("cannot write to stdout")
}

/// Writes a value to stdout, as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        for (text, shown) in [
            ("plain, ü, 日本", "plain, ü, 日本"),
            ("two\tcolumns\nand lines", "two\tcolumns\nand lines"),
            ("\u{1b}]0;title\u{7}", "\\u001b]0;title\\u0007"),
            ("a\rb\u{8}\u{7f}", "a\\u000db\\u0008\\u007f"),
            ("\u{9b}31m", "\\u009b31m"),
            ("\u{202e}txt.exe\u{2069}", "\\u202etxt.exe\\u2069"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_line("a\nb"), "a\\u000ab");
    }

    #[test]
    fn json_stays_the_same_json() {
        let name = "\u{1b}[31m\u{9b}\u{7f}\u{202e}\n";
        let json = serde_json::to_string_pretty(&serde_json::json!({ "name": name })).unwrap();
        let shown: serde_json::Value = serde_json::from_str(&visible(&json)).unwrap();
        assert_eq!(shown["name"], name);
    }
}
