use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::Error;
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
            problem: error.message().trim_end().to_owned(),
        })?;
        name.clone_into(&mut space.name);
        space.check()?;
        Ok(space)
    }

    /// That there is something to choose from for everything that is varied.
    fn check(&self) -> Result<(), Error> {
        for (paths, choice) in &self.values {
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

    /// Settings that all trials share.
    pub fn settings(&self) -> Vec<Setting> {
        let set = |(path, value): (&String, &toml::Value)| self.setting(path, value);
        self.set.iter().map(set).collect()
    }

    /// The configurations to try, at most `most` of them.
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
        let base = base.with(&self.settings())?;
        let mut draw = uniform(seed);
        let size = match self.method {
            Method::Grid => self.grid_size()?.min(most.unwrap_or(usize::MAX)),
            Method::Random => most.unwrap_or(TRIALS),
        };
        if size > MOST_TRIALS {
            return Err(self.wrong(format!(
                "it has {size} trials, but at most {MOST_TRIALS} can be made; set the budget to \
                 fewer"
            )));
        }
        let chosen: Vec<Vec<Setting>> = match self.method {
            Method::Grid => {
                let mut places: Vec<usize> = (0..self.grid_size()?).collect();
                shuffle(&mut places, &mut draw);
                places.into_iter().take(size).map(|place| self.combination(place)).collect()
            }
            Method::Random => (0..size).map(|_| self.draw(&mut draw)).collect(),
        };
        chosen.iter().map(|settings| base.with(settings)).collect()
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
        paths.split(',').map(|path| self.setting(path.trim(), value)).collect()
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
