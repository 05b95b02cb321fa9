use std::fmt;

use serde_json::Value;

use super::{Schema, Setting};
use crate::Error;
use crate::data::{FeatureOptions, Format, Ratio};
use crate::graph::Level;
use crate::train::{ModelConfig, TrainingConfig};

/// All settings of a run, as `config.toml` has them.
#[derive(
    Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunConfig {
    /// The data set.
    pub data: DataConfig,
    /// How data columns are encoded as input features.
    pub features: FeatureOptions,
    /// The split into training, validation and test data.
    pub split: SplitConfig,
    /// The functions `f_a`, `f_r` and `G`.
    pub model: ModelConfig,
    /// How the model is trained.
    pub training: TrainingConfig,
}

/// The data set.
#[derive(
    Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DataConfig {
    /// File, folder or name of a data set; see `lpgnn data list`.
    pub source: String,
    /// File format; none: recognised by content.
    #[schemars(extend("x-flag" = "format"))]
    pub format: Option<Format>,
    /// Whether to predict the targets of nodes or of graphs.
    #[serde(with = "auto_level")]
    #[schemars(with = "TaskChoice")]
    pub task: Option<Level>,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self { source: "clique".into(), format: None, task: None }
    }
}

/// A level, or `auto` for none.
pub(super) mod auto_level {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::graph::Level;

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    #[allow(clippy::ref_option, reason = "serde asks for it")]
    pub(crate) fn serialize<S: Serializer>(
        level: &Option<Level>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(level.map_or("auto", Level::as_str))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Level>, D::Error> {
        match String::deserialize(from)?.as_str() {
            "auto" => Ok(None),
            "node" => Ok(Some(Level::Node)),
            "graph" => Ok(Some(Level::Graph)),
            other => Err(D::Error::unknown_variant(other, &["auto", "node", "graph"])),
        }
    }
}

/// How a task is named in a configuration.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(dead_code, reason = "it describes a setting")]
enum TaskChoice {
    /// Whichever targets the data have; if both, those of graphs, unless the data come with a split of nodes.
    Auto,
    /// One prediction per node.
    Node,
    /// One prediction per graph.
    Graph,
}

/// The split into training, validation and test data.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SplitConfig {
    /// Where the split comes from.
    pub source: SplitSource,
    /// Fraction of the training split, if the split is drawn at random; the three sum to 1.
    #[schemars(range(min = 0, max = 1))]
    pub train: f64,
    /// Fraction of the validation split, which selects the epoch.
    #[schemars(range(min = 0, max = 1))]
    pub val: f64,
    /// Fraction of the test split, which is evaluated once, at the end.
    #[schemars(range(min = 0, max = 1))]
    pub test: f64,
    /// Seed of a random split.
    #[schemars(range(max = 9_223_372_036_854_775_807_i64))]
    pub seed: u64,
}

/// Where the split comes from.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SplitSource {
    /// The data, if they come with a split; otherwise it is drawn at random.
    #[default]
    Auto,
    /// The data.
    Data,
    /// Drawn at random, in the fractions below.
    Ratio,
    /// The argument `split` of `train` in Python: recorded with the run, but cannot be set.
    Given,
}

impl Default for SplitConfig {
    fn default() -> Self {
        let Ratio { train, val, test } = Ratio::default();
        Self { source: SplitSource::Auto, train, val, test, seed: 0 }
    }
}

impl RunConfig {
    /// The whole configuration as TOML, with a comment on every setting. What is read from it is
    /// the same configuration.
    ///
    /// ```
    /// use lpgnn::run::{RunConfig, settings_of_toml};
    ///
    /// let text = RunConfig::default().to_toml();
    /// let settings = settings_of_toml("the default file", &text)?;
    /// assert_eq!(RunConfig::default().with(&settings)?, RunConfig::default());
    /// # Ok::<(), lpgnn::Error>(())
    /// ```
    pub fn to_toml(&self) -> String {
        Schema::of_runs().to_toml(self)
    }

    /// The configuration that [`to_toml`](Self::to_toml) wrote.
    ///
    /// # Errors
    ///
    /// [`Error::Config`], naming the setting that cannot be used and its line and column; `name` is
    /// what the text is called.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, Error> {
        Self::default().with(&super::settings_of_toml(name, text)?)
    }

    /// The same with these settings, of which the last counts where there are several.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a setting that does not exist, with the nearest that does, or whose
    /// value is of another kind; it tells where the setting was made.
    pub fn with(&self, settings: &[Setting]) -> Result<Self, Error> {
        Schema::of_runs().apply(self, settings)
    }
}

/// A setting that has another value than before.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SettingChange {
    /// Which one, as in `training.solver.weights.lr`.
    pub path: String,
    /// Its value before; null for none, and for a setting that was not there.
    pub before: Value,
    /// Its value now.
    pub after: Value,
}

impl RunConfig {
    /// The settings that have another value in `after`.
    pub fn changes(&self, after: &Self) -> Vec<SettingChange> {
        // A configuration is always JSON.
        let [before, after] =
            [self, after].map(|config| serde_json::to_value(config).unwrap_or_default());
        SettingChange::between(&before, &after)
    }
}

impl SettingChange {
    /// The entries of `after` that have another value in `before`, in lists that are as long as before too.
    pub(crate) fn between(before: &Value, after: &Value) -> Vec<Self> {
        fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<SettingChange>) {
            let dot = if path.is_empty() { "" } else { "." };
            match (before, after) {
                (_, Value::Object(entries)) => {
                    for (key, after) in entries {
                        compare(&format!("{path}{dot}{key}"), &before[key], after, found);
                    }
                }
                (before, after) if before == after => {}
                (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
                    for (i, (before, after)) in before.iter().zip(after).enumerate() {
                        compare(&format!("{path}{dot}{i}"), before, after, found);
                    }
                }
                (before, after) => found.push(SettingChange {
                    path: path.to_owned(),
                    before: before.clone(),
                    after: after.clone(),
                }),
            }
        }
        let mut found = vec![];
        compare("", before, after, &mut found);
        found
    }
}

/// As in `training.solver.weights.lr was 0.005 and is 0.5`.
impl fmt::Display for SettingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Value| match value {
            Value::Null => "none".to_owned(),
            value => value.to_string(),
        };
        write!(f, "{} was {} and is {}", self.path, text(&self.before), text(&self.after))
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::constraint::ConstraintFunction;
    use crate::inference::{FixedPointOptions, Inference, RelaxOptions};
    use crate::registry::Options;
    use crate::run::{Choice, Kind, SettingInfo};
    use crate::saddle::{AugmentedLagrangian, Bdmm, DualRule, Implicit, Sse, Unrolled};
    use crate::train::{ModelDims, SolverConfig};

    fn configs() -> Vec<RunConfig> {
        let mut configs = vec![RunConfig::default()];
        let dual_rule = DualRule::NuPi { nu: 0.5, kappa: 2.0 };
        for solver in [
            SolverConfig::Bdmm(Bdmm {
                dual_rule,
                state_lr_half_life: Some(70.0),
                ..Bdmm::default()
            }),
            SolverConfig::Implicit(Implicit::default()),
            SolverConfig::Unrolled(Unrolled::default()),
            SolverConfig::Sse(Sse::default()),
            SolverConfig::AugmentedLagrangian(AugmentedLagrangian::default()),
        ] {
            let mut config = RunConfig::default();
            config.training.solver = solver;
            config.model.constraint = ConstraintFunction::AbsoluteInsensitive { epsilon: 1e-5 };
            config.training.inference = Inference::Relax(RelaxOptions::default());
            config.training.lipschitz = None;
            config.training.batch_size = Some(32);
            configs.push(config);
        }
        let mut config = RunConfig::default();
        config.training.inference = Inference::FixedPoint(FixedPointOptions {
            fall_back: None,
            ..FixedPointOptions::default()
        });
        config.data.source = "a \"strange\"\\name".into();
        config.data.task = Some(Level::Graph);
        config.model.transition = "my-own".into();
        config.model.transition_options = Options::default().with("gates", 2).with("name", "x y");
        config.model.readout_options = Options::default().with("k", vec![1, 2]);
        configs.push(config);
        configs
    }

    #[test]
    fn what_is_written_is_read_again() {
        for config in configs() {
            let text = config.to_toml();
            assert_eq!(RunConfig::from_toml("test", &text).unwrap(), config, "{text}");
        }
    }

    #[test]
    fn every_setting_says_what_it_is_in_one_line() {
        for info in Schema::of_runs().settings() {
            let meaning = &info.meaning;
            assert!(meaning.ends_with('.') && meaning.len() < 100, "{}: “{meaning}”", info.path);
            let says_none = meaning.contains("none: ");
            assert_eq!(says_none, info.optional, "{}: “{meaning}”", info.path);
            for choice in info.kind.choices() {
                assert!(!choice.meaning.is_empty(), "{}: {}", info.path, choice.name);
            }
        }
    }

    #[test]
    fn every_value_is_one_that_its_setting_takes() {
        fn walk(info: &SettingInfo, value: &Value) {
            match &info.kind {
                Kind::Section(settings) if value.is_object() => {
                    let keys = value.as_object().unwrap().keys();
                    for key in keys {
                        // Of a section with a tag, the settings of the choice that was made count.
                        let chosen = |of: &&Choice| {
                            value.as_object().unwrap().values().any(|v| *v == of.name)
                        };
                        let choices =
                            settings.iter().flat_map(|info| info.kind.choices()).filter(chosen);
                        let all = settings.iter().chain(choices.flat_map(|of| &of.settings));
                        let mut known = all.filter(|info| info.key() == key).peekable();
                        assert!(known.peek().is_some(), "{}.{key} is not described", info.path);
                        known.for_each(|info| walk(info, &value[key]));
                    }
                }
                kind => {
                    let none = info.optional && value.is_null();
                    let taken = none || kind.admits(value) || value.is_object();
                    assert!(taken, "{} is {value}, {kind}", info.path);
                }
            }
        }
        for config in configs() {
            let value = serde_json::to_value(&config).unwrap();
            for section in Schema::of_runs().sections() {
                walk(section, &value[section.key()]);
            }
        }
    }

    /// What a field refuses when it is checked, its schema refuses before.
    #[test]
    fn bounds_are_those_that_are_checked() {
        let beyond = |kind: &Kind| match kind {
            Kind::Integer { min, max } => [min.map(|x| x - 1), max.map(|x| x.saturating_add(1))]
                .into_iter()
                .flatten()
                .filter(|x| (0..i64::MAX).contains(x))
                .map(Value::from)
                .collect(),
            Kind::Number(interval) => {
                let at = |bound: Option<(f64, bool)>, sign: f64| {
                    bound.map(|(at, open)| if open { at } else { at + sign * 0.01 })
                };
                let ends = [at(interval.low, -1.0), at(interval.high, 1.0)];
                ends.into_iter().flatten().map(Value::from).collect()
            }
            _ => vec![],
        };
        let dims = ModelDims { features: 1, edge_features: 0, outputs: 2, level: Level::Node };
        let mut checked = 0;
        for config in configs().into_iter().filter(|config| config.model.transition != "my-own") {
            let base = serde_json::to_value(&config).unwrap();
            for info in Schema::of_runs().settings() {
                let pointer = format!("/{}", info.path.replace('.', "/"));
                for value in beyond(&info.kind) {
                    let mut values = base.clone();
                    let Some(place) = values.pointer_mut(&pointer) else { continue };
                    *place = value.clone();
                    let RunConfig { features, model, training, split, .. } =
                        serde_json::from_value(values).unwrap();
                    let ratio = Ratio { train: split.train, val: split.val, test: split.test };
                    let refused = training.check().is_err()
                        || model.build::<f32>(dims).is_err()
                        || features.structure.check().is_err()
                        || ratio.check().is_err();
                    assert!(refused, "{} = {value} passes all checks", info.path);
                    checked += 1;
                }
            }
        }
        assert!(checked > 50, "{checked}");
    }
}
