use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use lpgnn::run::write_file;

use crate::console::{Console, print};

#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// The shell to generate completions for.
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page for every command to this folder, instead of the main page to stdout.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(super) fn completions(arguments: &CompletionArguments) -> anyhow::Result<()> {
    let mut bytes = vec![];
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "lpgnn", &mut bytes);
    print(&String::from_utf8(bytes).context("completions are text")?)
}

pub(super) fn man(arguments: &ManArguments, console: &Console) -> anyhow::Result<()> {
    let mut command = crate::Arguments::command();
    command.build();
    let Some(folder) = &arguments.folder else {
        return print(&page(&command)?);
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let mut count = 0;
    pages(&command, "lpgnn", &mut |name, page| {
        count += 1;
        Ok(write_file(&folder.join(format!("{name}.1")), page.as_bytes())?)
    })?;
    console.say(format_args!("wrote {count} pages to {}", folder.display()));
    Ok(())
}

/// The page of a command, and those of its subcommands.
fn pages(
    command: &clap::Command,
    name: &str,
    write: &mut dyn FnMut(&str, &str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    write(name, &page(command)?)?;
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        pages(below, &format!("{name}-{}", below.get_name()), write)?;
    }
    Ok(())
}

fn page(command: &clap::Command) -> anyhow::Result<String> {
    let mut bytes = vec![];
    clap_mangen::Man::new(command.clone()).render(&mut bytes).context("cannot write a page")?;
    String::from_utf8(bytes).context("a page is text")
}
