use lpgnn::run::{Schema, Setup};

use super::functions;
use super::settings::SettingArguments;
use crate::console::{print, print_json};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingArguments,

    /// Print the JSON schema of such files instead, for validation and completion in editors.
    #[arg(long)]
    json_schema: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.json_schema {
        return print_json(&Schema::of_runs().to_json_schema("Settings of lpgnn"));
    }
    let chosen = arguments.settings.choose()?;
    // Only a configuration that training accepts is printed.
    Setup::with_registry(&functions(), &chosen.config, &chosen.dataset, None)?;
    print(&chosen.config.to_toml())
}
