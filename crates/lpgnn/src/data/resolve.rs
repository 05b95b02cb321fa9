use std::path::{Path, PathBuf};

use super::Dataset;
use super::cache::{Cache, is_name};
use super::known::{Builtin, PUBLISHED, nearest};
use super::read::{ReadOptions, read};
use crate::Error;

/// Loads the data set that `data` refers to; see [`Source::find`].
///
/// # Errors
///
/// Those of [`Source::find`] and [`read`].
pub fn resolve(data: &str, options: &ReadOptions, cache: &Cache) -> Result<Dataset, Error> {
    Source::find(data, cache)?.load(options)
}

/// Where a data set comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file or folder, in the cache or elsewhere.
    Path(PathBuf),
    /// A built-in data set.
    Builtin(Builtin),
}

impl Source {
    /// The data set that `data` refers to: a file or folder if it exists, or else a [`Builtin`] data set,
    /// or else one in the `cache`.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownSet`] if it is none of these, with advice.
    pub fn find(data: &str, cache: &Cache) -> Result<Self, Error> {
        let path = Path::new(data);
        if path.exists() {
            return Ok(Self::Path(path.to_owned()));
        }
        if let Ok(builtin) = data.parse() {
            return Ok(Self::Builtin(builtin));
        }
        cache.find(data).map(Self::Path).ok_or_else(|| Error::UnknownSet {
            name: data.to_owned(),
            cache: cache.folder().to_owned(),
            hint: hint(data, cache),
        })
    }

    /// Loads it; a built-in data set with default options and seed 0.
    ///
    /// # Errors
    ///
    /// Those of [`read`]; [`Error::Option`] for the format of a built-in data set, which has none.
    pub fn load(&self, options: &ReadOptions) -> Result<Dataset, Error> {
        match (self, options.format) {
            (Self::Path(path), _) => read(path, options),
            (Self::Builtin(builtin), None) => builtin.generate(0),
            (Self::Builtin(builtin), Some(format)) => Err(Error::Option {
                option: "format",
                value: format.as_str().to_owned(),
                expected: format!("{} is built in, not a file", builtin.as_str()),
            }),
        }
    }
}

fn hint(name: &str, cache: &Cache) -> String {
    let published = || PUBLISHED.iter().map(|set| set.name);
    if published().any(|known| known == name) {
        return format!("; `lpgnn data fetch {name}` downloads it");
    }
    let cached = cache.list().unwrap_or_default();
    let here = Builtin::ALL.map(Builtin::as_str).into_iter();
    let here = here.chain(cached.iter().map(|set| set.name.as_str()));
    match nearest(name, here.chain(published())) {
        Some(meant) => format!("; did you mean {meant}?"),
        None if is_name(name) => {
            format!("; if it is in the TU collection, `lpgnn data fetch {name}` downloads it")
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_comes_before_a_name_and_a_builtin_set_before_a_cached_one() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let options = ReadOptions::default();
        let set = folder.path().join("karate");
        std::fs::create_dir(&set).unwrap();
        std::fs::write(set.join("mine_A.txt"), "1, 2\n").unwrap();
        std::fs::write(set.join("mine_graph_indicator.txt"), "1\n1\n").unwrap();
        let name = |data: &str| resolve(data, &options, &cache).unwrap().name().to_owned();
        assert_eq!(name("karate"), "karate");
        assert_eq!(name(set.to_str().unwrap()), "mine");
        std::fs::rename(&set, folder.path().join("other")).unwrap();
        assert_eq!(name("other"), "mine");
    }

    #[test]
    fn what_is_not_found_gets_advice() {
        let cache = Cache::at("no-such-cache");
        let said =
            |data: &str| resolve(data, &ReadOptions::default(), &cache).unwrap_err().to_string();
        let tried =
            "is neither a file or folder nor a built-in data set, and it is not in no-such-cache";
        assert_eq!(said("NCI1"), format!("NCI1 {tried}; `lpgnn data fetch NCI1` downloads it"));
        assert_eq!(said("karat"), format!("karat {tried}; did you mean karate?"));
        assert_eq!(
            said("TRIANGLES"),
            format!(
                "TRIANGLES {tried}; if it is in the TU collection, `lpgnn data fetch TRIANGLES` downloads it"
            )
        );
        assert_eq!(said("my data/x"), format!("my data/x {tried}"));
    }
}
