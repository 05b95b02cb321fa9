mod data;
mod record;
mod results;
mod row;
mod study;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
use crate::interrupt::{self, Stopped};
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

    /// Smoke test: two runs of a few epochs each, for at most five minutes; nothing is recorded.
    #[arg(long)]
    quick: bool,

    /// Folder for intermediate results, so that completed runs are not repeated; those of a smoke
    /// test are removed when it has tried everything [default: runs/reproduce].
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
/// How long a smoke test takes at most, about.
const QUICK_TIME: Duration = Duration::from_secs(5 * 60);

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
    let out = arguments.out.as_deref().unwrap_or(Path::new("runs/reproduce"));
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
    run_rows(&rows, chosen, arguments, out, console)
}

/// Runs the chosen rows, and prints their results.
fn run_rows(
    rows: &[Row],
    mut chosen: Vec<&Row>,
    arguments: &Arguments,
    out: &Path,
    console: &Console,
) -> anyhow::Result<()> {
    let deadline = arguments.quick.then(|| Instant::now() + QUICK_TIME);
    if arguments.quick {
        spread(&mut chosen);
    }
    let (count, mut done, mut left) = (chosen.len(), vec![], vec![]);
    for (i, row) in chosen.into_iter().enumerate() {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            left.push(row.name.as_str());
            continue;
        }
        let work = Work { row, arguments, out, console, place: (i + 1, count), deadline };
        match work.run()? {
            Outcome::Done(record) => done.push((row, *record)),
            Outcome::NoData => continue,
            Outcome::OutOfTime => left.push(row.name.as_str()),
        }
        if !arguments.quick {
            results::write(&arguments.dir, rows)?;
        }
    }
    if done.is_empty() {
        bail!("no row could be run");
    }
    if arguments.json {
        let records: Vec<&Record> = done.iter().map(|(_, record)| record).collect();
        print_json(&records)?;
    } else {
        print(&table(&done, arguments.quick)?)?;
    }
    if arguments.quick {
        console.say(sampled(done.len(), &left));
    }
    if arguments.quick && left.is_empty() {
        done.iter().for_each(|(row, _)| remove(&out.join(folder_name(row, true)), out));
    }
    Ok(())
}

/// Puts rows of different tables and data sets first, so that a sample has some of each.
fn spread(rows: &mut [&Row]) {
    let mut seen = BTreeMap::new();
    rows.sort_by_cached_key(|row| {
        let before: &mut usize =
            seen.entry((row.about.table.clone(), row.source().to_owned())).or_default();
        *before += 1;
        *before
    });
}

/// Which rows a smoke test has tried.
fn sampled(done: usize, left: &[&str]) -> String {
    if left.is_empty() {
        return format!("smoke test: all {done} rows with data were tried");
    }
    format!(
        "smoke test: {done} rows were tried in {} minutes, a sample of all tables and data sets; run the \
         same command to continue with the other {}: {}",
        QUICK_TIME.as_secs() / 60,
        left.len(),
        left.join(", ")
    )
}

/// Removes a folder and those above it that are empty then, within `root` and it too.
fn remove(folder: &Path, root: &Path) {
    // What cannot be removed does no harm.
    let _ = std::fs::remove_dir_all(folder);
    for parent in folder.ancestors().skip(1).take_while(|parent| parent.starts_with(root)) {
        if std::fs::remove_dir(parent).is_err() {
            return;
        }
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
    /// Which one of how many.
    place: (usize, usize),
    /// When a smoke test stops.
    deadline: Option<Instant>,
}

/// What came of a row.
enum Outcome {
    /// A result, new or recorded.
    Done(Box<Record>),
    /// Its data cannot be found.
    NoData,
    /// A smoke test has no time left for it.
    OutOfTime,
}

impl Work<'_> {
    /// The result of the row, new or recorded.
    fn run(&self) -> anyhow::Result<Outcome> {
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
                let before = before.filter(|record| record.is_of(row));
                return Ok(before.map_or(Outcome::NoData, |record| Outcome::Done(Box::new(record))));
            }
            Err(error) => return Err(error).with_context(|| format!("cannot run {}", row.name)),
        };
        let config = self.config(&dataset)?;
        let print = fingerprint(&dataset);
        if let Some(record) = before {
            if record.is_of(row) && record.has_same(&config, &print)? {
                console.say(format_args!("{}: already has a result; --again repeats it", row.name));
                return Ok(Outcome::Done(Box::new(record)));
            }
            console
                .say(format_args!("{}: settings or data have changed since its result", row.name));
        }
        self.train(&dataset, &config, print)
    }

    /// Trains on all folds or seeds, and records the result.
    fn train(
        &self,
        dataset: &Dataset,
        config: &RunConfig,
        print: String,
    ) -> anyhow::Result<Outcome> {
        let Self { row, arguments, console, .. } = self;
        let about = &row.about;
        let crossval = Crossval::new(dataset, about.protocol, self.folds(dataset, config)?)?;
        let folds = crossval.folds();
        let place = match self.place {
            (_, 1) => String::new(),
            (place, count) => format!(" ({place} of {count})"),
        };
        console.say(format_args!(
            "{}{place}: {}; {} {}s, {} ({})",
            row.name,
            about.title,
            folds.len(),
            folds[0].name.kind.as_str(),
            about.protocol,
            about.protocol.describe()
        ));
        let folder = self.folder(config, &print, folds)?;
        let bars = Bars::new(console)?.until(self.deadline);
        let Some(report) = crossval.run(&folder, &bars)? else {
            if interrupt::asked() {
                return Err(Stopped("interrupted; run the same command to continue".into()).into());
            }
            return Ok(Outcome::OutOfTime);
        };
        let record = Record::new(row, report, config, print, arguments.quick)?;
        folder.save("result.json", &record)?;
        if !arguments.quick {
            record.write(&arguments.dir.join(RESULTS))?;
        }
        Ok(Outcome::Done(Box::new(record)))
    }

    fn fold_files(&self) -> Option<PathBuf> {
        self.row.about.fold_files.as_ref().map(|files| self.arguments.dir.join(files))
    }

    fn config(&self, dataset: &Dataset) -> anyhow::Result<RunConfig> {
        let source = self.row.source();
        let mut settings = all_epochs(&self.row.settings);
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
            "parts": folds.iter().map(|fold| (fold.name.number, &fold.split.test)).collect::<Vec<_>>(),
        });
        let name = folder_name(self.row, self.arguments.quick);
        let folder = ResultFolder::open(&self.out.join(name), &plan, config)?;
        if self.arguments.again {
            folder.clear()?;
        }
        Ok(folder)
    }
}

fn folder_name(row: &Row, quick: bool) -> String {
    let quick = if quick { "-quick" } else { "" };
    format!("{}-{}-{COMMIT}{quick}", row.name, &row.hash[..8])
}

/// Settings without early stopping unless they ask for it: published results are of a number of epochs, or of
/// the best of them all.
fn all_epochs(settings: &[Setting]) -> Vec<Setting> {
    let never = Setting::new("reproduce", "training.patience", serde_json::Value::Null);
    std::iter::once(never).chain(settings.iter().cloned()).collect()
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn row(table: &str, source: &str, stem: &str) -> Row {
        let text = format!(
            "[experiment]\ntitle = \"A title\"\ntable = \"{table}\"\nrow = \"r\"\ncolumn = \"c\"\n\
             protocol = \"split\"\nseeds = [0, 1]\n[data]\nsource = \"{source}\"\n[training]\nepochs = 50"
        );
        Row::parse("x.toml", table, stem, &text).unwrap()
    }

    #[test]
    fn a_sample_has_some_of_every_table_and_data_set() {
        let rows = [
            row("a", "clique", "1"),
            row("a", "clique", "2"),
            row("a", "karate", "3"),
            row("b", "clique", "4"),
        ];
        let mut chosen: Vec<&Row> = rows.iter().collect();
        spread(&mut chosen);
        let names: Vec<&str> = chosen.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["a/1", "a/3", "b/4", "a/2"]);
        assert_eq!(sampled(4, &[]), "smoke test: all 4 rows with data were tried");
        assert!(sampled(3, &["a/2"]).ends_with("continue with the other 1: a/2"));
    }

    #[test]
    fn a_smoke_test_stops_in_time_and_continues_later() {
        let place = tempfile::tempdir().unwrap();
        let Only { arguments } = Only::parse_from(["reproduce", "--quick"]);
        let (row, console) = (row("a", "clique", "1"), Console::new(true));
        let work = |deadline| {
            let (row, arguments, console) = (&row, &arguments, &console);
            Work { row, arguments, out: place.path(), console, place: (1, 1), deadline }.run()
        };
        let folder = place.path().join(folder_name(&row, true));
        assert!(matches!(work(Some(Instant::now())).unwrap(), Outcome::OutOfTime));
        let begun = || {
            let files = std::fs::read_dir(&folder).unwrap().flatten();
            files.filter(|file| file.path().ends_with("seed-00-00001.part.json")).count()
        };
        assert_eq!(begun(), 1, "what was begun is kept");
        assert!(matches!(work(None).unwrap(), Outcome::Done(_)));
        assert_eq!(begun(), 0);
        remove(&folder, place.path());
        assert!(!place.path().exists());
    }
}
