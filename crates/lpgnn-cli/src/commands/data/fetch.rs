use std::io::{IsTerminal, stderr};
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use indicatif::{DecimalBytes, ProgressBar, ProgressStyle};
use lpgnn::data::{Cache, FetchEvent, FetchOptions, TU_COLLECTION, fetch};

use crate::console::{Console, print, print_json, tell_error, visible};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Names of data sets, as shown by `lpgnn data list` or used by the TU collection.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,

    /// The address of a folder that contains NAME.zip.
    #[arg(long, value_name = "URL", env = "LPGNN_MIRROR", hide_env_values = true, default_value = TU_COLLECTION)]
    mirror: String,

    /// Seconds to wait for the server before giving up.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, allow_negative_numbers = true)]
    timeout: f64,

    /// Seconds that a download may take in total, including all attempts.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600.0, allow_negative_numbers = true)]
    max_time: f64,

    /// Number of attempts.
    #[arg(long, value_name = "N", default_value_t = FetchOptions::default().attempts)]
    attempts: u32,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let cache = Cache::of_user()?;
    let options = FetchOptions {
        base_url: arguments.mirror.clone(),
        patience: seconds("timeout", arguments.timeout)?,
        max_time: seconds("max-time", arguments.max_time)?,
        attempts: arguments.attempts,
        ..FetchOptions::default()
    };
    let mut failures = vec![];
    let mut all = vec![];
    for name in &arguments.names {
        let mut progress = Progress::new(name, console);
        let result = fetch(name, &cache, &options, &mut |event| progress.show(event));
        progress.end();
        match result {
            Ok(fetched) if arguments.json => all.push(fetched),
            Ok(fetched) => {
                let size = DecimalBytes(fetched.bytes);
                console.say(format_args!("{name}: {size}, sha256 {}", fetched.sha256));
                print(&format!("{}\n", fetched.path.display()))?;
            }
            Err(error) => failures.push(error),
        }
    }
    if arguments.json {
        print_json(&all)?;
    }
    // The last failure is returned as the error; earlier ones are printed before it.
    let Some(last) = failures.pop() else { return Ok(()) };
    for failure in failures {
        tell_error(&failure.into());
    }
    Err(last.into())
}

fn seconds(option: &'static str, seconds: f64) -> anyhow::Result<Duration> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => bail!(lpgnn::Error::Option {
            option,
            value: seconds.to_string(),
            expected: "a positive number of seconds is expected".into(),
        }),
    }
}

/// A progress bar on a terminal, plain lines otherwise.
struct Progress<'a> {
    name: &'a str,
    console: &'a Console,
    bar: Option<ProgressBar>,
}

impl<'a> Progress<'a> {
    fn new(name: &'a str, console: &'a Console) -> Self {
        let bar = (stderr().is_terminal() && !console.is_quiet()).then(|| {
            let style = ProgressStyle::with_template(
                "{prefix} {wide_bar} {decimal_bytes} of {decimal_total_bytes}, {eta} left",
            );
            // If the template were invalid, the default bar would still do.
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::no_length().with_style(style).with_prefix(name.to_owned())
        });
        Self { name, console, bar }
    }

    fn show(&mut self, event: FetchEvent<'_>) {
        match (event, &self.bar) {
            (FetchEvent::Received { bytes, total }, Some(bar)) => {
                if let Some(total) = total {
                    bar.set_length(total);
                }
                bar.set_position(bytes);
            }
            (FetchEvent::Received { .. } | FetchEvent::Checking, _) => {}
            (FetchEvent::Asking { url }, bar) => {
                self.line(bar.as_ref(), &format!("downloading {url}"));
                if let Some(bar) = bar {
                    bar.set_position(0);
                }
            }
            (FetchEvent::Retrying { problem, pause }, bar) => {
                let line = format!("{problem}; retrying in {} s", pause.as_secs_f64());
                self.line(bar.as_ref(), &line);
            }
        }
    }

    fn line(&self, bar: Option<&ProgressBar>, line: &str) {
        let line = format!("{}: {line}", self.name);
        match bar {
            Some(bar) => bar.println(visible(&line)),
            None => self.console.say(line),
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
