use std::path::Path;

use crate::Error;
use crate::data::Dataset;

pub(super) fn is_file(name: &str) -> bool {
    ["nodes.csv", "arcs.csv", "graphs.csv"].contains(&name)
}

pub(super) fn write(_: &Dataset, _: &Path) -> Result<Vec<String>, Error> {
    Err(Error::NoGraphs)
}
