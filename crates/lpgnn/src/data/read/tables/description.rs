//! `dataset.toml`: what the tables beside it cannot say.

use std::io::Read;
use std::path::Path;

use super::super::text;
use super::super::unpack::read_error;
use crate::input::toml_problem;
use crate::{Error, Place};

/// The keys of `dataset.toml`, all of them optional.
#[derive(Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::data::read) struct Description {
    /// What the data set is called; the name of the folder if absent.
    pub(in crate::data::read) name: Option<String>,
    /// Whether a row of edges is one directed edge; otherwise it is both directions.
    pub(in crate::data::read) directed: bool,
}

/// A description is a few lines; a longer file is something else.
const LONGEST: usize = 1 << 16;

impl Description {
    /// The description in `folder`, or the defaults if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Input`], naming the line, if it is not TOML, has another key or a value of another
    /// type.
    pub(in crate::data::read) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("dataset.toml");
        if !path.exists() {
            return Ok(Self::default());
        }
        let mut bytes = vec![];
        let mut file = text::open(&path)?.take(LONGEST as u64 + 1);
        file.read_to_end(&mut bytes).map_err(|error| read_error(&path, error))?;
        if bytes.len() > LONGEST {
            return Err(Place::file(&path).error(format!("is longer than {LONGEST} bytes")));
        }
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            Place::byte(&path, error.valid_up_to() as u64).error("is not UTF-8")
        })?;
        toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = 1 + before.matches('\n').count();
            Place::line(&path, line as u64).error(toml_problem(&error))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Description, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("dataset.toml"), text).unwrap();
        Description::read(folder.path()).map_err(|error| {
            error.to_string().replace(&format!("{}/", folder.path().display()), "")
        })
    }

    #[test]
    fn both_keys_are_optional() {
        assert_eq!(read(""), Ok(Description { name: None, directed: false }));
        let expected = Description { name: Some("Water".into()), directed: true };
        assert_eq!(read("# ours\nname = \"Water\"\ndirected = true\n"), Ok(expected));
    }

    #[test]
    fn what_it_cannot_be_is_told_with_its_line() {
        for (text, message) in [
            (
                "name = \"x\"\ndirection = true\n",
                "dataset.toml, line 2: unknown field `direction`, expected `name` or `directed`",
            ),
            (
                "\ndirected = \"yes\"\n",
                "dataset.toml, line 2: invalid type: string \"yes\", expected a boolean",
            ),
        ] {
            assert_eq!(read(text), Err(message.to_owned()));
        }
        assert!(
            read("directed = true\nname = \n").unwrap_err().starts_with("dataset.toml, line 2")
        );
    }
}
