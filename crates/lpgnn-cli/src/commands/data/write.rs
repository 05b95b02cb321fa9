use std::path::Path;

use lpgnn::data::{Dataset, Overwrite, WriteFormat, WriteOptions, write};

use crate::console::Console;

/// Writes a data set, and reports what was written.
pub(super) fn run(
    dataset: &Dataset,
    folder: &Path,
    format: WriteFormat,
    force: bool,
    console: &Console,
) -> anyhow::Result<()> {
    let overwrite = if force { Overwrite::Replace } else { Overwrite::Refuse };
    let losses = write(dataset, folder, &WriteOptions { format, overwrite })?;
    for loss in losses {
        console.say(format_args!("note: {loss}"));
    }
    console.say(format_args!(
        "wrote {} ({format}): graphs {}, nodes {}, edges {}",
        folder.display(),
        dataset.graphs(),
        dataset.nodes(),
        dataset.edges().len(),
    ));
    Ok(())
}
