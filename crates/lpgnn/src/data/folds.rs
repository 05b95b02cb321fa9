//! Files of cross-validation folds.
//!
//! A folder of index files has `train_idx-1.txt` and `test_idx-1.txt`, then 2 and so on, each with
//! one index per line, from 0. A single file is the compact form of the same: one line per member
//! with its index, from 0, and the fold, from 1, whose test set it belongs to. An `.npz` graph has
//! splits of its nodes in it, with a validation split each.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use super::read::npz_splits;
use super::split::Split;
use crate::graph::Level;
use crate::input::{self, read_text};
use crate::{Error, Place};

impl Split {
    /// Reads the folds in a folder of index files, in a file of members and their folds, or the splits
    /// of an `.npz` graph.
    ///
    /// `members` is the number of nodes or graphs. Members keep the order of the files.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a file cannot be read; [`Error::Input`] with file and line if a line is not
    /// an index, the index is too large or occurs twice in a split, or a fold has no members.
    pub fn read_folds(path: &Path, level: Level, members: usize) -> Result<Vec<Self>, Error> {
        if path.is_file() {
            return if level == Level::Node && is_zip(path)? {
                npz_splits(path, members)
            } else {
                read_file(path, level, members)
            };
        }
        let mut splits = vec![];
        loop {
            let fold = splits.len() + 1;
            let test_file = path.join(format!("test_idx-{fold}.txt"));
            if fold > 1 && !test_file.exists() {
                let later = later_file(path, fold)?;
                return later.map_or(Ok(splits), |later| {
                    Err(Place::file(path).error(format!("has {later}, but no test_idx-{fold}.txt")))
                });
            }
            let mut seen = vec![false; members];
            let train_file = path.join(format!("train_idx-{fold}.txt"));
            let train = read_indices(&train_file, level, &mut seen)?;
            let test = read_indices(&test_file, level, &mut seen)?;
            splits.push(Self { level, train, val: vec![], test });
        }
    }

    /// Writes folds into a new folder of index files, which [`read_folds`](Self::read_folds) reads.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if the folder exists and is not empty; [`Error::Io`].
    pub fn write_folds(folder: &Path, folds: &[Self]) -> Result<(), Error> {
        let io = |action| move |source| Error::Io { action, path: folder.to_owned(), source };
        let empty = match fs::read_dir(folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(io("list")(error)),
        };
        if !empty {
            return Err(Error::Mismatch(format!("{} already exists", folder.display())));
        }
        let parent = match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).map_err(io("create"))?;
        // The folder gets its name once it is complete.
        let work = tempfile::Builder::new().prefix(".lpgnn-").tempdir_in(parent);
        let work = work.map_err(io("write"))?;
        let new = work.path().join("folds");
        fs::create_dir(&new).map_err(io("write"))?;
        for (number, fold) in (1..).zip(folds) {
            for (name, members) in [("train", &fold.train), ("test", &fold.test)] {
                let path = new.join(format!("{name}_idx-{number}.txt"));
                write_indices(&path, members).map_err(io("write"))?;
            }
        }
        fs::rename(&new, folder).map_err(io("write"))
    }
}

/// An index file of this fold or a later one.
fn later_file(folder: &Path, fold: usize) -> Result<Option<String>, Error> {
    let io = |source| Error::Io { action: "list", path: folder.to_owned(), source };
    let mut later = vec![];
    for entry in fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".txt").and_then(|name| name.split_once("_idx-"));
        let number = stem.filter(|(kind, _)| ["train", "test"].contains(kind));
        let number = number.and_then(|(_, number)| number.parse::<usize>().ok());
        later.extend(number.filter(|&number| number >= fold).map(|number| (number, name)));
    }
    Ok(later.into_iter().min().map(|(_, name)| name))
}

/// Whether a file starts like a zip file.
fn is_zip(path: &Path) -> Result<bool, Error> {
    let mut head = vec![];
    let read = input::open(path)?.take(4).read_to_end(&mut head);
    read.map_err(|source| Error::Io { action: "read", path: path.to_owned(), source })?;
    Ok(head == *b"PK\x03\x04")
}

/// The folds of a file with lines `index fold`; `#` starts a comment.
fn read_file(path: &Path, level: Level, members: usize) -> Result<Vec<Split>, Error> {
    let mut seen = vec![false; members];
    let mut order = vec![];
    let mut folds = 0;
    for (line, text) in (1..).zip(read_text(path)?.lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let here = || Place::line(path, line);
        let mut fields = text.split_whitespace();
        let (Some(index), Some(fold), None) = (fields.next(), fields.next(), fields.next()) else {
            let what = level.as_str();
            return Err(here().error(format!("expected a {what} and its fold, but found “{text}”")));
        };
        let index = member(index, level, &mut seen, here)?;
        let fold: usize = fold
            .parse()
            .ok()
            .filter(|fold| (1..=members).contains(fold))
            .ok_or_else(|| here().error(format!("“{fold}” is not a fold, counted from 1")))?;
        folds = folds.max(fold);
        order.push((index, fold));
    }
    let split = |fold: usize| {
        let members = |test: bool| {
            let members = order.iter().filter(|&&(_, own)| (own == fold) == test);
            members.map(|&(index, _)| index).collect::<Vec<_>>()
        };
        let (train, test) = (members(false), members(true));
        if train.is_empty() || test.is_empty() {
            let what = if test.is_empty() { "no" } else { "every" };
            let noun = level.as_str();
            return Err(Place::file(path).error(format!("has {what} {noun} in fold {fold}")));
        }
        Ok(Split { level, train, val: vec![], test })
    };
    // A file with nothing in it has no first fold.
    (1..=folds.max(1)).map(split).collect()
}

/// The indices in a file. `seen` marks the members of the split so far.
fn read_indices(path: &Path, level: Level, seen: &mut [bool]) -> Result<Vec<usize>, Error> {
    let mut indices = vec![];
    for (line, field) in (1..).zip(read_text(path)?.lines().map(str::trim)) {
        if !field.is_empty() {
            indices.push(member(field, level, seen, || Place::line(path, line))?);
        }
    }
    Ok(indices)
}

/// A member that has not been seen yet.
fn member(
    field: &str,
    level: Level,
    seen: &mut [bool],
    here: impl Fn() -> Place,
) -> Result<usize, Error> {
    let (what, members) = (level.as_str(), seen.len());
    let index: usize = field.parse().map_err(|_| {
        here().error(format!("“{field}” is not the index of a {what}, counted from 0"))
    })?;
    match seen.get_mut(index) {
        None => {
            let problem = format!("{what} {index} does not exist: there are {members}");
            Err(here().error(problem))
        }
        Some(true) => Err(here().error(format!("{what} {index} is listed twice"))),
        Some(seen) => {
            *seen = true;
            Ok(index)
        }
    }
}

fn write_indices(path: &Path, indices: &[usize]) -> io::Result<()> {
    let mut file = io::BufWriter::new(fs::File::create(path)?);
    for index in indices {
        writeln!(file, "{index}")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_files_are_read_in_order_and_none_may_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("train_idx-1.txt", "2\n0\n"),
            ("test_idx-1.txt", "1\n\n"),
            ("train_idx-2.txt", "1"),
            ("test_idx-2.txt", " 0 \r\n2"),
            ("test_idx-4.md", "junk"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let splits = Split::read_folds(folder.path(), Level::Graph, 3).unwrap();
        let level = Level::Graph;
        assert_eq!(
            splits,
            [
                Split { level, train: vec![2, 0], val: vec![], test: vec![1] },
                Split { level, train: vec![1], val: vec![], test: vec![0, 2] },
            ]
        );
        for name in ["test_idx-12.txt", "train_idx-3.txt"] {
            fs::write(folder.path().join(name), "0").unwrap();
            let error = Split::read_folds(folder.path(), level, 3).unwrap_err().to_string();
            let expected = format!(": has {name}, but no test_idx-3.txt");
            assert!(error.ends_with(&expected), "{error}");
        }
    }

    #[test]
    fn bad_index_files_are_named_with_their_line() {
        let folder = tempfile::tempdir().unwrap();
        let (train, test) =
            (folder.path().join("train_idx-1.txt"), folder.path().join("test_idx-1.txt"));
        let said = || {
            let error = Split::read_folds(folder.path(), Level::Graph, 3).unwrap_err().to_string();
            error.replace(&folder.path().display().to_string(), "F")
        };
        assert_eq!(said(), "cannot read F/train_idx-1.txt");
        fs::write(&train, "0\n1\n").unwrap();
        assert_eq!(said(), "cannot read F/test_idx-1.txt");
        fs::write(&test, "2\n-1\n").unwrap();
        assert_eq!(
            said(),
            "F/test_idx-1.txt, line 2: “-1” is not the index of a graph, counted from 0"
        );
        fs::write(&test, "3\n").unwrap();
        assert_eq!(said(), "F/test_idx-1.txt, line 1: graph 3 does not exist: there are 3");
        fs::write(&test, "2\n1\n").unwrap();
        assert_eq!(said(), "F/test_idx-1.txt, line 2: graph 1 is listed twice");
    }

    #[test]
    fn a_file_lists_the_fold_of_every_member() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("folds.txt");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            Split::read_folds(&path, Level::Graph, 4).map_err(|error| {
                error.to_string().replace(&folder.path().display().to_string(), "F")
            })
        };
        let level = Level::Graph;
        assert_eq!(
            read("# graph fold\n3 2\n0 1\n1 2 # a comment\n").unwrap(),
            [
                Split { level, train: vec![3, 1], val: vec![], test: vec![0] },
                Split { level, train: vec![0], val: vec![], test: vec![3, 1] },
            ]
        );
        for (text, message) in [
            ("", "F/folds.txt: has no graph in fold 1"),
            ("0 1\n1 3\n", "F/folds.txt: has no graph in fold 2"),
            ("0 1\n1 1\n", "F/folds.txt: has every graph in fold 1"),
            ("0 1\n1\n", "F/folds.txt, line 2: expected a graph and its fold, but found “1”"),
            ("0 1\n0 2\n", "F/folds.txt, line 2: graph 0 is listed twice"),
            ("4 1\n", "F/folds.txt, line 1: graph 4 does not exist: there are 4"),
            ("0 0\n", "F/folds.txt, line 1: “0” is not a fold, counted from 1"),
            ("0 9\n", "F/folds.txt, line 1: “9” is not a fold, counted from 1"),
        ] {
            assert_eq!(read(text).unwrap_err(), message);
        }
    }

    #[test]
    fn folds_are_written_as_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("deep/folds");
        let level = Level::Node;
        let folds = [
            Split { level, train: vec![0, 2], val: vec![], test: vec![1] },
            Split { level, train: vec![1], val: vec![], test: vec![0, 2] },
        ];
        Split::write_folds(&out, &folds).unwrap();
        assert_eq!(Split::read_folds(&out, level, 3).unwrap(), folds);
        let error = Split::write_folds(&out, &folds).unwrap_err().to_string();
        assert!(error.ends_with("deep/folds already exists"), "{error}");
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 1);
    }
}
