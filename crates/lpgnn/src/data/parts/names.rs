//! The names of the nodes of a graph in parts, of which no process needs more than one at a time.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;

use super::{GraphInParts, NAMES};
use crate::{Error, Place};

/// Names of nodes in the order of the data set, from a file with a line for each.
#[derive(Debug)]
pub struct Names {
    path: PathBuf,
    lines: Lines<BufReader<File>>,
    nodes: usize,
    read: usize,
}

impl GraphInParts {
    /// The names of all nodes, in the order of the data set; none if they have none.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] if they are not in a file.
    pub fn names(&self) -> Result<Option<Names>, Error> {
        if !self.info.names {
            return Ok(None);
        }
        let path = self.folder.join(NAMES);
        let lines = BufReader::new(crate::input::open(&path)?).lines();
        Ok(Some(Names { path, lines, nodes: self.info.nodes(), read: 0 }))
    }
}

/// Ends after the name of the last node; an error where there are fewer lines than nodes, or more.
impl Iterator for Names {
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let problem = |problem: String| Some(Err(Place::file(&self.path).error(problem)));
        match self.lines.next() {
            None if self.read == self.nodes => None,
            None => problem(format!("has {} names for {} nodes", self.read, self.nodes)),
            Some(Ok(_)) if self.read == self.nodes => {
                problem(format!("has more names than the {} nodes", self.nodes))
            }
            Some(Ok(name)) => {
                self.read += 1;
                Some(Ok(name))
            }
            Some(Err(source)) => {
                Some(Err(Error::Io { action: "read", path: self.path.clone(), source }))
            }
        }
    }
}
