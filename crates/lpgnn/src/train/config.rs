use crate::activation::Activation;
use crate::constraint::ConstraintFunction;
use crate::graph::Level;
use crate::inference::Inference;
use crate::lagrangian::{Model, Multipliers, ReadLayers, Reads, Weighing};
use crate::network::{Network, StateWeights};
use crate::registry::{Options, ReadoutSpec, Registry, TransitionSpec};
use crate::saddle::{
    AugmentedLagrangian, Bdmm, Implicit, OneShot, SaddleSolver, Sse, Unrolled, WeightDescent,
    check_not_negative, check_positive,
};
use crate::transition::{EdgeInputs, Isolated};
use crate::{Error, Scalar};

/// The functions of a model, as a user names them.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelConfig {
    /// `f_a`: its name in the [registry](crate::registry).
    pub transition: String,
    /// What a transition of one's own is told.
    #[serde(skip_serializing_if = "Options::is_empty")]
    pub transition_options: Options,
    /// `K`
    pub layers: usize,
    /// `s`, the components of a state.
    pub state_dim: usize,
    /// Units of every hidden layer of `h`.
    pub hidden_dims: Vec<usize>,
    /// Activation of the hidden units of `h`.
    pub activation: Activation,
    /// Activation of the output of `h`.
    pub output_activation: Activation,
    /// What the matrices of `h` that state_weights states from hop to hop are.
    pub state_weights: StateWeights,
    /// What a node without neighbours aggregates, for the same.
    pub isolated: Isolated,
    /// Arguments of `h`, for the transitions that look at pairs of neighbours.
    pub inputs: EdgeInputs,
    /// `f_r`: its name in the [registry](crate::registry); `auto` is `node` for nodes and `sum` for
    /// graphs.
    pub readout: String,
    /// What a read-out of one's own is told.
    #[serde(skip_serializing_if = "Options::is_empty")]
    pub readout_options: Options,
    /// Units of every hidden layer of `f_r`.
    pub readout_hidden_dims: Vec<usize>,
    /// Activation of the hidden units of `f_r`.
    pub readout_activation: Activation,
    /// Probability with which a hidden unit of `f_r` is left out in training.
    pub dropout: f64,
    /// What `f_r` reads.
    pub reads: Reads,
    /// `G`
    pub constraint: ConstraintFunction,
    /// How many multipliers a node has.
    pub multipliers: Multipliers,
}

/// What a model reads and predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelDims {
    /// Components of the features of nodes.
    pub features: usize,
    /// Components of the features of edges.
    pub edge_features: usize,
    /// Classes or values to predict.
    pub outputs: usize,
    /// Whether nodes or graphs are predicted.
    pub level: Level,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            transition: "gnn-mean".into(),
            transition_options: Options::default(),
            layers: 1,
            state_dim: 10,
            hidden_dims: vec![20],
            activation: Activation::Tanh,
            output_activation: Activation::Identity,
            state_weights: StateWeights::default(),
            isolated: Isolated::default(),
            inputs: EdgeInputs::default(),
            readout: "auto".into(),
            readout_options: Options::default(),
            readout_hidden_dims: vec![20],
            readout_activation: Activation::Tanh,
            dropout: 0.0,
            reads: Reads::default(),
            constraint: ConstraintFunction::Linear,
            multipliers: Multipliers::PerComponent,
        }
    }
}

/// Components of a state and units of a layer at most: their matrices would not fit any memory.
const LARGEST: usize = 1 << 16;
const MOST_LAYERS: usize = 1 << 10;

impl ModelConfig {
    /// The model, of functions that are built in.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that cannot be used; [`Error::Mismatch`].
    pub fn build<S: Scalar>(&self, dims: ModelDims) -> Result<Model<S>, Error> {
        self.build_with(&Registry::default(), dims)
    }

    /// The model, of functions that `registry` knows.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Self::build).
    pub fn build_with<S: Scalar>(
        &self,
        registry: &Registry<S>,
        dims: ModelDims,
    ) -> Result<Model<S>, Error> {
        self.check_sizes()?;
        let transitions = (0..self.layers).map(|layer| {
            let features = if layer == 0 { dims.features } else { self.state_dim };
            let edge_features = dims.edge_features;
            registry.transition(&TransitionSpec { layer, features, edge_features, model: self })
        });
        let transitions = transitions.collect::<Result<_, Error>>()?;
        let readout = registry.readout(&ReadoutSpec {
            level: dims.level,
            inputs: match self.reads.layers {
                ReadLayers::Last => self.state_dim,
                ReadLayers::All => self.state_dim * self.layers,
            },
            outputs: dims.outputs,
            model: self,
        })?;
        let constraint = Box::new(self.constraint.check()?);
        Model::new(transitions, readout, self.reads, constraint, self.multipliers)
    }

    /// The network of the read-outs that are built in.
    pub(crate) fn readout_network(&self) -> Network {
        Network {
            hidden_dims: self.readout_hidden_dims.clone(),
            activation: self.readout_activation,
            output_activation: Activation::Identity,
        }
    }

    fn check_sizes(&self) -> Result<(), Error> {
        if self.layers == 0 || self.layers > MOST_LAYERS {
            let expected = format!("a number from 1 to {MOST_LAYERS} is expected");
            return Err(Error::Option {
                option: "layers",
                value: self.layers.to_string(),
                expected,
            });
        }
        let units = self.hidden_dims.iter().chain(&self.readout_hidden_dims);
        for (option, count) in
            units.map(|&units| ("hidden-dims", units)).chain([("state-dim", self.state_dim)])
        {
            if count == 0 || count > LARGEST {
                let expected = format!("a number from 1 to {LARGEST} is expected");
                return Err(Error::Option { option, value: count.to_string(), expected });
            }
        }
        check_share("dropout", self.dropout)
    }
}

/// How to train, as a user writes it: in a file, on the command line, in Python or in code.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrainingConfig {
    /// How often all training data are gone through.
    pub epochs: usize,
    /// Where all random numbers start.
    pub seed: u64,
    /// Graphs per update; none takes all of them at once.
    pub batch_size: Option<usize>,
    /// The solver of the saddle point.
    pub solver: SolverConfig,
    /// How the terms of the Lagrangian are weighed.
    pub weighing: Weighing,
    /// A bound on the Lipschitz constant of `f_a`, kept after every update.
    pub lipschitz: Option<f64>,
    /// Whether the layers that read states, the first of `f_r` and those of `h` above another layer,
    /// descend in coordinates in which what they read has mean 0 and std 1, and start there.
    /// The functions a model can be are the same.
    pub standardize: bool,
    /// `ρ_θ`: what `½ Σ θ²` is multiplied with in the Lagrangian, over all weights.
    pub l2: f64,
    /// Probability with which an entry of a node feature is left out in an update; those that stay
    /// count so much more.
    pub feature_dropout: f64,
    /// Whether rare classes count more in the loss.
    pub class_weights: ClassWeights,
    /// Epochs between evaluation on converged states.
    pub eval_every: usize,
    /// ModelEvaluation without a better one on the validation part after which training ends.
    pub patience: Option<usize>,
    /// How states of graphs that are not trained on are found.
    pub inference: Inference,
}

/// Whether rare classes count more in the loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassWeights {
    /// Every example counts once.
    #[default]
    Equal,
    /// Every class counts the same in all.
    Balanced,
}

/// The solver of the saddle point and its options.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum SolverConfig {
    /// Descent and ascent, as in the paper.
    Bdmm(Bdmm),
    /// One fixed-point step per update.
    OneShot(OneShot),
    /// The fixed point and its adjoint solved for at every update.
    Implicit(Implicit),
    /// The original GNN.
    Unrolled(Unrolled),
    /// Stochastic steady-state embedding.
    Sse(Sse),
    /// The method of multipliers.
    AugmentedLagrangian(AugmentedLagrangian),
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            epochs: 300,
            seed: 0,
            batch_size: None,
            solver: SolverConfig::OneShot(OneShot::default()),
            weighing: Weighing::default(),
            lipschitz: Some(0.9),
            standardize: true,
            l2: 0.0,
            feature_dropout: 0.0,
            class_weights: ClassWeights::Equal,
            eval_every: 10,
            patience: None,
            inference: Inference::default(),
        }
    }
}

/// A [`TrainingConfig`] that has been checked. There is no other way to make one.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingPlan(TrainingConfig);

impl TrainingConfig {
    /// The same, with every value known to be usable.
    ///
    /// ```
    /// use lpgnn::train::TrainingConfig;
    ///
    /// let error = TrainingConfig { eval_every: 0, ..TrainingConfig::default() }.check().unwrap_err();
    /// assert_eq!(error.to_string(), "eval-every is 0, but at least one is expected");
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not.
    pub fn check(self) -> Result<TrainingPlan, Error> {
        for (option, count) in [
            ("epochs", self.epochs),
            ("eval-every", self.eval_every),
            ("batch-size", self.batch_size.unwrap_or(1)),
            ("patience", self.patience.unwrap_or(1)),
        ] {
            if count == 0 {
                let expected = "at least one is expected".into();
                return Err(Error::Option { option, value: "0".into(), expected });
            }
        }
        if let Some(bound) = self.lipschitz {
            check_positive("lipschitz", bound)?;
        }
        check_share("feature-dropout", self.feature_dropout)?;
        check_positive("loss-weight", self.weighing.loss_weight)?;
        check_not_negative("l2", self.l2)?;
        match self.solver {
            SolverConfig::Bdmm(solver) => drop(solver.check()?),
            SolverConfig::OneShot(solver) => drop(solver.check()?),
            SolverConfig::Implicit(solver) => drop(solver.check()?),
            SolverConfig::Unrolled(solver) => drop(solver.check()?),
            SolverConfig::Sse(solver) => drop(solver.check()?),
            SolverConfig::AugmentedLagrangian(solver) => drop(solver.check()?),
        }
        match self.inference {
            Inference::FixedPoint(options) => drop(options.check()?),
            Inference::Relax(options) => drop(options.check()?),
        }
        Ok(TrainingPlan(self))
    }
}

/// # Errors
///
/// [`Error::Option`] unless it is a share of which something is left.
fn check_share(option: &'static str, value: f64) -> Result<(), Error> {
    if (0.0..1.0).contains(&value) {
        return Ok(());
    }
    let expected = "a probability below 1 is expected".into();
    Err(Error::Option { option, value: value.to_string(), expected })
}

impl TrainingPlan {
    /// What was checked.
    pub fn config(&self) -> &TrainingConfig {
        &self.0
    }
}

impl SolverConfig {
    /// The solver.
    pub fn build<S: Scalar>(&self) -> Box<dyn SaddleSolver<S>> {
        match *self {
            Self::Bdmm(solver) => Box::new(solver),
            Self::OneShot(solver) => Box::new(solver),
            Self::Implicit(solver) => Box::new(solver),
            Self::Unrolled(solver) => Box::new(solver),
            Self::Sse(solver) => Box::new(solver),
            Self::AugmentedLagrangian(solver) => Box::new(solver),
        }
    }

    /// Its name, as in a configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bdmm(_) => "bdmm",
            Self::OneShot(_) => "one-shot",
            Self::Implicit(_) => "implicit",
            Self::Unrolled(_) => "unrolled",
            Self::Sse(_) => "sse",
            Self::AugmentedLagrangian(_) => "augmented-lagrangian",
        }
    }

    /// How its weights descend.
    pub fn weights(&self) -> &WeightDescent {
        match self {
            Self::Bdmm(solver) => &solver.weights,
            Self::OneShot(solver) => &solver.weights,
            Self::Implicit(solver) => &solver.weights,
            Self::Unrolled(solver) => &solver.weights,
            Self::Sse(solver) => &solver.weights,
            Self::AugmentedLagrangian(solver) => &solver.weights,
        }
    }
}
