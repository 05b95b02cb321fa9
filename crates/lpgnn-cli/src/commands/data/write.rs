use std::path::Path;

use lpgnn::data::{Dataset, Overwrite, WriteFormat, WriteOptions, write};

use crate::talk::Talk;

/// Writes a data set, and tells what became of it.
pub(super) fn run(
    dataset: &Dataset,
    folder: &Path,
    format: WriteFormat,
    force: bool,
    talk: &Talk,
) -> anyhow::Result<()> {
    let overwrite = if force { Overwrite::Replace } else { Overwrite::Refuse };
    let losses = write(dataset, folder, &WriteOptions { format, overwrite })?;
    for loss in losses {
        talk.say(format_args!("note: {loss}"));
    }
    talk.say(format_args!(
        "wrote {} ({format}): graphs {}, nodes {}, arcs {}",
        folder.display(),
        dataset.graphs(),
        dataset.nodes(),
        dataset.arcs().len(),
    ));
    Ok(())
}
