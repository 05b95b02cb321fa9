use std::path::{Path, PathBuf};

use clap::Args;
use lpgnn::experiment::run::RunFolder;
use lpgnn::report::Report;

use super::functions;
use super::settings::load;
use crate::console::{Console, print};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Run folders to overlay, or the folder of one cross-validation or search.
    #[arg(value_name = "RUN", required = true)]
    folders: Vec<PathBuf>,

    /// The HTML file [default: report.html in RUN, or in the current folder for several runs].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Draw the graphs on which the model is most wrong, from DATA or from the training data.
    #[arg(long, value_name = "DATA", num_args = 0..=1, default_missing_value = "")]
    data: Option<String>,
}

/// The name of a report.
const FILE: &str = "report.html";

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let mut report = Report::of(&arguments.folders)?;
    if let ([folder], Some(data)) = (&arguments.folders[..], &arguments.data) {
        let config = RunFolder::open(folder)?.config()?;
        let source = if data.is_empty() { &config.data.source } else { data };
        let (_, dataset) = load(source, config.data.format)?;
        report = report.with_drawings_by(&functions(), folder, &dataset)?;
    } else if arguments.data.is_some() {
        console.say("note: --data applies to a single run; nothing is drawn");
    }
    let file = arguments.out.clone().unwrap_or_else(|| match &arguments.folders[..] {
        [folder] => folder.join(FILE),
        _ => PathBuf::from(FILE),
    });
    report.write(&file)?;
    print(&format!("{}\n", file.display()))
}

/// The report of a folder, in that folder.
pub(super) fn write(folder: &Path, console: &Console) -> anyhow::Result<()> {
    let file = folder.join(FILE);
    Report::of(&[folder])?.write(&file)?;
    console.say(format_args!("report in {}", file.display()));
    Ok(())
}
