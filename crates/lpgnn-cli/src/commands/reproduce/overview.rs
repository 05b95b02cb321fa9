//! The table that RESULTS.md opens with: the best recorded row of every column, beside published figures.

use std::fmt::Write;

use lpgnn::evaluate::Protocol;

use super::record::Record;
use super::results::{Line, ours};

/// What is compared, as `tables.toml` describes it.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Overview {
    title: String,
    #[serde(default)]
    about: String,
    protocol: Protocol,
    /// The tables whose rows compete.
    tables: Vec<String>,
    /// Rows of these tables that are not the method, but what it is compared with.
    #[serde(default)]
    except: Vec<String>,
    columns: Vec<String>,
    #[serde(default)]
    published: Vec<PublishedRow>,
}

/// The figures of another system in percent, one per column; NaN where none is published.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedRow {
    name: String,
    values: Vec<f64>,
}

impl Overview {
    /// # Errors
    ///
    /// When a published row has more or fewer values than there are columns.
    pub(super) fn check(&self) -> Result<(), String> {
        let wrong = self.published.iter().find(|row| row.values.len() != self.columns.len());
        wrong.map_or(Ok(()), |row| {
            let (name, found, columns) = (&row.name, row.values.len(), self.columns.len());
            Err(format!("{name} has {found} values, but the overview has {columns} columns"))
        })
    }

    /// One line per column of the tables.
    pub(super) fn write(&self, text: &mut String, lines: &[&Line<'_>]) -> std::fmt::Result {
        let Self { title, about, published, .. } = self;
        write!(text, "\n## {title}\n\n")?;
        if !about.is_empty() {
            write!(text, "{}\n\n", about.trim_end())?;
        }
        let names = published.iter().map(|row| row.name.as_str());
        let head: Vec<&str> =
            ["", "best of ours", "with"].into_iter().chain(names).chain(["file"]).collect();
        writeln!(text, "| {} |", head.join(" | "))?;
        writeln!(text, "|{}", "---|".repeat(head.len()))?;
        for (i, column) in self.columns.iter().enumerate() {
            let best = self.best(lines, column);
            let (score, name, file) = best.map_or(("not run".into(), "", ""), |(line, record)| {
                (format!("**{}**", ours(record)), line.row.about.row.as_str(), &*line.row.name)
            });
            write!(text, "| {column} | {score} | {name} |")?;
            for row in published {
                match row.values[i] {
                    value if value.is_nan() => write!(text, " – |")?,
                    value => write!(text, " {value:.1} |")?,
                }
            }
            writeln!(text, " {file} |")?;
        }
        Ok(())
    }

    /// The competing row with the best mean in a column; of equals, the first.
    fn best<'a, 'r>(
        &self,
        lines: &[&'a Line<'r>],
        column: &str,
    ) -> Option<(&'a Line<'r>, &'a Record)> {
        let competes = |line: &&&'a Line<'r>| {
            let about = &line.row.about;
            about.column == column
                && about.protocol == self.protocol
                && self.tables.contains(&about.table)
                && !self.except.contains(&about.row)
        };
        let recorded = |line: &&'a Line<'r>| Some((*line, line.record.as_ref()?));
        let mean = |(_, record): &(_, &Record)| record.report.test.mean;
        lines
            .iter()
            .filter(competes)
            .filter_map(recorded)
            .reduce(|best, next| if mean(&next) > mean(&best) { next } else { best })
    }
}
