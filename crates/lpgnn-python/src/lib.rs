//! Python bindings: they convert and call. `lpgnn` does the computing, and what Python users see is in
//! `python/lpgnn`.

mod columns;
mod dataset;
mod error;
mod events;
mod experiments;
mod live;
mod memory;
mod model;
mod registry;
mod runs;
mod selection;
mod settings;
mod threads;
mod training;
mod warm_start;

use pyo3::prelude::*;

/// The compiled part of the package `lpgnn`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::dataset::Dataset;
    #[pymodule_export]
    use crate::error::Error;
    #[pymodule_export]
    use crate::experiments::{crossval, search};
    #[pymodule_export]
    use crate::live::LiveGraph;
    #[pymodule_export]
    use crate::memory::{get_max_memory, set_max_memory};
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::runs::{Run, report};
    #[pymodule_export]
    use crate::settings::{arguments, settings};
    #[pymodule_export]
    use crate::training::{resume, train};
    #[pymodule_export]
    use crate::warm_start::{WarmStart, train_from};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        lpgnn::check_instruction_set().map_err(crate::error::exception)?;
        // NumPy is loaded here, where it can fail as an import does, and not in the middle of a call.
        numpy::dtype::<f32>(module.py());
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
