mod data;
mod record;
mod results;
mod row;
mod study;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use lpgnn::data::Dataset;
use lpgnn::evaluate::Protocol;
use lpgnn::experiment::crossval::{Crossval, Division, Fold};
use lpgnn::experiment::{FolderLock, ResultFolder};
use lpgnn::graph::Level;
use lpgnn::run::{RunConfig, Setting, Setup, fingerprint};

use super::settings::config_for;
use crate::bars::Bars;
use crate::console::{Console, print, print_json};
use crate::interrupt::Stopped;
use data::Wanted;
use record::{COMMIT, Record};
use row::Row;
use study::Study;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tables, rows or studies, such as table4, table4/mutag, studies or studies/hops [default: all
    /// tables].
    #[arg(value_name = "TABLE|ROW|STUDY")]
    names: Vec<String>,

    /// The folder of the experiments.
    #[arg(long, value_name = "DIR", default_value = "experiments")]
    dir: PathBuf,

    /// Folder to search for data sets, as NAME, NAME.zip, tu/NAME or planetoid/NAME, besides those
    /// that were downloaded.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Smoke test: two runs of a few epochs each; nothing is recorded.
    #[arg(long)]
    quick: bool,

    /// Folder for intermediate results, so that completed runs are not repeated [default:
    /// runs/reproduce, or a temporary folder with --quick].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Run again what already has a result.
    #[arg(long)]
    again: bool,

    /// Run nothing, but write RESULTS.md, STUDIES.md and plots from existing results; with =check,
    /// write nothing and fail if any of them is out of date.
    #[arg(long, value_name = "write|check", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "write", hide_possible_values = true)]
    #[arg(conflicts_with_all = ["names", "data", "quick", "out", "again", "json"])]
    report: Option<ReportAction>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ReportAction {
    Write,
    Check,
}

/// The folder of the results, within that of the experiments.
const RESULTS: &str = "results";
/// Maximum epochs and runs of a smoke test.
const QUICK_EPOCHS: usize = 10;
const QUICK_PARTS: usize = 2;

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let rows = Row::all(&arguments.dir)?;
    let studies = Study::all(&arguments.dir)?;
    match arguments.report {
        Some(ReportAction::Check) => {
            results::check(&arguments.dir, &rows)?;
            return study::report::check(&arguments.dir, &studies);
        }
        Some(ReportAction::Write) => {
            let mut text = format!("{}\n", results::write(&arguments.dir, &rows)?);
            if let Some(path) = study::report::write(&arguments.dir, &studies)? {
                writeln!(text, "{path}")?;
            }
            return print(&text);
        }
        None => {}
    }
    let (chosen, chosen_studies) = choose(&rows, &studies, &arguments.names)?;
    let temporary;
    let out = match &arguments.out {
        Some(out) => out.as_path(),
        None if arguments.quick => {
            temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
            temporary.path()
        }
        None => Path::new("runs/reproduce"),
    };
    for study in &chosen_studies {
        // Results are written point by point: the lock keeps concurrent processes from losing any.
        let folder = out.join(&study.name);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let _lock = FolderLock::take(&folder)?;
        let said = study::run(study, &arguments.dir, arguments.quick, arguments.again, console)?;
        if !arguments.quick {
            study::report::write(&arguments.dir, &studies)?;
        }
        print(&said)?;
    }
    if chosen.is_empty() && !chosen_studies.is_empty() {
        return Ok(());
    }
    let mut done = vec![];
    for row in chosen {
        match (Work { row, arguments, out, console }).run()? {
            Some(record) => done.push((row, record)),
            None => continue,
        }
        if !arguments.quick {
            results::write(&arguments.dir, &rows)?;
        }
    }
    if done.is_empty() {
        bail!("no row could be run");
    }
    if arguments.json {
        let records: Vec<&Record> = done.iter().map(|(_, record)| record).collect();
        print_json(&records)
    } else {
        print(&table(&done, arguments.quick)?)
    }
}

/// The rows and studies with the given names; all rows if none is given.
fn choose<'a>(
    rows: &'a [Row],
    studies: &'a [Study],
    names: &[String],
) -> anyhow::Result<(Vec<&'a Row>, Vec<&'a Study>)> {
    for name in names {
        let known = rows.iter().any(|row| row.is_meant_by(name))
            || studies.iter().any(|study| study.is_meant_by(name));
        if !known {
            let all = rows.iter().map(|row| row.name.as_str());
            let all = all.chain(studies.iter().map(|study| study.name.as_str()));
            bail!(lpgnn::Error::Option {
                option: "TABLE|ROW|STUDY",
                value: name.clone(),
                expected: known_names(name, all),
            });
        }
    }
    let row = |row: &&Row| names.is_empty() || names.iter().any(|name| row.is_meant_by(name));
    let study = |study: &&Study| names.iter().any(|name| study.is_meant_by(name));
    Ok((rows.iter().filter(row).collect(), studies.iter().filter(study).collect()))
}

/// Suggestions: the names that contain this one, or else all folders.
fn known_names<'a>(meant: &str, all: impl Iterator<Item = &'a str> + Clone) -> String {
    let alike: Vec<&str> =
        all.clone().filter(|name| name.to_lowercase().contains(&meant.to_lowercase())).collect();
    if !meant.is_empty() && !alike.is_empty() {
        return format!("there are {}", alike.join(", "));
    }
    let mut folders: Vec<(&str, &str)> = vec![];
    for name in all {
        let folder = name.split('/').next().unwrap_or(name);
        if folders.last().is_none_or(|&(last, _)| last != folder) {
            folders.push((folder, name));
        }
    }
    let with_example = folders.iter().map(|(folder, name)| format!("{folder} (with {name}, …)"));
    format!("there are {}", with_example.collect::<Vec<_>>().join(", "))
}

/// A row to run.
struct Work<'a> {
    row: &'a Row,
    arguments: &'a Arguments,
    out: &'a Path,
    console: &'a Console,
}

impl Work<'_> {
    /// The result of the row, new or recorded; none if its data cannot be found.
    fn run(&self) -> anyhow::Result<Option<Record>> {
        let Self { row, arguments, console, .. } = self;
        let about = &row.about;
        let results = arguments.dir.join(RESULTS);
        let before = Record::read(&results, &row.name)?;
        let before = before.filter(|_| !arguments.quick && !arguments.again);
        let wanted = Wanted {
            by: &row.name,
            source: row.source(),
            seed: about.data_seed,
            generate: about.generate.as_ref(),
        };
        let dataset = match wanted.load(arguments.data.as_deref()) {
            Ok(dataset) => dataset,
            Err(error @ lpgnn::Error::UnknownSet { .. }) => {
                console.say(format_args!("{}: not run, because {error}, or use --data", row.name));
                return Ok(before.filter(|record| record.is_of(row)));
            }
            Err(error) => return Err(error).with_context(|| format!("cannot run {}", row.name)),
        };
        let config = self.config(&dataset)?;
        let print = fingerprint(&dataset);
        if let Some(record) = before {
            if record.is_of(row) && record.has_same(&config, &print)? {
                console.say(format_args!("{}: already has a result; --again repeats it", row.name));
                return Ok(Some(record));
            }
            console
                .say(format_args!("{}: settings or data have changed since its result", row.name));
        }
        self.train(&dataset, &config, print).map(Some)
    }

    /// Trains on all folds or seeds, and records the result.
    fn train(
        &self,
        dataset: &Dataset,
        config: &RunConfig,
        print: String,
    ) -> anyhow::Result<Record> {
        let Self { row, arguments, console, .. } = self;
        let about = &row.about;
        let crossval = Crossval::new(dataset, about.protocol, self.folds(dataset, config)?)?;
        let folds = crossval.folds();
        console.say(format_args!(
            "{}: {}; {} {}s, {} ({})",
            row.name,
            about.title,
            folds.len(),
            folds[0].name.kind.as_str(),
            about.protocol,
            about.protocol.describe()
        ));
        let folder = self.folder(config, &print, folds)?;
        let Some(report) = crossval.run(&folder, &Bars::new(console)?)? else {
            return Err(Stopped("interrupted; run the same command to continue".into()).into());
        };
        let record = Record::new(row, report, config, print, arguments.quick)?;
        folder.save("result.json", &record)?;
        if !arguments.quick {
            record.write(&arguments.dir.join(RESULTS))?;
        }
        Ok(record)
    }

    fn fold_files(&self) -> Option<PathBuf> {
        self.row.about.fold_files.as_ref().map(|files| self.arguments.dir.join(files))
    }

    fn config(&self, dataset: &Dataset) -> anyhow::Result<RunConfig> {
        let source = self.row.source();
        let mut settings = self.row.settings.clone();
        let config = config_for(source, dataset, &settings)?;
        if self.arguments.quick && config.training.epochs > QUICK_EPOCHS {
            settings.push(Setting::new("--quick", "training.epochs", QUICK_EPOCHS));
            return config_for(source, dataset, &settings);
        }
        Ok(config)
    }

    fn folds(&self, dataset: &Dataset, config: &RunConfig) -> anyhow::Result<Vec<Fold>> {
        let about = &self.row.about;
        let task = Level::of_task(config.data.task, dataset)?;
        let mut folds = if let Some(seeds) = &about.seeds {
            let split = Setup::new(config, dataset)?.split;
            // Without a validation split, the last epoch counts.
            if split.test.is_empty() {
                bail!("the test split of {} is empty", self.row.name);
            }
            seeds.iter().map(|&seed| Fold::with_seed(config, split.clone(), seed)).collect()
        } else {
            let folds = about.folds.unwrap_or_default();
            let division = Division { folds, files: self.fold_files(), seed: about.fold_seed };
            division.folds(dataset, task, about.protocol, std::slice::from_ref(config))?
        };
        if self.arguments.quick {
            folds.truncate(QUICK_PARTS);
        }
        Ok(folds)
    }

    /// The folder of its intermediate results, specific to the settings and the program's commit.
    fn folder(
        &self,
        config: &RunConfig,
        data: &str,
        folds: &[Fold],
    ) -> anyhow::Result<ResultFolder> {
        let plan = serde_json::json!({
            "data": data,
            "commit": COMMIT,
            "candidates": config,
            "splits": folds.iter().map(|fold| (fold.name.number, fold.split.fingerprint())).collect::<Vec<_>>(),
        });
        let quick = if self.arguments.quick { "-quick" } else { "" };
        let name = format!("{}-{}-{COMMIT}{quick}", self.row.name, &self.row.hash[..8]);
        let folder = ResultFolder::open(&self.out.join(&name), &plan, config)?;
        if self.arguments.again {
            folder.clear()?;
        }
        Ok(folder)
    }
}

/// Our results next to the published ones.
fn table(done: &[(&Row, Record)], quick: bool) -> Result<String, std::fmt::Error> {
    let width = done.iter().map(|(row, _)| row.name.chars().count()).max().unwrap_or(0);
    let protocol = Protocol::ALL.map(|protocol| protocol.as_str().len()).into_iter().max();
    let protocol = protocol.unwrap_or(0);
    let mut text = format!(
        "{:<width$}  {:<protocol$}  {:>12}  {:>12}  {:>10}\n",
        "row", "protocol", "ours", "published", "difference"
    );
    for (row, record) in done {
        let paper = row.about.paper;
        let line = format!(
            "{:<width$}  {:<protocol$}  {:>12}  {:>12}  {:>10}",
            row.name,
            row.about.protocol.as_str(),
            results::ours(record),
            paper.map_or_else(|| "-".into(), results::published),
            results::difference(record, paper).unwrap_or_else(|| "-".into()),
        );
        writeln!(text, "{}", line.trim_end())?;
    }
    if quick {
        writeln!(text, "smoke test: these numbers are not results and are not recorded")?;
    }
    Ok(text)
}
