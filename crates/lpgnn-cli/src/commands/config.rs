use super::settings::SettingArguments;
use crate::console::print;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let chosen = arguments.settings.choose()?;
    // What can be printed can be used.
    lpgnn::run::Setup::new(&chosen.config, &chosen.dataset)?;
    print(&chosen.config.to_toml())
}
