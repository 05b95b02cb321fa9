use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lpgnn::evaluate::Protocol;
use lpgnn::run::{Setting, settings_of_toml};
use sha2::{Digest, Sha256};

/// A row of a table, as defined in a file: an `[experiment]`, and the settings of its runs.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The folder and the file, without its extension: `table4/mutag`.
    pub(super) name: String,
    pub(super) about: Experiment,
    pub(super) settings: Vec<Setting>,
    /// Hash of everything that determines the result.
    pub(super) hash: String,
}

/// What is published, and how it is reproduced.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Experiment {
    pub(super) title: String,
    /// The folder of the file.
    pub(super) table: String,
    /// Position of the number in the table.
    pub(super) row: String,
    pub(super) column: String,
    pub(super) protocol: Protocol,
    /// Number of folds to draw.
    pub(super) folds: Option<usize>,
    /// Predefined folds, relative to the folder of the experiments.
    pub(super) fold_files: Option<PathBuf>,
    #[serde(default)]
    pub(super) fold_seed: u64,
    /// Seeds of the runs: of each seed one with the protocol split, and all folds with the others.
    pub(super) seeds: Option<Vec<u64>>,
    /// Models of every run that are trained one after the other, each on what the one below has found.
    pub(super) stages: Option<NonZeroUsize>,
    /// Models of every run whose predictions are averaged.
    pub(super) ensemble: Option<NonZeroUsize>,
    /// Seed of a generated data set.
    #[serde(default)]
    pub(super) data_seed: u64,
    /// Options of a generated data set, if not the defaults.
    pub(super) generate: Option<toml::Table>,
    pub(super) paper: Option<Published>,
}

/// The published number, in percent.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    pub(super) mean: f64,
    pub(super) std: Option<f64>,
}

/// Keys that only affect the presentation, not the result.
const SHOWN: [&str; 5] = ["title", "table", "row", "column", "paper"];

impl Row {
    /// All rows of a folder, by name.
    pub(super) fn all(folder: &Path) -> anyhow::Result<Vec<Self>> {
        let mut rows = vec![];
        for table in folders(folder)? {
            for path in files(&table, "toml")? {
                rows.push(Self::read(&path)?);
            }
        }
        if rows.is_empty() && !folder.join(super::study::STUDIES).is_dir() {
            bail!("there are no experiments in {}; use --dir to set the folder", folder.display());
        }
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(rows)
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let stem = |path: Option<&Path>| {
            path.and_then(Path::file_stem).unwrap_or_default().to_string_lossy().into_owned()
        };
        Self::parse(&path.display().to_string(), &stem(path.parent()), &stem(Some(path)), &text)
    }

    pub(super) fn parse(origin: &str, table: &str, stem: &str, text: &str) -> anyhow::Result<Self> {
        let wrong = |problem: String| lpgnn::Error::Config { origin: origin.into(), problem };
        let mut settings = settings_of_toml(origin, text)?;
        settings.retain(|setting| !setting.path().starts_with("experiment."));
        let mut file: toml::Table =
            toml::from_str(text).map_err(|error| wrong(error.message().to_owned()))?;
        let Some(toml::Value::Table(mut experiment)) = file.remove("experiment") else {
            bail!(wrong("it has no [experiment]".into()));
        };
        let about: Experiment =
            experiment.clone().try_into().map_err(|error: toml::de::Error| {
                wrong(format!("[experiment]: {}", error.message().trim_end()))
            })?;
        about.check(table).map_err(wrong)?;
        SHOWN.iter().for_each(|key| drop(experiment.remove(*key)));
        file.insert("experiment".into(), experiment.into());
        Ok(Self { name: format!("{table}/{stem}"), about, settings, hash: hash(&file)? })
    }

    /// Whether it is selected by this name: its own, that of its file, or that of its table.
    pub(super) fn is_meant_by(&self, name: &str) -> bool {
        let name = name.trim_end_matches(".toml");
        let file = self.name.rsplit('/').next();
        [Some(self.name.as_str()), file, Some(self.about.table.as_str())].contains(&Some(name))
    }

    /// The name of its data.
    pub(super) fn source(&self) -> &str {
        let source = self.settings.iter().rfind(|setting| setting.path() == "data.source");
        source.and_then(|source| source.value().as_str()).unwrap_or("clique")
    }
}

impl Experiment {
    /// How many runs it has; about, where they are given by files.
    pub(super) fn parts(&self) -> usize {
        let seeds = self.seeds.as_ref().map_or(1, Vec::len);
        if self.protocol == Protocol::Split { seeds } else { seeds * self.folds.unwrap_or(10) }
    }

    fn check(&self, folder: &str) -> Result<(), String> {
        if self.table != folder {
            return Err(format!("table is {}, but the file is in folder {folder}", self.table));
        }
        let folds = self.folds.is_some() || self.fold_files.is_some();
        let no_seeds = self.seeds.as_ref().is_some_and(Vec::is_empty);
        match self.protocol {
            Protocol::Split if self.seeds.is_none() || no_seeds || folds => {
                Err("the protocol split requires seeds and no folds".into())
            }
            Protocol::BestMeanEpoch | Protocol::Nested if !folds => {
                Err(format!("the protocol {} requires folds or fold-files", self.protocol))
            }
            _ if no_seeds => Err("seeds is an empty list".into()),
            _ => Ok(()),
        }
    }
}

/// Independent of the order of entries and of comments.
pub(super) fn hash(table: &toml::Table) -> anyhow::Result<String> {
    // Objects of JSON are kept in order.
    let text = serde_json::to_value(table)?.to_string();
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16));
    Ok(Sha256::digest(text).iter().flat_map(digits).flatten().collect())
}

/// The subfolders, except those of results, studies and plots.
fn folders(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let others = [super::RESULTS, super::study::STUDIES, super::study::report::PLOTS];
    let is_table =
        |path: &PathBuf| path.is_dir() && !others.iter().any(|name| path.ends_with(name));
    Ok(paths.filter(is_table).collect())
}

/// The files of a folder with this extension.
pub(super) fn files(folder: &Path, ending: &str) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = r#"
        [experiment]
        title = "A title"
        table = "table4"
        row = "one-shot"
        column = "MUTAG"
        protocol = "nested"
        folds = 10
        paper = { mean = 90.5, std = 7.0 }
        [data]
        source = "MUTAG"
        [training]
        epochs = 5
    "#;

    fn parse(text: &str) -> Result<Row, String> {
        Row::parse("x.toml", "table4", "x", text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_row_is_an_experiment_and_settings() {
        let row = parse(ROW).unwrap();
        assert_eq!((row.name.as_str(), row.source()), ("table4/x", "MUTAG"));
        assert_eq!(row.settings.len(), 2);
        for name in ["table4", "x", "table4/x"] {
            assert!(row.is_meant_by(name), "{name}");
        }
        assert!(!row.is_meant_by("table3"));
    }

    #[test]
    fn the_hash_is_of_what_decides() {
        let hash = |from: &str, to: &str| parse(&ROW.replace(from, to)).unwrap().hash;
        let same = parse(ROW).unwrap().hash;
        assert_eq!(hash("A title", "Another"), same);
        assert_eq!(hash("mean = 90.5", "mean = 91.0"), same);
        assert_ne!(hash("epochs = 5", "epochs = 6"), same);
        assert_ne!(hash("folds = 10", "folds = 9"), same);
    }

    #[test]
    fn every_seed_has_all_folds() {
        let seeds = ROW.replace("folds = 10", "folds = 10\nseeds = [1, 2, 3]");
        assert_eq!(parse(ROW).unwrap().about.parts(), 10);
        assert_eq!(parse(&seeds).unwrap().about.parts(), 30);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let said = |from: &str, to: &str| parse(&ROW.replace(from, to)).unwrap_err();
        assert_eq!(
            said("\"nested\"", "\"split\""),
            "x.toml: the protocol split requires seeds and no folds"
        );
        assert_eq!(
            said("\"table4\"", "\"table3\""),
            "x.toml: table is table3, but the file is in folder table4"
        );
        assert!(said("folds", "fold").contains("unknown field `fold`"));
        assert_eq!(
            said("folds = 10", "seeds = [1, 2]"),
            "x.toml: the protocol nested requires folds or fold-files"
        );
        assert_eq!(said("folds = 10", "folds = 10\nseeds = []"), "x.toml: seeds is an empty list");
    }
}
