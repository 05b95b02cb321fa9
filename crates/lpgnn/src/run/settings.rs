use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Error;
use crate::error::Origin;
use crate::input::toml_problem;

/// A value for one setting, and where it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    origin: Origin,
    path: String,
    value: Value,
}

impl Setting {
    /// `path`, as in `training.solver.weights.lr`, is to have this value.
    pub fn new(origin: impl Into<Origin>, path: &str, value: impl Into<Value>) -> Self {
        Self { origin: origin.into(), path: path.to_owned(), value: value.into() }
    }

    /// From `section.key=value`, where the value is TOML; a word needs no quotes.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when there is no `=`.
    pub fn parse(origin: impl Into<Origin>, text: &str) -> Result<Self, Error> {
        let origin = origin.into();
        let Some((path, value)) = text.split_once('=') else {
            let problem = format!("“{text}” is not of the form section.key=value");
            return Err(Error::Config { origin, problem });
        };
        Ok(Self::of_text(origin, path.trim(), value.trim()))
    }

    /// The value is TOML, or a word without quotes.
    pub(super) fn of_text(origin: Origin, path: &str, text: &str) -> Self {
        let value = match DeValue::parse(text) {
            Ok(value) => to_json(value.get_ref()),
            Err(_) => Value::String(text.trim_matches('"').to_owned()),
        };
        Self::new(origin, path, value)
    }

    /// Where it was given.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Which setting it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its value.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

/// All settings of a TOML file, each with its line and column; `name` is what the file is called.
///
/// # Errors
///
/// [`Error::Config`] when it is not TOML.
pub fn settings_of_toml(name: &str, text: &str) -> Result<Vec<Setting>, Error> {
    let table = DeTable::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let problem = toml_problem(&error);
        Error::Config { origin: place(name, text, start), problem }
    })?;
    let mut found = vec![];
    flatten_table("", table.get_ref(), &mut found);
    // In the order of the file.
    found.sort_by_key(|(_, value)| value.span().start);
    let setting = |(path, value): (String, &Spanned<DeValue<'_>>)| {
        Setting::new(place(name, text, value.span().start), &path, to_json(value.get_ref()))
    };
    Ok(found.into_iter().map(setting).collect())
}

/// The line and column of a byte, both from 1.
fn place(name: &str, text: &str, byte: usize) -> Origin {
    let before = text.get(..byte).unwrap_or(text);
    let line = 1 + before.matches('\n').count();
    let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
    Origin::at(name, line, column)
}

fn flatten_table<'a, 'i>(
    path: &str,
    table: &'a DeTable<'i>,
    found: &mut Vec<(String, &'a Spanned<DeValue<'i>>)>,
) {
    for (key, value) in table {
        let path = join(path, key.get_ref());
        match value.get_ref() {
            DeValue::Table(table) => flatten_table(&path, table, found),
            _ => found.push((path, value)),
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// All settings of nested tables, whose keys may be paths too; null is `none`.
///
/// # Errors
///
/// [`Error::Config`] when it is not a table.
pub fn settings_of_json(origin: impl Into<Origin>, value: Value) -> Result<Vec<Setting>, Error> {
    let origin = origin.into();
    if !value.is_object() {
        let problem = format!("{value} is not a table of settings");
        return Err(Error::Config { origin, problem });
    }
    let mut settings = vec![];
    flatten(&origin, "", value, &mut settings);
    Ok(settings)
}

fn flatten(origin: &Origin, path: &str, value: Value, settings: &mut Vec<Setting>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                flatten(origin, &join(path, &key), value, settings);
            }
        }
        value => settings.push(Setting::new(origin.clone(), path, value)),
    }
}

/// Numbers that JSON cannot hold become words, which are refused by name.
fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::String(number.to_string()), Into::into),
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(float) if float.is_finite() => float.into(),
            _ => Value::String(number.as_str().to_owned()),
        },
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(values) => values.iter().map(|value| to_json(value.get_ref())).collect(),
        DeValue::Table(table) => {
            let entry = |(key, value): (&Spanned<_>, &Spanned<_>)| -> (String, Value) {
                let key: &std::borrow::Cow<'_, str> = key.get_ref();
                (key.clone().into_owned(), to_json(value.get_ref()))
            };
            Value::Object(table.iter().map(entry).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::ConstraintFunction;
    use crate::inference::Inference;
    use crate::run::RunConfig;
    use crate::saddle::DualRule;
    use crate::train::SolverConfig;

    fn set(texts: &[&str]) -> Result<RunConfig, String> {
        let settings: Vec<Setting> =
            texts.iter().map(|text| Setting::parse("--set", text).unwrap()).collect();
        RunConfig::default().with(&settings).map_err(|error| error.to_string())
    }

    fn read(text: &str) -> Result<RunConfig, String> {
        RunConfig::from_toml("run.toml", text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_unknown_setting_suggests_the_nearest() {
        let said = |text| set(&[text]).unwrap_err();
        assert_eq!(
            said("training.epoch=3"),
            "--set: training.epoch is not a setting; did you mean training.epochs?"
        );
        assert_eq!(
            said("epochs=3"),
            "--set: epochs is not a setting; did you mean training.epochs?"
        );
        assert_eq!(
            said("training.lr=3"),
            "--set: training.lr is not a setting; did you mean training.solver.weights.lr?"
        );
        assert_eq!(said("zzz=3"), "--set: zzz is not a setting; `lpgnn config` shows all");
        assert_eq!(said("model=3"), "--set: model is a section, not a setting");
        assert_eq!(
            said("training.epochs.x=3"),
            "--set: training.epochs.x is not a setting; did you mean training.epochs?"
        );
    }

    #[test]
    fn a_value_of_another_kind_names_its_setting() {
        let said = |text| set(&[text]).unwrap_err();
        let expected = "but a positive integer is expected";
        assert_eq!(
            said("training.epochs=many"),
            format!("--set: training.epochs is \"many\", {expected}")
        );
        assert_eq!(said("training.epochs=-3"), format!("--set: training.epochs is -3, {expected}"));
        assert_eq!(
            said("training.lipschitz=high"),
            "--set: training.lipschitz is \"high\", but a positive number or none is expected"
        );
        assert_eq!(
            said("training.solver.kind=magic"),
            "--set: training.solver.kind is \"magic\", but one of bdmm, one-shot, implicit, \
             unrolled, sse, augmented-lagrangian is expected"
        );
        assert_eq!(
            said("model.hidden-dims=20"),
            "--set: model.hidden-dims is 20, but a list of integers from 1 to 65536 is expected"
        );
        assert!(set(&["training.epochs=none"]).is_err());
        assert!(set(&["training.weighing.loss-weight=inf"]).is_err());
    }

    #[test]
    fn another_solver_brings_its_own_settings() {
        let config = set(&["training.solver.state-lr=0.5", "training.solver.kind=bdmm"]).unwrap();
        let SolverConfig::Bdmm(bdmm) = config.training.solver else { panic!("it was asked for") };
        assert!((bdmm.state_lr - 0.5).abs() < 1e-12);
        assert_eq!(
            set(&["training.solver.state-lr=0.5"]).unwrap_err(),
            "--set: training.solver.state-lr is a setting only if training.solver.kind is bdmm \
             or augmented-lagrangian, but it is one-shot"
        );
        // The same solver again leaves its settings what they are.
        let again = config.with(&[Setting::new("--solver", "training.solver.kind", "bdmm")]);
        assert_eq!(again.unwrap(), config);
    }

    #[test]
    fn none_switches_off_and_a_tube_gets_a_width() {
        let config = set(&["training.lipschitz=none", "model.constraint.g=abs-eps"]).unwrap();
        assert_eq!(config.training.lipschitz, None);
        assert_eq!(
            config.model.constraint,
            ConstraintFunction::AbsoluteInsensitive { epsilon: 0.01 }
        );
        let fall_back = |config: RunConfig| {
            let Inference::FixedPoint(converge) = config.training.inference else {
                panic!("the default")
            };
            converge.fall_back
        };
        let config = set(&["training.inference.fall-back=none"]).unwrap();
        assert_eq!(fall_back(config.clone()), None);
        let max_iter = Setting::new("test", "training.inference.fall-back.max-iter", 7);
        assert_eq!(fall_back(config.with(&[max_iter]).unwrap()).map(|it| it.max_iter), Some(7));
    }

    #[test]
    fn a_choice_with_settings_of_its_own_is_a_table() {
        let bdmm = "training.solver.kind=bdmm";
        let rule = |text: &str| {
            let config = set(&[bdmm, text])?;
            let SolverConfig::Bdmm(bdmm) = config.training.solver else { panic!("asked for") };
            Ok::<DualRule, String>(bdmm.dual_rule)
        };
        let nu_pi = rule("training.solver.dual-rule={ nu-pi = { nu = 0.5, kappa = 2 } }").unwrap();
        assert_eq!(nu_pi, DualRule::NuPi { nu: 0.5, kappa: 2.0 });
        assert_eq!(
            rule("training.solver.dual-rule={ nu-pi = { nu = 0.5 } }").unwrap_err(),
            "--set: training.solver.dual-rule.nu-pi.kappa is missing: a non-negative number is \
             expected"
        );
        assert_eq!(
            rule("training.solver.dual-rule=nu-pi").unwrap_err(),
            "--set: training.solver.dual-rule is \"nu-pi\", but one of adam, sgd, { nu-pi = { \
             nu, kappa } } is expected"
        );
    }

    #[test]
    fn a_file_is_named_with_line_and_column() {
        assert_eq!(
            read("[training]\nseed = 1\nepochs = \"many\"\n").unwrap_err(),
            "run.toml, line 3, column 10: training.epochs is \"many\", but a positive integer is \
             expected"
        );
        assert_eq!(
            read("# ä\nmodel = { state-dims = 3 }").unwrap_err(),
            "run.toml, line 2, column 24: model.state-dims is not a setting; did you mean \
             model.state-dim?"
        );
        let said = read("[model]\nstate-dim = \n").unwrap_err();
        assert!(said.starts_with("run.toml, line 2, column 13: "), "{said}");
    }

    #[test]
    fn the_first_of_several_problems_is_told() {
        let said = read("[training]\nsed = 1\n[model]\nstate-dim = 0\n").unwrap_err();
        assert!(said.starts_with("run.toml, line 2, column 7: "), "{said}");
    }

    #[test]
    fn json_has_null_for_none_and_paths_for_keys() {
        let value = serde_json::json!({
            "training": { "lipschitz": null, "solver.weights.lr": 0.5 },
            "model.hidden-dims": [3],
        });
        let settings = settings_of_json("settings", value).unwrap();
        let config = RunConfig::default().with(&settings).unwrap();
        assert_eq!((config.training.lipschitz, config.model.hidden_dims), (None, vec![3]));
        let said = settings_of_json("settings", 3.into()).unwrap_err().to_string();
        assert_eq!(said, "settings: 3 is not a table of settings");
    }
}
