use lpgnn::memory;
use pyo3::prelude::*;

use crate::error::exception;

/// The most memory that this process may take, in bytes.
#[pyfunction]
pub(crate) fn get_max_memory() -> u64 {
    memory::limit()
}

/// Sets it, from a number of bytes or a size such as `4G`, as text.
#[pyfunction]
pub(crate) fn set_max_memory(size: &str) -> PyResult<()> {
    memory::set_limit(memory::parse_size(size).map_err(exception)?);
    Ok(())
}
