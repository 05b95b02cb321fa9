mod data;
mod overview;
mod record;
mod results;
mod row;
mod study;
mod work;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use lpgnn::evaluate::Protocol;
use lpgnn::experiment::{FolderLock, ResultFolder, Share, TrialName};
use lpgnn::run::Setting;

use super::sharing::{ShareArguments, names};
use crate::console::{Console, print, print_json};
use crate::ranks;
use record::Record;
use row::Row;
use study::Study;
use work::{Outcome, Work, folder_name};

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
    #[arg(long, conflicts_with_all = ["shard", "collect"])]
    quick: bool,

    /// Folder for intermediate results, so that completed runs are not repeated; those of a smoke
    /// test are removed when it is complete [default: runs/reproduce].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Run again even if there is already a result.
    #[arg(long, conflicts_with_all = ["shard", "collect"])]
    again: bool,

    #[command(flatten)]
    share: ShareArguments,

    /// Run nothing; write RESULTS.md, STUDIES.md and plots from existing results; with =check,
    /// write nothing and fail if any of them is out of date.
    #[arg(long, value_name = "write|check", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "write", hide_possible_values = true)]
    #[arg(conflicts_with_all = ["names", "data", "quick", "out", "again", "shard", "collect", "json"])]
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

impl Arguments {
    /// Whether the processes of a job work on it together.
    pub(super) fn is_shared(&self) -> bool {
        self.report.is_none() && !self.quick && !self.share.collect
    }

    fn share(&self) -> anyhow::Result<Share> {
        if self.is_shared() { ranks::agree(self.share.share()) } else { Ok(Share::whole()) }
    }
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let share = arguments.share()?;
    let rows = ranks::agree(Row::all(&arguments.dir))?;
    let studies = ranks::agree(Study::all(&arguments.dir))?;
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
    let (chosen, chosen_studies) = ranks::agree(choose(&rows, &studies, &arguments.names))?;
    let out = arguments.out.as_deref().unwrap_or(Path::new("runs/reproduce"));
    std::fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    for study in &chosen_studies {
        let work = study::Work { study, arguments, folder: &out.join(&study.name), share };
        let said = work.run(console)?;
        if !arguments.quick && !ranks::follows() {
            let _alone = FolderLock::wait_for_item(out, "report")?;
            study::report::write(&arguments.dir, &studies)?;
        }
        print(&said)?;
    }
    if chosen.is_empty() && !chosen_studies.is_empty() {
        return Ok(());
    }
    run_rows(&rows, chosen, arguments, out, console, share)
}

/// Runs the chosen rows, and prints their results.
fn run_rows(
    rows: &[Row],
    mut chosen: Vec<&Row>,
    arguments: &Arguments,
    out: &Path,
    console: &Console,
    share: Share,
) -> anyhow::Result<()> {
    if arguments.quick {
        spread(&mut chosen);
    }
    if arguments.again {
        ranks::agree(if ranks::follows() { Ok(()) } else { clear(&chosen, out) })?;
    }
    let mut rows = Rows { all: rows, arguments, out, console, done: vec![], late: vec![] };
    let left = rows.run(&chosen, share)?;
    if ranks::follows() {
        return Ok(());
    }
    rows.tell(&left)?;
    if arguments.quick && rows.late.is_empty() {
        rows.done.iter().for_each(|(row, _)| remove(&out.join(folder_name(row, true)), out));
    }
    Ok(())
}

/// Removes what is there of rows that are run again.
fn clear(rows: &[&Row], out: &Path) -> anyhow::Result<()> {
    for row in rows {
        ResultFolder::clear(&out.join(folder_name(row, false)))?;
    }
    Ok(())
}

/// Rows, and what came of them.
struct Rows<'a> {
    all: &'a [Row],
    arguments: &'a Arguments,
    out: &'a Path,
    console: &'a Console,
    done: Vec<(&'a Row, Record)>,
    /// Those that a smoke test had no time for.
    late: Vec<&'a str>,
}

/// A row whose turn it is.
#[derive(Clone, Copy)]
struct Turn<'a> {
    row: &'a Row,
    /// Which one of how many.
    place: (usize, usize),
    /// About how many folds the rows before it have: the folds of all rows are dealt out to shards in turn.
    offset: usize,
}

impl<'a> Rows<'a> {
    /// Runs them; those that are left to other processes are returned, with what they lack.
    fn run(
        &mut self,
        chosen: &[&'a Row],
        share: Share,
    ) -> anyhow::Result<Vec<(Turn<'a>, Vec<TrialName>)>> {
        let mut offset = 0;
        let turn = |(i, row): (usize, &&'a Row)| {
            let turn = Turn { row, place: (i + 1, chosen.len()), offset };
            offset += row.about.parts();
            turn
        };
        let mut turns: Vec<Turn<'a>> = chosen.iter().enumerate().map(turn).collect();
        // Whoever has to wait for other ranks does what is free in all rows before.
        if let Some(helping) = share.helping() {
            turns = self.pass(&turns, helping)?.into_iter().map(|(turn, _)| turn).collect();
        }
        let left = self.pass(&turns, share)?;
        // In the order in which they were chosen, also those that had to be waited for.
        self.done.sort_by_key(|(row, _)| chosen.iter().position(|chosen| chosen.name == row.name));
        Ok(left)
    }

    fn pass(
        &mut self,
        turns: &[Turn<'a>],
        share: Share,
    ) -> anyhow::Result<Vec<(Turn<'a>, Vec<TrialName>)>> {
        let Self { all, arguments, out, console, .. } = *self;
        let deadline = arguments.quick.then(|| Instant::now() + QUICK_TIME);
        let mut left = vec![];
        for turn in turns {
            let Turn { row, place, offset } = *turn;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.late.push(row.name.as_str());
                continue;
            }
            let share = share.after(offset);
            match (Work { row, arguments, out, console, place, deadline, share }).run()? {
                Outcome::Done(record) => self.done.push((row, *record)),
                Outcome::Left(missing) => left.push((*turn, missing)),
                Outcome::NoData => continue,
                Outcome::OutOfTime => self.late.push(row.name.as_str()),
            }
            if !arguments.quick && !ranks::follows() {
                let _alone = FolderLock::wait_for_item(out, "report")?;
                results::write(&arguments.dir, all)?;
            }
        }
        Ok(left)
    }

    /// Prints the results, and what is left to others.
    fn tell(&self, left: &[(Turn<'_>, Vec<TrialName>)]) -> anyhow::Result<()> {
        let Self { arguments, console, done, .. } = self;
        if done.is_empty() && left.is_empty() {
            bail!("no row could be run");
        }
        if arguments.json {
            let records: Vec<&Record> = done.iter().map(|(_, record)| record).collect();
            print_json(&records)?;
        } else if !done.is_empty() {
            print(&table(done, arguments.quick)?)?;
        }
        if arguments.quick {
            console.say(sampled(done.len(), &self.late));
        }
        let lacking = left
            .iter()
            .map(|(turn, missing)| format!("{} lacks {}", turn.row.name, names(missing)));
        let lacking: Vec<String> = lacking.collect();
        if arguments.share.collect && !lacking.is_empty() {
            bail!("not all rows are complete: {}", lacking.join("; "));
        }
        lacking.iter().for_each(|line| console.say(line));
        Ok(())
    }
}

/// Puts rows of different tables first, and in each table rows of different data sets, so that a sample has some of each.
fn spread(rows: &mut [&Row]) {
    let mut sources = BTreeMap::new();
    rows.sort_by_cached_key(|row| {
        let before: &mut usize =
            sources.entry((row.about.table.clone(), row.source().to_owned())).or_default();
        *before += 1;
        *before
    });
    let mut tables = BTreeMap::new();
    rows.sort_by_cached_key(|row| {
        let before: &mut usize = tables.entry(row.about.table.clone()).or_default();
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
        "smoke test: {done} rows were tried in {} minutes, those of different tables first; run the same \
         command to continue with the other {}: {}",
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
        assert_eq!(names, ["a/1", "b/4", "a/3", "a/2"]);
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
            let (out, share) = (place.path(), Share::whole());
            Work { row, arguments, out, console, place: (1, 1), deadline, share }.run()
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
