use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};

create_exception!(
    lpgnn,
    Error,
    PyValueError,
    "Something does not fit: what, where, what was expected."
);

/// An error of the library as an exception. Where the system refused, it is the system's.
#[allow(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
pub(crate) fn exception(error: lpgnn::Error) -> PyErr {
    match &error {
        lpgnn::Error::Io { source, .. } => {
            let text = format!("{error}: {source}");
            match source.kind() {
                std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
                _ => PyOSError::new_err(text),
            }
        }
        lpgnn::Error::UnknownSet { .. } => PyFileNotFoundError::new_err(error.to_string()),
        _ => Error::new_err(error.to_string()),
    }
}

/// What cannot be written as JSON, which nothing here is.
pub(crate) fn json_exception(error: &serde_json::Error) -> PyErr {
    Error::new_err(error.to_string())
}
