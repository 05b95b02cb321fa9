use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, bail};
use lpgnn::experiment::crossval::CrossvalReport;
use lpgnn::run::write_file;

use super::super::at_most;
use super::RESULTS;
use super::overview::Overview;
use super::record::{Record, recorded};
use super::row::{Published, Row};

const FILE: &str = "RESULTS.md";
/// The file that describes the tables.
const TABLES: &str = "tables.toml";

/// The description of a table.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    title: String,
    #[serde(default)]
    about: String,
}

/// What `tables.toml` says.
#[derive(Debug, Default, serde::Deserialize)]
struct Descriptions {
    #[serde(default)]
    overview: Vec<Overview>,
    #[serde(flatten)]
    tables: BTreeMap<String, Table>,
}

/// A row and its result.
pub(super) struct Line<'a> {
    pub(super) row: &'a Row,
    pub(super) record: Option<Record>,
}

/// Writes all results as tables.
pub(super) fn write(dir: &Path, rows: &[Row]) -> anyhow::Result<String> {
    let path = dir.join(FILE);
    write_file(&path, text(dir, rows)?.as_bytes())?;
    Ok(path.display().to_string())
}

/// # Errors
///
/// When a result was obtained with other settings than its row's, has no row, or is not in the tables.
pub(super) fn check(dir: &Path, rows: &[Row]) -> anyhow::Result<()> {
    for name in recorded(dir)? {
        let Some(row) = rows.iter().find(|row| row.name == name) else {
            bail!("{} has a result for {name}, but there is no such row", dir.display());
        };
        if Record::read(&dir.join(RESULTS), &name)?.is_some_and(|record| !record.is_of(row)) {
            bail!("{name} was run with other settings; run `lpgnn reproduce {name}` again");
        }
    }
    let path = dir.join(FILE);
    let found = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    if found != text(dir, rows)? {
        bail!("{} is out of date; run `lpgnn reproduce --report` to update it", path.display());
    }
    Ok(())
}

fn text(dir: &Path, rows: &[Row]) -> anyhow::Result<String> {
    let Descriptions { overview, tables: about } = descriptions(&dir.join(TABLES))?;
    let mut tables: BTreeMap<&str, Vec<Line<'_>>> = BTreeMap::new();
    for row in rows {
        let record = Record::read(&dir.join(RESULTS), &row.name)?;
        let record = record.filter(|record| record.is_of(row));
        tables.entry(&row.about.table).or_default().push(Line { row, record });
    }
    let mut text = String::from(
        "# Results\n\nWritten by `lpgnn reproduce --report` from the files in `results`. Accuracies in \
         percent: mean ± standard deviation,\nand in brackets the published ones and the difference. `residual` is the mean of `abs(x − f_a)` over the states of the last \
         epoch\nof training, `distance, at most` how far the states that the accuracies were read from can be from their fixed \
         point, in graphs for which it is known; –: nothing bounds it,\nor it was not measured. Without a commit: the one that was used is no longer in the history.\n",
    );
    let all: Vec<&Line<'_>> = tables.values().flatten().collect();
    for overview in &overview {
        overview.write(&mut text, &all)?;
    }
    for (name, lines) in &tables {
        let fallback = Table { title: (*name).to_owned(), about: String::new() };
        let Table { title, about } = about.get(*name).unwrap_or(&fallback);
        write!(text, "\n## {title}\n\n")?;
        if !about.is_empty() {
            write!(text, "{}\n\n", about.trim_end())?;
        }
        write_numbers(&mut text, lines)?;
        write_details(&mut text, lines)?;
    }
    Ok(text)
}

fn descriptions(path: &Path) -> anyhow::Result<Descriptions> {
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(Descriptions::default()) };
    let wrong =
        |problem| lpgnn::Error::Config { origin: path.display().to_string().into(), problem };
    let found: Descriptions =
        toml::from_str(&text).map_err(|error| wrong(error.message().trim_end().to_owned()))?;
    found.overview.iter().try_for_each(Overview::check).map_err(wrong)?;
    Ok(found)
}

/// Rows and columns as published, with one line per protocol.
fn write_numbers(text: &mut String, lines: &[Line<'_>]) -> std::fmt::Result {
    let mut columns: Vec<&str> = vec![];
    let mut rows: Vec<(&str, &str)> = vec![];
    for Line { row, .. } in lines {
        let of = (row.about.row.as_str(), row.about.protocol.as_str());
        if !columns.contains(&row.about.column.as_str()) {
            columns.push(&row.about.column);
        }
        if !rows.contains(&of) {
            rows.push(of);
        }
    }
    writeln!(text, "| | protocol | {} |", columns.join(" | "))?;
    writeln!(text, "|---|---|{}", "---|".repeat(columns.len()))?;
    for (name, protocol) in rows {
        let cell = |column: &&str| {
            let here = |line: &&Line<'_>| {
                let about = &line.row.about;
                (about.row.as_str(), about.protocol.as_str(), about.column.as_str())
                    == (name, protocol, *column)
            };
            lines.iter().find(here).map_or_else(String::new, cell)
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        writeln!(text, "| {name} | {protocol} | {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn cell(line: &Line<'_>) -> String {
    let paper = line.row.about.paper;
    let Some(record) = &line.record else {
        let paper = paper.map_or_else(String::new, |paper| format!(" ({})", published(paper)));
        return format!("not run{paper}");
    };
    match difference(record, paper) {
        Some(difference) => {
            let paper = paper.map(published).unwrap_or_default();
            format!("{} ({paper}; {difference})", ours(record))
        }
        None => ours(record),
    }
}

/// How each result was obtained.
fn write_details(text: &mut String, lines: &[Line<'_>]) -> std::fmt::Result {
    if lines.iter().all(|line| line.record.is_none()) {
        return Ok(());
    }
    writeln!(
        text,
        "\n| file | runs | epoch | MLP without edges | majority class | residual | distance, \
         at most | cheating gap | not converged | diverged | seconds | commit | date | processor |"
    )?;
    writeln!(text, "|{}", "---|".repeat(14))?;
    for Record { name, report, commit, date, processor, .. } in
        lines.iter().filter_map(|line| line.record.as_ref())
    {
        let none = || "–".to_owned();
        writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0} | {} | {date} | {processor} |",
            report.folds,
            report.epoch.map_or_else(none, |epoch| epoch.to_string()),
            percent(report.baseline.mean),
            report.majority.map_or_else(none, |share| percent(share.mean)),
            report.residual.map_or_else(none, |residual| format!("{residual:.1e}")),
            distance(report).unwrap_or_else(none),
            report.cheating_gap.map_or_else(none, percent),
            report.not_converged,
            report.diverged,
            report.seconds,
            commit.clone().unwrap_or_else(none),
        )?;
    }
    Ok(())
}

/// How far states are from their fixed point at most, and of how many graphs that is not known.
fn distance(report: &CrossvalReport) -> Option<String> {
    let distance = at_most(report.distance?);
    Some(match report.unbounded {
        0 => distance,
        count => format!("{distance}, {count} unknown"),
    })
}

fn percent(share: f64) -> String {
    // Adding zero turns −0 into 0.
    format!("{:.1}", (1000.0 * share).round() / 10.0 + 0.0)
}

pub(super) fn ours(record: &Record) -> String {
    let test = record.report.test;
    format!("{} ± {}", percent(test.mean), percent(test.std))
}

pub(super) fn published(paper: Published) -> String {
    match paper.std {
        Some(std) => format!("{:.1} ± {std:.1}", paper.mean),
        None => format!("{:.1}", paper.mean),
    }
}

/// Ours minus theirs, in points.
pub(super) fn difference(record: &Record, paper: Option<Published>) -> Option<String> {
    let points = 100.0 * record.report.test.mean - paper?.mean;
    // A hyphen would read as a range.
    Some(format!("{points:+.1}").replace('-', "−"))
}
