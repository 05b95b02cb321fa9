use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use lpgnn::experiment::TrialName;
use lpgnn::report::LiveReport;
use lpgnn::run::RunConfig;
use lpgnn::tensorboard::{EventWriter, TrialEvents};

use crate::console::Console;
use crate::live_page::LivePage;
use crate::ranks;

/// Where training can be watched.
#[derive(Debug, Args)]
pub(crate) struct ViewArguments {
    /// Show charts in a browser during training, at ADDRESS or at a free port that only this
    /// machine can reach.
    #[arg(
        long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true,
        default_missing_value = "127.0.0.1:0", value_parser = address
    )]
    live: Option<SocketAddr>,

    /// Write event files for TensorBoard, to a folder in DIR with the name of the output folder.
    #[arg(long, value_name = "DIR")]
    tensorboard: Option<PathBuf>,
}

/// An address with its port, or a port of this machine.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = || text.parse().ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let address = text.parse().ok().or_else(port);
    address.ok_or_else(|| "a port or an address such as 127.0.0.1:8000 is expected".into())
}

impl ViewArguments {
    /// The event file of a run in a folder that has completed so many epochs.
    pub(super) fn events(
        &self,
        folder: &Path,
        epochs: usize,
        config: &RunConfig,
    ) -> Result<Option<EventWriter>, lpgnn::Error> {
        let folder = self.event_folder(folder);
        folder.map(|folder| EventWriter::create(&folder, epochs, config)).transpose()
    }

    /// The event files of the trials in a folder.
    pub(super) fn trial_events<'a>(
        &self,
        folder: &Path,
        config_of: impl Fn(TrialName, usize) -> Option<&'a RunConfig> + Sync + 'a,
    ) -> Option<TrialEvents<'a>> {
        self.event_folder(folder).map(|folder| TrialEvents::new(&folder, config_of))
    }

    /// That event files can be written, before anything else is.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Some(folder) = &self.tensorboard else { return Ok(()) };
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))
    }

    fn event_folder(&self, folder: &Path) -> Option<PathBuf> {
        let tensorboard = self.tensorboard.as_ref()?;
        // `.` and `..` have no name before they are resolved.
        let absolute = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Some(tensorboard.join(absolute.file_name().unwrap_or_default()))
    }

    /// The page in the browser, if it is asked for; `report` is empty, and gets the token.
    pub(super) fn page(
        &self,
        console: &Console,
        report: impl FnOnce(&str) -> LiveReport,
    ) -> anyhow::Result<Option<LivePage>> {
        let Some(address) = self.live.filter(|_| !ranks::follows()) else { return Ok(None) };
        if console.is_quiet() {
            bail!(lpgnn::Error::Option {
                option: "--live",
                value: "given".into(),
                expected: "without --quiet, which would hide the address of the page".into(),
            });
        }
        let page = LivePage::start(address, report)?;
        console.say(format_args!("live page at {}", page.url()));
        if !address.ip().is_loopback() {
            console.say(
                "warning: other machines can reach the live page; it is not encrypted, and anyone who sees \
                 its address can read it and stop training",
            );
        }
        Ok(Some(page))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        assert!(address("8000").unwrap().ip().is_loopback());
        assert_eq!(address("0.0.0.0:80").unwrap(), ([0, 0, 0, 0], 80).into());
        assert!(address("[::1]:80").unwrap().ip().is_loopback());
        for wrong in ["", "localhost", "1.2.3.4", "99999"] {
            assert!(address(wrong).unwrap_err().contains("is expected"), "{wrong}");
        }
    }
}
