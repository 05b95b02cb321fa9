use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde_json::Value;

use crate::Error;
use crate::input::toml_problem;
use crate::numeric::uniform;
use crate::run::{RunConfig, Setting, read_text};

/// A search space.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Space {
    #[serde(default)]
    method: Method,
    /// Settings that all trials share.
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    /// What is varied: a setting, or several that change together, separated by commas.
    values: BTreeMap<String, Choice>,
    #[serde(skip)]
    name: String,
}

/// How trials are made from the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Method {
    /// Every combination, in an order drawn from the seed, so that a part of it is a sample.
    #[default]
    Grid,
    /// Drawn.
    Random,
}

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged)]
enum Choice {
    OneOf(Vec<toml::Value>),
    Between(Between),
}

/// A number of a range, for random search.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Between {
    low: f64,
    high: f64,
    /// Whether to sample on a logarithmic scale.
    #[serde(default)]
    log: bool,
    /// Whether it is an integer.
    #[serde(default)]
    integer: bool,
}

/// Built-in search spaces.
const BUILTIN: [(&str, &str); 2] = [
    ("paper-nodes", include_str!("../../../spaces/paper-nodes.toml")),
    ("paper-graphs", include_str!("../../../spaces/paper-graphs.toml")),
];

/// Default number of trials of a random search.
const TRIALS: usize = 32;
/// Combinations of the largest grid.
const MOST: usize = 1_000_000;
/// Trials of the largest search.
const MOST_TRIALS: usize = 100_000;
/// Draws in a row that bring nothing new, after which a random search takes its space for exhausted.
const REPEATS: usize = 10_000;

impl Space {
    /// The space in a file, or the built-in one of this name: `paper-nodes` or `paper-graphs`.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when it cannot be read.
    pub fn find(name: &str) -> Result<Self, Error> {
        let builtin = BUILTIN.iter().find(|(builtin, _)| *builtin == name);
        let text = match builtin {
            Some((_, text)) if !Path::new(name).exists() => (*text).to_owned(),
            _ => read_text(Path::new(name)).map_err(|error| match error {
                Error::Io { source, .. } => Error::Config {
                    origin: name.into(),
                    problem: format!(
                        "it cannot be read ({source}); built-in spaces are {}",
                        BUILTIN.map(|(name, _)| name).join(", ")
                    ),
                },
                error => error,
            })?,
        };
        let mut space: Self = toml::from_str(&text).map_err(|error| Error::Config {
            origin: name.into(),
            problem: toml_problem(&error),
        })?;
        name.clone_into(&mut space.name);
        space.check()?;
        Ok(space)
    }

    /// That there is something to choose from for everything that is varied.
    fn check(&self) -> Result<(), Error> {
        for (paths, choice) in &self.values {
            let fixed = |path: &&str| path.starts_with("data.") || path.starts_with("split.");
            if let Some(path) = split_paths(paths).find(fixed) {
                let why = "trials are compared on the same data and the same split";
                return Err(self.wrong(format!("{path} cannot be varied: {why}")));
            }
            match choice {
                Choice::OneOf(values) if values.is_empty() => {
                    return Err(self.wrong(format!("{paths} has no values")));
                }
                Choice::Between(range) if !range.is_valid() => {
                    return Err(self.wrong(format!(
                        "{paths} ranges from {} to {}, but low must not be above high{}",
                        range.low,
                        range.high,
                        if range.log { " and must be positive on a logarithmic scale" } else { "" }
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A space that is described as in a file, but by JSON; `name` is what messages call it.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when it is not a space.
    pub fn from_json(name: &str, json: Value) -> Result<Self, Error> {
        let mut space: Self = serde_json::from_value(json)
            .map_err(|error| Error::Config { origin: name.into(), problem: error.to_string() })?;
        name.clone_into(&mut space.name);
        space.check()?;
        Ok(space)
    }

    /// That none of these settings is one that the trials vary.
    ///
    /// # Errors
    ///
    /// [`Error::Config`], which names the first one. A file may have it: complete files have all settings.
    pub fn check_settings(&self, settings: &[Setting]) -> Result<(), Error> {
        let varies = |path: &str| {
            self.values.keys().any(|paths| split_paths(paths).any(|varied| varied == path))
        };
        let alone = |setting: &&Setting| setting.origin().position().is_none();
        match settings.iter().filter(alone).find(|setting| varies(setting.path())) {
            None => Ok(()),
            Some(setting) => Err(Error::Config {
                origin: setting.origin().clone(),
                problem: format!(
                    "{} has no effect: the search space {} varies it",
                    setting.path(),
                    self.name
                ),
            }),
        }
    }

    /// Settings that all trials share.
    pub fn settings(&self) -> Vec<Setting> {
        let set = |(path, value): (&String, &toml::Value)| self.setting(path, value);
        self.set.iter().map(set).collect()
    }

    /// The configurations to try, at most `most` of them, and no two alike: fewer than `most` are all that
    /// there are. `base` already has the [settings](Self::settings) that they share.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when it varies something that is not a setting, or has no values or too many.
    pub fn trials(
        &self,
        base: &RunConfig,
        most: Option<usize>,
        seed: u64,
    ) -> Result<Vec<RunConfig>, Error> {
        let mut draw = uniform(seed);
        let size = match self.method {
            Method::Grid => self.grid_size()?.min(most.unwrap_or(usize::MAX)),
            Method::Random => most.unwrap_or(TRIALS),
        };
        if size > MOST_TRIALS {
            return Err(self.wrong(format!(
                "it has {size} trials, but at most {MOST_TRIALS} are supported; set a smaller \
                 budget"
            )));
        }
        match self.method {
            Method::Grid => {
                let mut places: Vec<usize> = (0..self.grid_size()?).collect();
                shuffle(&mut places, &mut draw);
                let combinations = places.into_iter().map(|place| self.combination(place));
                distinct(base, combinations, size, usize::MAX)
            }
            Method::Random => {
                let drawn = std::iter::repeat_with(|| self.draw(&mut draw));
                distinct(base, drawn, size, REPEATS)
            }
        }
    }

    /// The number of combinations of a grid.
    fn grid_size(&self) -> Result<usize, Error> {
        let mut size = 1_usize;
        for (paths, choice) in &self.values {
            let Choice::OneOf(values) = choice else {
                return Err(
                    self.wrong(format!("{paths} is a range, which only random search can use"))
                );
            };
            size = size.saturating_mul(values.len());
            if size > MOST {
                return Err(self.wrong(format!("it has more than {MOST} combinations")));
            }
        }
        Ok(size)
    }

    /// A combination of a grid, by its place; the last of the settings changes first.
    fn combination(&self, mut place: usize) -> Vec<Setting> {
        let mut settings = vec![];
        for (paths, choice) in self.values.iter().rev() {
            let Choice::OneOf(values) = choice else { continue };
            settings.splice(0..0, self.together(paths, &values[place % values.len()]));
            place /= values.len();
        }
        settings
    }

    fn draw(&self, draw: &mut impl FnMut() -> f64) -> Vec<Setting> {
        let mut settings = vec![];
        for (paths, choice) in &self.values {
            let value = match choice {
                Choice::OneOf(values) => match values.get(below(values.len(), draw)) {
                    Some(value) => value.clone(),
                    None => continue,
                },
                Choice::Between(range) => range.at(draw()),
            };
            settings.extend(self.together(paths, &value));
        }
        settings
    }

    fn together(&self, paths: &str, value: &toml::Value) -> Vec<Setting> {
        split_paths(paths).map(|path| self.setting(path, value)).collect()
    }

    fn wrong(&self, problem: String) -> Error {
        Error::Config { origin: (&self.name).into(), problem }
    }

    fn setting(&self, path: &str, value: &toml::Value) -> Setting {
        Setting::new(&self.name, path, serde_json::to_value(value).unwrap_or(Value::Null))
    }
}

impl Between {
    fn is_valid(&self) -> bool {
        let ends = self.low.is_finite() && self.high.is_finite() && self.low <= self.high;
        ends && (!self.log || self.low > 0.0)
    }

    fn at(&self, share: f64) -> toml::Value {
        let x = if self.log {
            (self.low.ln() + share * (self.high.ln() - self.low.ln())).exp()
        } else {
            self.low + share * (self.high - self.low)
        };
        if self.integer {
            #[allow(clippy::cast_possible_truncation, reason = "it saturates")]
            toml::Value::Integer(x.round() as i64)
        } else {
            toml::Value::Float(x)
        }
    }
}

/// The settings that change together.
fn split_paths(paths: &str) -> impl Iterator<Item = &str> {
    paths.split(',').map(str::trim)
}

/// The first `size` different configurations that these settings make of `base`; it ends when `repeats` in a row are
/// known already.
fn distinct(
    base: &RunConfig,
    settings: impl Iterator<Item = Vec<Setting>>,
    size: usize,
    repeats: usize,
) -> Result<Vec<RunConfig>, Error> {
    let (mut found, mut known, mut repeated) = (vec![], HashSet::new(), 0);
    if size == 0 {
        return Ok(found);
    }
    for settings in settings {
        // The same values make the same configuration, which takes longer to make.
        let values: Vec<String> =
            settings.iter().map(|setting| setting.value().to_string()).collect();
        if known.insert(values.join(",")) {
            let config = base.with(&settings)?;
            repeated = 0;
            found.push(config);
        } else {
            repeated += 1;
        }
        if found.len() == size || repeated == repeats {
            break;
        }
    }
    Ok(found)
}

/// An integer below `count`, or 0.
fn below(count: usize, draw: &mut impl FnMut() -> f64) -> usize {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count is a count"
    )]
    let place = (draw() * count as f64) as usize;
    place.min(count.saturating_sub(1))
}

fn shuffle<T>(items: &mut [T], draw: &mut impl FnMut() -> f64) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(i + 1, draw));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grids_of_the_paper_are_as_large_as_they_should_be() {
        let base = RunConfig::default();
        for (name, size) in
            [("paper-nodes", 3 * 2 * 2 * 3 * 3 * 3), ("paper-graphs", 5 * 5 * 2 * 2 * 3)]
        {
            let space = Space::find(name).unwrap();
            let base = base.with(&space.settings()).unwrap();
            let trials = space.trials(&base, None, 0).unwrap();
            assert_eq!(trials.len(), size, "{name}");
            assert!(trials.iter().enumerate().all(|(i, trial)| !trials[..i].contains(trial)));
        }
    }

    #[test]
    fn a_drawn_number_lies_in_its_range() {
        let range = Between { low: 1e-4, high: 1e-2, log: true, integer: false };
        let middle = range.at(0.5).as_float().unwrap();
        assert!((middle - 1e-3).abs() < 1e-9, "{middle}");
    }

    fn space(text: &str) -> Result<Space, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("space.toml");
        std::fs::write(&file, text).unwrap();
        Space::find(file.to_str().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_range_that_is_none_is_refused() {
        for range in [
            "{ low = 1.0, high = 0.5 }",
            "{ low = -1.0, high = 1.0, log = true }",
            "{ low = 0, high = 1, log = true }",
            "{ low = nan, high = 1.0 }",
            "{ low = 0.0, high = inf }",
            "[]",
        ] {
            // Of a logarithm that does not exist, `none` would be made.
            let text = format!("method = \"random\"\n[values]\n\"training.lipschitz\" = {range}");
            let error = space(&text).unwrap_err();
            assert!(error.contains("training.lipschitz"), "{range}: {error}");
        }
    }

    #[test]
    fn no_trial_is_made_twice_and_a_finite_space_is_exhausted() {
        let base = RunConfig::default();
        let dims = "\"model.state-dim\" = [2, 3, 3]\n\"model.layers\" = [1, 2]";
        let layers = "\"model.layers\" = { low = 1, high = 9, log = true, integer = true }";
        for (method, values, size) in
            [("random", dims, 4), ("grid", dims, 4), ("random", layers, 9)]
        {
            let space = space(&format!("method = \"{method}\"\n[values]\n{values}")).unwrap();
            let trials = space.trials(&base, Some(50), 7).unwrap();
            assert_eq!(trials.len(), size, "{method} {values}");
            assert!(trials.iter().enumerate().all(|(i, trial)| !trials[..i].contains(trial)));
            // Fewer of them are the first of these.
            assert_eq!(space.trials(&base, Some(3), 7).unwrap(), trials[..3]);
        }
    }

    #[test]
    fn data_and_split_are_the_same_for_all_trials() {
        for path in ["split.seed", "split.train", "data.source", "model.layers, split.seed"] {
            let error = space(&format!("[values]\n\"{path}\" = [1, 2]")).unwrap_err();
            assert!(
                error.contains(" cannot be varied: trials are compared on the same data"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_setting_that_the_space_varies_is_refused_unless_a_file_has_it() {
        let space = space("[values]\n\"model.layers, model.state-dim\" = [1, 2]").unwrap();
        let set = |path: &str| [Setting::new("--set", path, 3)];
        let error = space.check_settings(&set("model.state-dim")).unwrap_err().to_string();
        assert!(
            error.starts_with("--set: model.state-dim has no effect: the search space"),
            "{error}"
        );
        space.check_settings(&set("training.epochs")).unwrap();
        let file = crate::run::settings_of_toml("all.toml", "[model]\nlayers = 3\n").unwrap();
        space.check_settings(&file).unwrap();
    }

    #[test]
    fn a_part_of_a_large_grid_is_drawn_without_the_rest() {
        let ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
        let keys = ["model.state-dim", "model.layers", "training.epochs", "training.eval-every"];
        let more = ["training.batch-size", "training.patience"];
        let lines = keys.iter().chain(&more).map(|key| format!("\"{key}\" = {ten}\n"));
        let space = space(&format!("[values]\n{}", lines.collect::<String>())).unwrap();
        let base = RunConfig::default();
        let trials = space.trials(&base, Some(7), 1).unwrap();
        assert_eq!(trials.len(), 7);
        assert!(trials.iter().enumerate().all(|(i, trial)| !trials[..i].contains(trial)));
        let error = space.trials(&base, None, 1).unwrap_err().to_string();
        assert!(error.contains("it has 1000000 trials, but at most 100000"), "{error}");
    }
}
