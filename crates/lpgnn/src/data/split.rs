use crate::Error;

/// Whether nodes or graphs are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nodes, of one graph or many.
    Node,
    /// Whole graphs.
    Graph,
}

/// Which nodes or graphs may be looked at when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// What is divided.
    pub level: Level,
    /// Fits the weights.
    pub train: Vec<usize>,
    /// Chooses the epoch and the hyper-parameters.
    pub valid: Vec<usize>,
    /// Is scored once, at the end.
    pub test: Vec<usize>,
}

impl Split {
    /// # Errors
    ///
    /// [`Error::Mismatch`] when a member does not exist or belongs to two parts.
    pub(crate) fn check(&self, nodes: usize, graphs: usize) -> Result<(), Error> {
        let (what, count) = match self.level {
            Level::Node => ("node", nodes),
            Level::Graph => ("graph", graphs),
        };
        let mut seen = vec![false; count];
        for &member in self.train.iter().chain(&self.valid).chain(&self.test) {
            match seen.get_mut(member) {
                None => {
                    return Err(Error::Mismatch(format!(
                        "the split names {what} {member}, but there are {count}"
                    )));
                }
                Some(true) => {
                    return Err(Error::Mismatch(format!("the split names {what} {member} twice")));
                }
                Some(seen) => *seen = true,
            }
        }
        Ok(())
    }
}
