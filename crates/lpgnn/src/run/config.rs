use std::fmt::Write;

use serde_json::Value;

use crate::Error;
use crate::data::{FeatureOptions, Format, Ratio};
use crate::train::{ModelConfig, TrainingConfig};

/// All settings of a run, as `config.toml` has them.
#[derive(
    Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunConfig {
    /// The data set.
    pub data: DataConfig,
    /// How columns of the data become input features.
    pub features: FeatureOptions,
    /// The split into training, validation and test data.
    pub split: SplitConfig,
    /// The functions f_a, f_r and G.
    pub model: ModelConfig,
    /// The training.
    pub training: TrainingConfig,
}

/// The data set.
#[derive(
    Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DataConfig {
    /// File, folder or name of a data set: `lpgnn data list` lists the names.
    pub source: String,
    /// File format; none: recognised by content.
    #[schemars(extend("x-flag" = "format"))]
    pub format: Option<Format>,
    /// Whether to predict the targets of nodes or of graphs.
    pub task: TaskChoice,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self { source: "clique".into(), format: None, task: TaskChoice::Auto }
    }
}

/// Whether the targets of nodes or those of graphs are predicted.
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
pub enum TaskChoice {
    /// Whichever the data have; if both, those of graphs, unless the data come with a split of nodes.
    #[default]
    Auto,
    /// One prediction per node.
    Nodes,
    /// One prediction per graph.
    Graphs,
}

/// The split into training, validation and test data.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SplitConfig {
    /// Where the split comes from.
    pub source: SplitSource,
    /// Fraction of the training split, if it is drawn at random; the three sum to 1.
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
    /// The data, if they come with one; otherwise it is drawn at random.
    #[default]
    Auto,
    /// The data.
    Data,
    /// Drawn at random, in the fractions below.
    Ratio,
    /// An argument of `train` in Python; recorded, but it cannot be asked for.
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
        let mut text = String::new();
        write_table(&mut text, "", &self.to_value());
        text
    }

    /// The configuration that [`to_toml`](Self::to_toml) wrote.
    ///
    /// # Errors
    ///
    /// [`Error::Config`], naming the setting that cannot be used; `origin` is how the text is
    /// called.
    pub fn from_toml(origin: &str, text: &str) -> Result<Self, Error> {
        Self::default().with(&super::settings_of_toml(origin, text)?)
    }

    /// As JSON, in which a setting that has no value is there as null.
    pub(super) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// What every setting is, in the order of the file. A path stands for a table when it ends in a dot.
const NOTES: &[(&str, &str)] = &[
    ("data.", "What is learnt from."),
    ("data.source", "a file, a folder, or a name: see `lpgnn data list`"),
    ("data.format", "tu, gin, matlab, citation, tables; none: recognised by content"),
    ("data.task", "auto, nodes or graphs: whose targets are predicted"),
    ("features.", "How features become features."),
    ("features.source", "auto, categories, values, all, degree, constant"),
    ("features.largest-degree", "larger degrees count as this one"),
    ("features.standardize", "real values to mean 0 and std 1"),
    ("features.row-normalize", "every row of sparse values divided by its sum"),
    ("features.edges", "whether features of edges become features"),
    ("split.", "What is trained, validated and tested on."),
    ("split.source", "auto: the data's own, else drawn; data; ratio"),
    ("split.train", "shares, if it is drawn; they sum to 1"),
    ("split.val", "chooses the epoch"),
    ("split.test", "is looked at at the end"),
    ("split.seed", ""),
    ("model.", "The functions f_a, f_r and G."),
    ("model.transition", "gnn-sum, gnn-mean, gnn-normalized, gin, gcn-mean, gcn, sage-max"),
    ("model.layers", "K: states per node, each reading the one below"),
    ("model.state-dim", "components of a state"),
    ("model.hidden-dims", "units of the hidden layers of h, in f_a"),
    ("model.activation", "tanh, relu, leaky-relu, identity: of hidden units"),
    ("model.output-activation", "the same, of the output of h"),
    (
        "model.state-weights",
        "random, identity, frozen: the weights of states at first, and for good",
    ),
    ("model.readout-hidden-dims", "units of the hidden layers of f_r"),
    ("model.readout-activation", "the activation of those"),
    ("model.pool", "sum or mean over the nodes of a graph"),
    ("model.dropout", "share of hidden units of f_r left out in training"),
    ("model.multipliers", "per-component or per-node; G = lin needs per-component"),
    ("model.inputs.", "The arguments of h, for gnn and sage."),
    ("model.inputs.neighbour-state", "x_u"),
    ("model.inputs.neighbour-features", "l_u"),
    ("model.inputs.edge-features", "l_(v,u) and l_(u,v)"),
    ("model.inputs.own-state", "x_v"),
    ("model.inputs.own-features", "l_v"),
    ("model.reads.", "What f_r reads."),
    ("model.reads.from", "state: x; transition: f_a(x)"),
    ("model.reads.layers", "last or all"),
    ("model.constraint.", "G, the constraint function."),
    ("model.constraint.g", "lin, lin-eps, abs, abs-eps, squared; lin unless solver is bdmm"),
    ("model.constraint.epsilon", "half-width of the tube in which it holds"),
    ("training.", "How they are trained."),
    ("training.epochs", "passes over the training data"),
    ("training.seed", "same seed, same bits"),
    ("training.batch-size", "graphs per update; none: all of them"),
    ("training.lipschitz", "bound on the Lipschitz constant of f_a, or none"),
    ("training.standardize", "whether f_r descends as if what it reads were standardised"),
    ("training.l2", "what half the sum of squared weights is multiplied with"),
    ("training.feature-dropout", "share of the entries of node features left out in an update"),
    ("training.class-weights", "equal; balanced: rare classes count more"),
    ("training.eval-every", "epochs between evaluation on converged states"),
    ("training.patience", "evaluation without a better one before it ends; none: never"),
    ("training.weighing.", "The terms of the Lagrangian."),
    ("training.weighing.loss-weight", "what the loss is multiplied with"),
    ("training.weighing.loss", "sum or mean over what is supervised"),
    ("training.weighing.constraint", "sum or mean over nodes and components"),
    ("training.weighing.penalty", "rho, of the quadratic term"),
    ("training.solver.", "The solver of the saddle point."),
    ("training.solver.kind", "one-shot, bdmm, implicit, unrolled"),
    ("training.solver.beta", "step of the fixed-point iteration, in (0, 1]"),
    ("training.solver.inner-steps", "steps of states and multipliers per step of the weights"),
    ("training.solver.tol", "change at which the iteration has converged"),
    ("training.solver.max-iter", "iterations at most"),
    ("training.solver.state-rule", "adam or sgd"),
    ("training.solver.state-lr", "learning rate of the states"),
    ("training.solver.state-lr-half-life", "updates after which that rate is half; none keeps it"),
    ("training.solver.dual-rule", "adam, plain, or { nu-pi = { nu = 0.0, kappa = 1.0 } }"),
    ("training.solver.multiplier-lr", "learning rate of the multipliers"),
    ("training.solver.order", "simultaneous; alternating: multipliers first"),
    ("training.solver.weights.", "How the weights descend."),
    ("training.solver.weights.rule", "adam or sgd"),
    ("training.solver.weights.lr", "learning rate of the weights"),
    ("training.solver.weights.lr-half-life", "updates after which it is half; none keeps it"),
    ("training.solver.weights.weight-decay", "weight decay, relative to the rate"),
    ("training.inference.", "States of graphs that are not trained on."),
    ("training.inference.method", "converge: iterate f_a; relax: optimise the constraint"),
    ("training.inference.tol", "largest |x - f_a| of a graph that has converged"),
    ("training.inference.max-iter", "applications of f_a at most, per layer"),
    ("training.inference.beta", "step, in (0, 1]"),
    ("training.inference.window", "iterates that Anderson acceleration combines; 0: none"),
    ("training.inference.max-iter", "updates at most"),
    ("training.inference.state-lr", "learning rate of the states"),
    ("training.inference.multiplier-lr", "learning rate of the multipliers"),
    ("training.inference.penalty", "rho"),
    ("training.inference.fall-back", "what graphs that do not converge get; none: nothing"),
    ("training.inference.fall-back.", "A second chance for graphs that do not converge; or none."),
    ("training.inference.fall-back.tol", "largest |x - f_a| of a graph that has converged"),
    ("training.inference.fall-back.max-iter", "updates at most"),
    ("training.inference.fall-back.state-lr", "learning rate of the states"),
    ("training.inference.fall-back.multiplier-lr", "learning rate of the multipliers"),
    ("training.inference.fall-back.penalty", "rho"),
];

fn note(path: &str) -> Option<(usize, &'static str)> {
    NOTES.iter().enumerate().find(|(_, (of, _))| *of == path).map(|(i, (_, note))| (i, *note))
}

/// Tables that are written as one value.
fn is_inline(path: &str) -> bool {
    path.ends_with(".dual-rule")
}

fn write_table(text: &mut String, path: &str, table: &Value) {
    let Value::Object(entries) = table else { return };
    let mut entries: Vec<(String, &Value)> = entries
        .iter()
        .map(|(key, value)| {
            (if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, value)
        })
        .collect();
    let is_table = |path: &str, value: &Value| value.is_object() && !is_inline(path);
    entries.sort_by_key(|(path, value)| {
        let table = is_table(path, value);
        let path = if table { format!("{path}.") } else { path.clone() };
        (table, note(&path).map_or(usize::MAX, |(place, _)| place))
    });
    for (path, value) in &entries {
        // Writing to a string cannot fail.
        let _ = if is_table(path, value) {
            let about = note(&format!("{path}.")).map_or("", |(_, note)| note);
            let space = if text.is_empty() { "" } else { "\n" };
            let written = writeln!(text, "{space}# {about}\n[{path}]");
            write_table(text, path, value);
            written
        } else {
            let key = path.rsplit('.').next().unwrap_or(path);
            let line = format!("{key} = {}", toml_value(value));
            match note(path).map_or("", |(_, note)| note) {
                "" => writeln!(text, "{line}"),
                about => writeln!(text, "{line:<29} # {about}"),
            }
        };
    }
}

fn toml_value(value: &Value) -> String {
    match value {
        Value::Null => "\"none\"".into(),
        Value::String(text) => toml::Value::String(text.clone()).to_string(),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(toml_value).collect::<Vec<_>>().join(", "))
        }
        Value::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{key} = {}", toml_value(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::ConstraintFunction;
    use crate::inference::{FixedPointOptions, Inference, RelaxOptions};
    use crate::saddle::{Bdmm, DualRule, Implicit, Unrolled};
    use crate::train::SolverConfig;

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
    fn every_setting_has_a_note_and_every_note_a_setting() {
        fn paths(path: &str, value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(entries) if !is_inline(path) => {
                    if !path.is_empty() {
                        found.push(format!("{path}."));
                    }
                    for (key, value) in entries {
                        let dot = if path.is_empty() { "" } else { "." };
                        paths(&format!("{path}{dot}{key}"), value, found);
                    }
                }
                _ => found.push(path.to_owned()),
            }
        }
        let mut found = vec![];
        for config in configs() {
            paths("", &config.to_value(), &mut found);
        }
        for path in &found {
            assert!(note(path).is_some(), "{path} has no note");
        }
        for (path, _) in NOTES {
            assert!(found.iter().any(|found| found == path), "{path} is no setting");
        }
    }
}
