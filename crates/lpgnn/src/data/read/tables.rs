use crate::{Error, data::Dataset};
use std::path::Path;
pub(super) fn read(_: &Path) -> Result<Dataset, Error> {
    Err(Error::NoGraphs)
}
