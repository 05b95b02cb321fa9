//! Functions by name, so that a configuration or a model file can ask for one that is not part of
//! this crate.
//!
//! A [`Registry`](crate::registry::Registry) is a value that is passed along, not a global: it starts
//! with everything built in; custom functions are added to it.
//!
//! ```
//! use lpgnn::graph::Level;
//! use lpgnn::network::Network;
//! use lpgnn::readout::{PooledReadout, Pooling};
//! use lpgnn::registry::{Options, Registry};
//! use lpgnn::train::{ModelConfig, ModelDims};
//!
//! // A linear read-out of the largest states: `width` of them are classes, as an option tells.
//! let registry = Registry::<f32>::default().with_readout("linear-max", |spec| {
//!     let network = Network { hidden_dims: vec![], ..Network::one_hidden(0) };
//!     let dropout = spec.model.readout_options.get("dropout")?.unwrap_or(0.0);
//!     Ok(Box::new(PooledReadout::new(Pooling::Max, spec.inputs, spec.outputs, network, dropout)))
//! });
//! let config = ModelConfig {
//!     readout: "linear-max".into(),
//!     readout_options: Options::default().with("dropout", 0.1),
//!     ..ModelConfig::default()
//! };
//! let dims = ModelDims { features: 3, edge_features: 0, outputs: 2, level: Level::Graph };
//! let model = config.build_with(&registry, dims)?;
//! assert_eq!(model.parameters().iter().last().unwrap().0.name(), "readout.0.bias");
//!
//! let error = config.build::<f32>(dims).unwrap_err().to_string(); // by what is built in alone
//! assert!(error.starts_with("readout is linear-max, but one of auto, node, sum"), "{error}");
//! # Ok::<(), lpgnn::Error>(())
//! ```

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::graph::Level;
use crate::network::Network;
use crate::readout::{NodeReadout, PooledReadout, Pooling, Readout};
use crate::saddle::SaddleSolver;
use crate::train::{ModelConfig, SolverConfig};
use crate::transition::{
    Aggregation, EdgeInputs, EdgeNetwork, NeighbourSum, NodeNetwork, Transition,
};
use crate::{Error, Scalar};

/// What a transition is made for.
#[derive(Clone, Copy, Debug)]
pub struct TransitionSpec<'a> {
    /// The layer, from 0.
    pub layer: usize,
    /// Components of what it reads as features: those of nodes, or the states of the layer below.
    pub features: usize,
    /// Components of the features of edges.
    pub edge_features: usize,
    /// The functions as configured, with the components of a state among them.
    pub model: &'a ModelConfig,
}

/// What a read-out is made for.
#[derive(Clone, Copy, Debug)]
pub struct ReadoutSpec<'a> {
    /// Whether nodes or graphs are predicted.
    pub level: Level,
    /// Components it reads of the states of every node.
    pub inputs: usize,
    /// Components of the features of a node that it is to read too; 0 if it is not.
    pub features: usize,
    /// Components of the features of an edge, which it finds in the graphs if it reads them.
    pub edge_features: usize,
    /// Classes or values to predict.
    pub outputs: usize,
    /// The functions as configured.
    pub model: &'a ModelConfig,
}

/// Options of a function that this crate knows nothing about: a table in the configuration.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Options(Map<String, Value>);

/// Any table.
impl schemars::JsonSchema for Options {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Options".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "Options." })
    }
}

impl Options {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same with one more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// The value of an option, if it is there.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it is of another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        serde_json::from_value(value.clone())
            .map(Some)
            .map_err(|error| Error::Mismatch(format!("the option {name} is {value}: {error}")))
    }

    /// An integer in `range`; `default` if it is not there.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it is of another type, [`Error::Option`] when it is out of range.
    pub fn count(
        &self,
        name: &'static str,
        range: RangeInclusive<usize>,
        default: usize,
    ) -> Result<usize, Error> {
        let count = self.get(name)?.unwrap_or(default);
        if range.contains(&count) {
            return Ok(count);
        }
        let expected = format!("an integer from {} to {} is expected", range.start(), range.end());
        Err(Error::Option { option: name, value: count.to_string(), expected })
    }

    /// # Errors
    ///
    /// [`Error::Mismatch`] when there is an option that is none of these.
    pub fn check(&self, known: &[&str]) -> Result<(), Error> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) if known.is_empty() => Err(Error::Mismatch(format!(
                "there is an option {name}, but the function takes none"
            ))),
            Some(name) => Err(Error::Mismatch(format!(
                "there is an option {name}, but the function takes {}",
                known.join(", ")
            ))),
        }
    }
}

type MakeTransition<S> =
    dyn Fn(&TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error> + Send + Sync;
type MakeReadout<S> = dyn Fn(&ReadoutSpec<'_>) -> Result<Box<dyn Readout<S>>, Error> + Send + Sync;
type MakeSolver<S> = dyn Fn(&Options) -> Result<Box<dyn SaddleSolver<S>>, Error> + Send + Sync;

/// Transitions, read-outs and solvers by name.
pub struct Registry<S: Scalar = f32> {
    transitions: Named<MakeTransition<S>>,
    readouts: Named<MakeReadout<S>>,
    solvers: Named<MakeSolver<S>>,
}

impl<S: Scalar> Registry<S> {
    /// The same with one more transition; one of the same name is replaced.
    #[must_use]
    pub fn with_transition(
        mut self,
        name: &str,
        make: impl Fn(&TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.transitions.insert(name, Arc::new(make));
        self
    }

    /// The same with one more read-out; one of the same name is replaced.
    #[must_use]
    pub fn with_readout(
        mut self,
        name: &str,
        make: impl Fn(&ReadoutSpec<'_>) -> Result<Box<dyn Readout<S>>, Error> + Send + Sync + 'static,
    ) -> Self {
        self.readouts.insert(name, Arc::new(make));
        self
    }

    /// The same with one more solver; one of the same name is replaced.
    #[must_use]
    pub fn with_solver(
        mut self,
        name: &str,
        make: impl Fn(&Options) -> Result<Box<dyn SaddleSolver<S>>, Error> + Send + Sync + 'static,
    ) -> Self {
        self.solvers.insert(name, Arc::new(make));
        self
    }

    /// The transition that `spec.model` names.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] when there is none of this name, with those that there are and the nearest;
    /// what its constructor says.
    pub fn transition(&self, spec: &TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error> {
        self.transitions.find("transition", &spec.model.transition)?(spec)
    }

    /// The read-out that `spec.model` names; `auto` is `node` for nodes and `sum` for graphs.
    ///
    /// # Errors
    ///
    /// Those of [`transition`](Self::transition); [`Error::Option`] when it does not predict what
    /// `spec` asks for.
    pub fn readout(&self, spec: &ReadoutSpec<'_>) -> Result<Box<dyn Readout<S>>, Error> {
        let name = spec.model.readout.as_str();
        let readout = self.readouts.find("readout", name)?(spec)?;
        let (level, outputs) = (readout.level(), readout.outputs());
        if (level, outputs) == (spec.level, spec.outputs) {
            return Ok(readout);
        }
        Err(Error::Option {
            option: "readout",
            value: name.to_owned(),
            expected: format!(
                "one is expected that predicts {} components per {}: this one predicts {outputs} per {}",
                spec.outputs,
                spec.level.as_str(),
                level.as_str()
            ),
        })
    }

    /// A solver by its name, with its options.
    ///
    /// # Errors
    ///
    /// Those of [`transition`](Self::transition).
    pub fn solver(&self, name: &str, options: &Options) -> Result<Box<dyn SaddleSolver<S>>, Error> {
        self.solvers.find("solver", name)?(options)
    }

    /// The names of all transitions.
    pub fn transitions(&self) -> impl Iterator<Item = &str> {
        self.transitions.names()
    }

    /// The names of all read-outs.
    pub fn readouts(&self) -> impl Iterator<Item = &str> {
        self.readouts.names()
    }

    /// The names of all solvers.
    pub fn solvers(&self) -> impl Iterator<Item = &str> {
        self.solvers.names()
    }
}

/// Everything that is built in.
impl<S: Scalar> Default for Registry<S> {
    fn default() -> Self {
        let mut registry = Self {
            transitions: Named::default(),
            readouts: Named::default(),
            solvers: Named::default(),
        };
        for (name, aggregation) in [
            ("gnn-sum", Aggregation::Sum),
            ("gnn-mean", Aggregation::Mean),
            ("gnn-normalized", Aggregation::NormalizedSum),
        ] {
            registry = registry
                .with_transition(name, move |spec| edge(spec, spec.model.inputs, aggregation));
        }
        for (name, sum) in [
            ("gin", NeighbourSum::Plain),
            ("gcn-mean", NeighbourSum::Mean),
            ("gcn", NeighbourSum::Normalized),
        ] {
            registry = registry.with_transition(name, move |spec| node(spec, sum));
        }
        // max_u h(x_u), with features so that they reach h at all
        registry = registry.with_transition("sage-max", |spec| {
            edge(spec, EdgeInputs { own_state: false, ..spec.model.inputs }, Aggregation::Max)
        });
        registry = registry.with_readout("auto", |spec| match spec.level {
            Level::Node => node_readout(spec),
            Level::Graph => pooled(spec, Pooling::Sum),
        });
        registry = registry.with_readout("node", node_readout);
        for (name, pooling) in
            [("sum", Pooling::Sum), ("mean", Pooling::Mean), ("max", Pooling::Max)]
        {
            registry = registry.with_readout(name, move |spec| pooled(spec, pooling));
        }
        for name in ["bdmm", "one-shot", "implicit", "unrolled"] {
            registry = registry.with_solver(name, move |options| {
                let mut table = options.0.clone();
                table.insert("kind".into(), json!(name));
                serde_json::from_value::<SolverConfig>(Value::Object(table))
                    .map(|config| config.build())
                    .map_err(|error| Error::Mismatch(format!("the solver {name}: {error}")))
            });
        }
        registry
    }
}

/// A network `h` on every pair of neighbours.
fn edge<S: Scalar>(
    spec: &TransitionSpec<'_>,
    inputs: EdgeInputs,
    aggregation: Aggregation,
) -> Result<Box<dyn Transition<S>>, Error> {
    let model = spec.model;
    model.transition_options.check(&[])?;
    let (features, edge_features) = (spec.features, spec.edge_features);
    let h = h(model);
    let network =
        EdgeNetwork::new(model.state_dim, features, edge_features, inputs, &h, aggregation);
    Ok(Box::new(network.with_state_weights(model.state_weights).with_isolated(model.isolated)))
}

/// A network `h` on every node.
fn node<S: Scalar>(
    spec: &TransitionSpec<'_>,
    sum: NeighbourSum,
) -> Result<Box<dyn Transition<S>>, Error> {
    let model = spec.model;
    model.transition_options.check(&[])?;
    let network = NodeNetwork::new(model.state_dim, spec.features, &h(model), sum);
    Ok(Box::new(network.with_state_weights(model.state_weights)))
}

fn h(model: &ModelConfig) -> Network {
    Network {
        hidden_dims: model.hidden_dims.clone(),
        activation: model.activation,
        output_activation: model.output_activation,
    }
}

fn node_readout<S: Scalar>(spec: &ReadoutSpec<'_>) -> Result<Box<dyn Readout<S>>, Error> {
    spec.model.readout_options.check(&[])?;
    let network = spec.model.readout_network();
    let readout = NodeReadout::new(spec.inputs, spec.outputs, network, spec.model.dropout);
    Ok(Box::new(readout.reading_features(spec.features)))
}

fn pooled<S: Scalar>(
    spec: &ReadoutSpec<'_>,
    pooling: Pooling,
) -> Result<Box<dyn Readout<S>>, Error> {
    spec.model.readout_options.check(&[])?;
    let (network, dropout) = (spec.model.readout_network(), spec.model.dropout);
    let readout = PooledReadout::new(pooling, spec.inputs, spec.outputs, network, dropout);
    Ok(Box::new(readout.reading_features(spec.features)))
}

/// Constructors by name, in the order in which they came.
struct Named<F: ?Sized>(Vec<(String, Arc<F>)>);

impl<F: ?Sized> Named<F> {
    fn insert(&mut self, name: &str, make: Arc<F>) {
        self.0.retain(|(other, _)| other != name);
        self.0.push((name.to_owned(), make));
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    fn find(&self, what: &'static str, name: &str) -> Result<&F, Error> {
        if let Some((_, make)) = self.0.iter().find(|(other, _)| other == name) {
            return Ok(make);
        }
        let near = |other: &&str| strsim::normalized_damerau_levenshtein(name, other);
        let nearest = self.names().max_by(|a, b| near(a).total_cmp(&near(b)));
        let hint = nearest.filter(|other| near(other) > 0.5);
        let hint = hint.map_or(String::new(), |other| format!("; did you mean {other}?"));
        let choices = self.names().collect::<Vec<_>>().join(", ");
        let expected = format!("one of {choices} is expected{hint}");
        Err(Error::Option { option: what, value: name.to_owned(), expected })
    }
}

impl<F: ?Sized> Default for Named<F> {
    fn default() -> Self {
        Self(vec![])
    }
}

impl<F: ?Sized> Clone for Named<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Scalar> Clone for Registry<S> {
    fn clone(&self) -> Self {
        let Self { transitions, readouts, solvers } = self;
        Self {
            transitions: transitions.clone(),
            readouts: readouts.clone(),
            solvers: solvers.clone(),
        }
    }
}

impl<S: Scalar> fmt::Debug for Registry<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("transitions", &self.transitions().collect::<Vec<_>>())
            .field("readouts", &self.readouts().collect::<Vec<_>>())
            .field("solvers", &self.solvers().collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::ModelDims;

    const DIMS: ModelDims =
        ModelDims { features: 3, edge_features: 0, outputs: 2, level: Level::Node };

    fn built(config: &ModelConfig) -> Result<(), String> {
        config.build::<f32>(DIMS).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn an_unknown_name_lists_the_choices_and_the_nearest() {
        let config = ModelConfig { transition: "gnn-sun".into(), ..ModelConfig::default() };
        assert_eq!(
            built(&config).unwrap_err(),
            "transition is gnn-sun, but one of gnn-sum, gnn-mean, gnn-normalized, gin, gcn-mean, \
             gcn, sage-max is expected; did you mean gnn-sum?"
        );
        let solver = Registry::<f32>::default().solver("magic", &Options::default());
        let error = solver.unwrap_err().to_string();
        assert_eq!(
            error,
            "solver is magic, but one of bdmm, one-shot, implicit, unrolled is expected"
        );
    }

    #[test]
    fn a_readout_predicts_what_is_asked_for() {
        let config = ModelConfig { readout: "max".into(), ..ModelConfig::default() };
        assert_eq!(
            built(&config).unwrap_err(),
            "readout is max, but one is expected that predicts 2 components per node: this one \
             predicts 2 per graph"
        );
    }

    #[test]
    fn options_go_to_who_takes_them() {
        let transition_options = Options::default().with("gates", 2);
        let config = ModelConfig { transition_options, ..ModelConfig::default() };
        let error = built(&config).unwrap_err();
        assert_eq!(error, "there is an option gates, but the function takes none");
        let registry = Registry::<f32>::default();
        let solver = registry.solver("bdmm", &Options::default().with("state-lr", 0.5)).unwrap();
        assert!(format!("{solver:?}").contains("state_lr: 0.5"), "{solver:?}");
        assert!(registry.solver("bdmm", &Options::default().with("beta", 1.0)).is_err());
    }

    #[test]
    fn a_name_can_be_given_another_meaning() {
        let registry = Registry::<f32>::default()
            .with_transition("gin", |_| Err(Error::Mismatch("not today".into())));
        let config = ModelConfig { transition: "gin".into(), ..ModelConfig::default() };
        assert_eq!(config.build_with(&registry, DIMS).unwrap_err().to_string(), "not today");
        assert_eq!(
            registry.transitions().count(),
            Registry::<f32>::default().transitions().count()
        );
    }
}
