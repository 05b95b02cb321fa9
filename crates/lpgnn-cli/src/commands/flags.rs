use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use lpgnn::run::{Kind, Schema, Setting, SettingInfo};

/// Flags for settings, as declared by the schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags {
    given: Vec<Setting>,
}

impl Flags {
    /// The settings given on the command line.
    pub(super) fn settings(&self) -> Vec<Setting> {
        self.given.clone()
    }
}

/// The settings that have a flag, each with the flag's name.
fn flags() -> impl Iterator<Item = (&'static str, &'static SettingInfo)> {
    let flags = Schema::of_runs().flags().into_iter();
    flags.filter_map(|info| Some((info.flag.as_deref()?, info)))
}

fn argument(flag: &'static str, info: &'static SettingInfo) -> Arg {
    let meaning = info.meaning.replace('`', "");
    let help = format!("{} [default: {}]", meaning.trim_end_matches('.'), info.default_text());
    let argument = Arg::new(flag).long(flag).help(help).help_heading("Settings");
    match &info.kind {
        Kind::Word(choices) | Kind::Tag(choices) => {
            let names = choices.iter().map(|choice| choice.name.as_str());
            let names = names.chain(info.optional.then_some("none"));
            argument.value_name("NAME").value_parser(PossibleValuesParser::new(names))
        }
        Kind::List(_) => argument.value_name("N,…"),
        Kind::Integer { .. } => argument.value_name("N").allow_negative_numbers(true),
        _ => argument.value_name("X").allow_negative_numbers(true),
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(flags().map(|(flag, info)| argument(flag, info)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let given = flags().filter_map(|(flag, info)| {
            let text = matches.get_one::<String>(flag)?;
            Some(info.read(format!("--{flag}"), text))
        });
        self.given = given.collect();
        Ok(())
    }
}
