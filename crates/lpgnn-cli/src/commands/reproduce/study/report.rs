use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lpgnn::run::write_file;

use super::super::RESULTS;
use super::file::{Action, Axis, Study};
use super::measure::Measure;
use super::plot::plot;
use super::record::{Spot, StudyRecord, recorded};

const FILE: &str = "STUDIES.md";
pub(crate) const PLOTS: &str = "plots";

/// Writes the report of all studies.
pub(crate) fn write(dir: &Path, studies: &[Study]) -> anyhow::Result<Option<String>> {
    if studies.is_empty() {
        return Ok(None);
    }
    let folder = dir.join(PLOTS);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    for (path, text) in texts(dir, studies)? {
        write_file(&path, text.as_bytes())?;
    }
    Ok(Some(dir.join(FILE).display().to_string()))
}

/// # Errors
///
/// When a study has changed since it was run, is incomplete, or is not in the report.
pub(crate) fn check(dir: &Path, studies: &[Study]) -> anyhow::Result<()> {
    let results = dir.join(RESULTS);
    for name in recorded(&results)? {
        let Some(study) = studies.iter().find(|study| study.name == name) else {
            bail!("{} has a result for {name}, but there is no such study", dir.display());
        };
        let Some(record) = StudyRecord::read(&results, &name)? else { continue };
        if study.plan.iter().any(|planned| !record.has(&planned.key)) {
            bail!("{name} has points without results; run `lpgnn reproduce {name}`");
        }
    }
    for (path, text) in texts(dir, studies)? {
        let found = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        if found != text {
            bail!("{} is out of date; run `lpgnn reproduce --report` to update it", path.display());
        }
    }
    Ok(())
}

/// The report and the plots, each with its path.
fn texts(dir: &Path, studies: &[Study]) -> anyhow::Result<Vec<(PathBuf, String)>> {
    if studies.is_empty() {
        return Ok(vec![]);
    }
    let mut text = String::from(
        "# Studies\n\nWritten by `lpgnn reproduce --report` from the files in `studies` and \
         `results/studies`. Lines show the mean over seeds,\nthin bars the range from the smallest to \
         the largest value. Time is CPU time of a single core.\n",
    );
    let mut plots = vec![];
    for study in studies {
        let about = &study.about;
        write!(text, "\n## {}\n\n{}\n", about.title, about.question.trim())?;
        let Some(record) = StudyRecord::read(&dir.join(RESULTS), &study.name)? else {
            write!(text, "\nNot run.\n")?;
            continue;
        };
        let file = format!("{}.svg", study.stem());
        write!(text, "\n![{}]({PLOTS}/{file})\n", about.title)?;
        if !about.finding.is_empty() {
            write!(text, "\n{}\n", about.finding.trim())?;
        }
        writeln!(text)?;
        write_table(&mut text, study, &record)?;
        let here = study.plan.iter().filter(|planned| record.has(&planned.key)).count();
        write!(
            text,
            "\n`{}`, {here} of {} points, {} seeds each; commit {}, {}, {}.\n",
            study.name,
            study.plan.len(),
            about.seeds.len(),
            record.commit.as_deref().unwrap_or("unknown"),
            record.date,
            record.processor
        )?;
        plots.push((dir.join(PLOTS).join(file), plot(study, &record)?));
    }
    plots.push((dir.join(FILE), text));
    Ok(plots)
}

/// A line per value and series; for a curve, its last point.
fn write_table(text: &mut String, study: &Study, record: &StudyRecord) -> std::fmt::Result {
    let about = &study.about;
    // A `|` in a label would end its cell.
    let label = |axis: &Axis| axis.label().replace('|', "\\|");
    let labels: Vec<String> = about.panels.iter().map(label).collect();
    writeln!(text, "| | {} | {} |", label(&about.x), labels.join(" | "))?;
    writeln!(text, "|---|---|{}", "---|".repeat(labels.len()))?;
    for series in study.series() {
        let lines: Vec<Vec<Spot>> =
            about.panels.iter().map(|y| record.line(study, series, y)).collect();
        let mut all: Vec<f64> = lines.iter().flatten().map(|spot| spot.x).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        if about.protocol == Action::Curve {
            all.drain(..all.len().saturating_sub(1));
        }
        for x in all {
            let cell = |(line, y): (&Vec<Spot>, &Axis)| {
                let spot = line.iter().find(|spot| spot.x.to_bits() == x.to_bits());
                spot.map_or_else(|| "–".to_owned(), |spot| tell(y.of, spot.y))
            };
            let cells: Vec<String> = lines.iter().zip(&about.panels).map(cell).collect();
            writeln!(text, "| {series} | {} | {} |", tell(about.x.of, x), cells.join(" | "))?;
        }
    }
    Ok(())
}

/// A number with the digits that matter.
fn tell(measure: Measure, value: f64) -> String {
    let size = value.abs();
    match measure {
        Measure::Accuracy | Measure::TrainAccuracy | Measure::CheatingGap | Measure::Converged => {
            // Adding zero turns −0 into 0.
            format!("{:.1}", (10.0 * value).round() / 10.0 + 0.0)
        }
        Measure::Residual | Measure::ConvergedResidual => format!("{value:.1e}"),
        _ if size >= 1e6 => format!("{value:.2e}"),
        _ if size >= 100.0 || value.fract().abs() < 1e-9 => format!("{value:.0}"),
        _ if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        assert_eq!(tell(Measure::Accuracy, 93.04), "93.0");
        assert_eq!(tell(Measure::CheatingGap, -0.04), "0.0");
        assert_eq!(tell(Measure::Residual, 0.000_123), "1.2e-4");
        assert_eq!(tell(Measure::Hops, 9999.0), "9999");
        assert_eq!(tell(Measure::Value, 0.95), "0.950");
        assert_eq!(tell(Measure::Size, 1_234_567.0), "1.23e6");
        assert_eq!(tell(Measure::NanosecondsPerItem, 12.34), "12.3");
    }
}
