use crate::{Error, data::Dataset};
use std::path::Path;
pub(super) fn read(_: &Path) -> Result<Dataset, Error> {
    Err(Error::NoGraphs)
}
pub(super) fn is_folder(_: &[String]) -> bool {
    false
}
