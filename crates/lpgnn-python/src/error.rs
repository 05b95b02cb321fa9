use lpgnn::shortened;
use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};

create_exception!(lpgnn, Error, PyValueError, "Invalid input: what, where, what was expected.");

/// An error of the library as an exception: `OSError` if the operating system failed.
#[allow(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
pub(crate) fn exception(error: lpgnn::Error) -> PyErr {
    let text = shortened(&error.to_string()).into_owned();
    match &error {
        lpgnn::Error::Io { source, .. } => {
            let text = format!("{text}: {source}");
            match source.kind() {
                std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
                _ => PyOSError::new_err(text),
            }
        }
        lpgnn::Error::UnknownSet { .. } => PyFileNotFoundError::new_err(text),
        _ => Error::new_err(text),
    }
}

/// The error of writing JSON, which does not happen with what is written here.
pub(crate) fn json_exception(error: &serde_json::Error) -> PyErr {
    Error::new_err(error.to_string())
}
