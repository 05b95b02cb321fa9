use std::path::Path;

use anyhow::{Context, bail};
use lpgnn::run::{Setting, settings_of_json, settings_of_toml};
use serde_json::Value;

use super::super::row::{files, hash};
use super::measure::Measure;

/// A study, as defined in a file: what is varied, what is run at every point, and what is measured.
#[derive(Clone, Debug)]
pub(crate) struct Study {
    /// The folder and the file, without its extension: `studies/hops`.
    pub(crate) name: String,
    pub(crate) about: About,
    pub(crate) plan: Vec<PlannedPoint>,
}

/// What the study asks and shows.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct About {
    pub(crate) title: String,
    /// The question.
    pub(crate) question: String,
    /// The finding.
    #[serde(default)]
    pub(crate) finding: String,
    pub(crate) protocol: Action,
    /// Seeds of data and runs.
    pub(crate) seeds: Vec<u64>,
    /// The setting, or the option of the data as `generate.KEY`, that is varied.
    vary: Option<String>,
    #[serde(default)]
    values: Vec<toml::Value>,
    /// The residual to reach.
    #[serde(default = "tol")]
    pub(crate) tol: f64,
    pub(crate) x: Axis,
    /// What is plotted over it.
    pub(crate) panels: Vec<Axis>,
}

fn tol() -> f64 {
    1e-3
}

/// What is run at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Action {
    /// A training run, measured at its end.
    Train,
    /// A training run, measured at every evaluation.
    Curve,
    /// The fixed point for initial weights, from zero states.
    Converge,
    /// The time of an update.
    Update,
}

/// A measure along an axis.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Axis {
    pub(crate) of: Measure,
    /// Label in place of the measure's own.
    label: Option<String>,
    #[serde(default)]
    pub(crate) log: bool,
}

impl Axis {
    pub(crate) fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(self.of.label())
    }
}

/// A line of the plot.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Series {
    name: String,
    vary: Option<String>,
    values: Option<Vec<toml::Value>>,
    /// What it sets.
    #[serde(default)]
    set: toml::Table,
}

/// A point to run.
#[derive(Clone, Debug)]
pub(crate) struct PlannedPoint {
    pub(crate) series: String,
    /// The value of what is varied; null if nothing is.
    pub(crate) value: Value,
    pub(crate) seed: u64,
    pub(crate) source: String,
    pub(crate) generate: Option<toml::Table>,
    pub(crate) settings: Vec<Setting>,
    /// Hash of everything that determines its result.
    pub(crate) key: String,
}

/// The folder of the studies, within that of the experiments and that of the results.
pub(crate) const STUDIES: &str = "studies";

impl Study {
    /// All studies of the folder of experiments, by name.
    pub(crate) fn all(experiments: &Path) -> anyhow::Result<Vec<Self>> {
        let folder = experiments.join(STUDIES);
        if !folder.is_dir() {
            return Ok(vec![]);
        }
        let mut paths = files(&folder, "toml")?;
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&path.display().to_string(), &stem, &text)
    }

    pub(super) fn parse(origin: &str, stem: &str, text: &str) -> anyhow::Result<Self> {
        let wrong = |problem: String| lpgnn::Error::Config { origin: origin.into(), problem };
        let shown = |what: &str, error: &toml::de::Error| {
            wrong(format!("{what}: {}", error.message().trim_end()))
        };
        // So that a syntax error names its line.
        settings_of_toml(origin, text)?;
        let mut file: toml::Table =
            toml::from_str(text).map_err(|error| wrong(error.message().to_owned()))?;
        let Some(about) = file.remove("study") else { bail!(wrong("it has no [study]".into())) };
        let about: About = about.try_into().map_err(|error| shown("[study]", &error))?;
        let series: Vec<Series> = match file.remove("series") {
            Some(series) => series.try_into().map_err(|error| shown("[[series]]", &error))?,
            None => bail!(wrong("it has no [[series]]".into())),
        };
        if about.seeds.is_empty() || about.panels.is_empty() {
            bail!(wrong("at least one seed and one panel are expected".into()));
        }
        let mut plan = vec![];
        for series in &series {
            let vary = series.vary.as_ref().or(about.vary.as_ref());
            let values = series.values.as_ref().unwrap_or(&about.values);
            let values: Vec<Option<&toml::Value>> = match vary {
                Some(_) if values.is_empty() => {
                    bail!(wrong("it has `vary` but no `values`".into()))
                }
                Some(_) => values.iter().map(Some).collect(),
                None => vec![None],
            };
            for value in values {
                let mut table = file.clone();
                merge(&mut table, &series.set);
                if let (Some(path), Some(value)) = (vary, value) {
                    put(&mut table, path, value).map_err(wrong)?;
                }
                for &seed in &about.seeds {
                    let point = PlannedPoint::new(origin, &about, series, value, seed, &table)?;
                    plan.push(point);
                }
            }
        }
        Ok(Self { name: format!("{STUDIES}/{stem}"), about, plan })
    }

    /// Its series, in the order of the file.
    pub(crate) fn series(&self) -> Vec<&str> {
        let mut names: Vec<&str> = vec![];
        for point in &self.plan {
            if !names.contains(&point.series.as_str()) {
                names.push(&point.series);
            }
        }
        names
    }

    /// The name of its file, without the extension.
    pub(crate) fn stem(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it is selected by this name: its own, that of its file, or that of all studies.
    pub(crate) fn is_meant_by(&self, name: &str) -> bool {
        let name = name.trim_end_matches(".toml");
        [self.name.as_str(), self.stem(), STUDIES].contains(&name)
    }
}

impl PlannedPoint {
    fn new(
        origin: &str,
        about: &About,
        series: &Series,
        value: Option<&toml::Value>,
        seed: u64,
        table: &toml::Table,
    ) -> anyhow::Result<Self> {
        let mut decides = table.clone();
        let protocol = serde_json::to_value(about.protocol)?;
        decides.insert("protocol".into(), protocol.as_str().unwrap_or_default().into());
        decides.insert("tol".into(), about.tol.into());
        let seed_value = i64::try_from(seed).context("a seed is below 2⁶³")?;
        decides.insert("seed".into(), seed_value.into());
        let mut settings = table.clone();
        let generate = match settings.remove("generate") {
            Some(toml::Value::Table(generate)) => Some(generate),
            _ => None,
        };
        let source = settings.get("data").and_then(|data| data.get("source"));
        let source = source.and_then(toml::Value::as_str).unwrap_or("clique").to_owned();
        // They come from several places in the file, so they have no line.
        let mut settings = settings_of_json(origin, serde_json::to_value(&settings)?)?;
        settings.push(Setting::new(origin, "training.seed", seed));
        Ok(Self {
            series: series.name.clone(),
            value: value.map_or(Ok(Value::Null), serde_json::to_value)?,
            seed,
            source,
            generate,
            settings,
            key: hash(&decides)?[..16].to_owned(),
        })
    }
}

/// Overrides entries of `table` with those of `other`.
fn merge(table: &mut toml::Table, other: &toml::Table) {
    for (key, value) in other {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => merge(inner, value),
            _ => drop(table.insert(key.clone(), value.clone())),
        }
    }
}

/// Sets the value at a path such as `training.solver.kind`.
fn put(table: &mut toml::Table, path: &str, value: &toml::Value) -> Result<(), String> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    if rest.is_empty() {
        table.insert(path.to_owned(), value.clone());
        return Ok(());
    }
    let inner = table.entry(first.to_owned()).or_insert_with(|| toml::Table::new().into());
    match inner {
        toml::Value::Table(inner) => put(inner, rest, value),
        _ => Err(format!("{first} is a setting, not a section")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const STUDY: &str = r#"
        [study]
        title = "How far"
        question = "How far does it get?"
        protocol = "train"
        seeds = [0, 1]
        vary = "generate.length"
        values = [5, 10]
        x = { of = "hops", log = true }
        panels = [{ of = "accuracy" }]
        [data]
        source = "chains"
        [generate]
        chains = 1
        [training]
        epochs = 5
        [[series]]
        name = "mean"
        [[series]]
        name = "maximum"
        set = { model.transition = "sage-max", generate.chains = 2 }
    "#;

    fn parse(text: &str) -> Result<Study, String> {
        Study::parse("x.toml", "x", text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_study_is_all_its_points() {
        let study = parse(STUDY).unwrap();
        assert_eq!((study.plan.len(), study.series()), (8, vec!["mean", "maximum"]));
        let last = &study.plan[7];
        assert_eq!((last.seed, &last.value), (1, &Value::from(10)));
        let generate = last.generate.as_ref().unwrap();
        assert_eq!((&generate["length"], &generate["chains"]), (&10.into(), &2.into()));
        let set = |path: &str| last.settings.iter().rfind(|s| s.path() == path).unwrap().value();
        assert_eq!(
            (set("model.transition"), set("training.seed")),
            (&"sage-max".into(), &1.into())
        );
        for name in ["studies", "x", "studies/x", "x.toml"] {
            assert!(study.is_meant_by(name), "{name}");
        }
    }

    #[test]
    fn a_key_is_of_what_decides() {
        let keys = |from: &str, to: &str| -> Vec<String> {
            let study = parse(&STUDY.replace(from, to)).unwrap();
            study.plan.into_iter().map(|point| point.key).collect()
        };
        let same = keys("", "");
        assert_eq!(keys("How far does", "Where does"), same);
        assert_eq!(keys("\"maximum\"", "\"max\""), same);
        assert!(keys("epochs = 5", "epochs = 6").iter().all(|key| !same.contains(key)));
        // An additional value leaves the other keys unchanged.
        let more = keys("[5, 10]", "[5, 10, 20]");
        assert_eq!(same.iter().filter(|key| more.contains(key)).count(), 8);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let said = |from: &str, to: &str| parse(&STUDY.replace(from, to)).unwrap_err();
        assert_eq!(said("values = [5, 10]", ""), "x.toml: it has `vary` but no `values`");
        assert_eq!(
            said("seeds = [0, 1]", "seeds = []"),
            "x.toml: at least one seed and one panel are expected"
        );
        assert!(said("\"train\"", "\"look\"").contains("unknown variant `look`"));
        assert!(said("\"accuracy\"", "\"luck\"").contains("unknown variant `luck`"));
    }
}
