use super::Monitor;
use crate::activation::Activation;
use crate::constraint::ConstraintFunction;
use crate::graph::Level;
use crate::inference::Inference;
use crate::lagrangian::{Model, Multipliers, ReadLayers, Reads, Weighing};
use crate::network::{Network, StateWeights};
use crate::normalization::Normalization;
use crate::registry::{Options, ReadoutSpec, Registry, TransitionSpec};
use crate::saddle::{
    AugmentedLagrangian, Bdmm, Implicit, OneShot, SaddleSolver, Sse, Unrolled, WeightDescent,
    check_not_negative, check_positive,
};
use crate::transition::{EdgeInputs, Isolated};
use crate::{Error, Scalar, memory};

/// The functions of a model, as a user names them.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelConfig {
    /// Transition function `f_a`, by its name.
    ///
    /// Built in are `gnn-sum`, `gnn-mean` and `gnn-normalized` (a network of every pair of neighbours,
    /// summed, averaged, or summed with weights `1/√(de[v] de[u])`), `sage-max` (its maximum, as in
    /// GraphSAGE), `gin` (a network of the sum), `gcn-mean` (of the mean, as in the paper's table) and
    /// `gcn` (of the normalised mean, as published). A registry can add others.
    #[schemars(extend(
        "x-flag" = "transition",
        "x-data-default" = "gnn-sum up to degree 15; above, gnn-mean for nodes, gnn-normalized for \
                            graphs and large heterophilous graphs; for homophilous graphs gcn, gnn-mean with 3000 or more labelled nodes"
    ))]
    pub transition: String,
    /// Options of a transition that is not built in.
    pub transition_options: Options,
    /// Number of layers `K`.
    #[schemars(
        range(min = 1, max = 1024),
        extend("x-flag" = "layers", "x-data-default" = "4 for graphs with one-shot, 2 for large heterophilous graphs and for homophilous graphs with 3000 or more labelled nodes, otherwise 1")
    )]
    pub layers: usize,
    /// Components of a state.
    #[schemars(
        range(min = 1, max = 65536),
        extend(
            "x-flag" = "state-dim",
            "x-data-default" = "10 for nodes, 32 with 500 or more labelled nodes of one graph; 64 for large heterophilous graphs; 16 for homophilous graphs, 64 with 3000 or more labelled nodes; 16 for graphs, 64 for one layer with mini-batches"
        )
    )]
    pub state_dim: usize,
    /// Units of the hidden layers of `h`, the network in `f_a`.
    #[schemars(
        inner(range(min = 1, max = 65536)),
        extend(
            "x-flag" = "hidden-dims",
            "x-data-default" = "[20] for nodes, [32] with 500 or more labelled nodes of one graph; [64] for large heterophilous graphs; [] for homophilous graphs, [64] with 3000 or more labelled nodes; [32] for graphs, [64] for one layer with mini-batches"
        )
    )]
    pub hidden_dims: Vec<usize>,
    /// Activation of the hidden units of `h`.
    #[schemars(extend("x-data-default" = "relu for graphs with one-shot, for large heterophilous graphs and for 500 or more labelled nodes of one graph, otherwise tanh"))]
    pub activation: Activation,
    /// Activation of the output of `h`.
    pub output_activation: Activation,
    /// Initialisation and training of the weights of `h` that multiply states.
    #[schemars(extend("x-data-default" = "frozen for homophilous graphs with fewer than 3000 labelled nodes, otherwise random"))]
    pub state_weights: StateWeights,
    /// What isolated nodes aggregate, for the transitions gnn and sage.
    pub isolated: Isolated,
    /// Arguments of `h`, for the transitions gnn and sage.
    pub inputs: EdgeInputs,
    /// Normalisation of the output of a layer, as read by the next layer and the read-out.
    ///
    /// It is outside the equation `x = f_a(x)` of the layer and does not affect its bound. It needs whole graphs, so several
    /// processes and live graphs do not support it.
    pub normalization: Normalization,
    /// Read-out `f_r`, by its name.
    ///
    /// Built in are `node` for nodes, `sum`, `mean` and `max` over the nodes of a graph, and `auto`,
    /// which is `node` for nodes and `sum` for graphs. A registry can add others.
    pub readout: String,
    /// Options of a read-out that is not built in.
    pub readout_options: Options,
    /// Units of the hidden layers of the read-out `f_r`.
    #[schemars(
        inner(range(min = 1, max = 65536)),
        extend("x-data-default" = "[20] for nodes, [64] with 500 or more labelled nodes of one graph, [] for homophilous and large heterophilous graphs; [32] for graphs, [64] for one layer with mini-batches")
    )]
    pub readout_hidden_dims: Vec<usize>,
    /// Activation of the hidden units of `f_r`.
    #[schemars(extend("x-data-default" = "relu for graphs and for 500 or more labelled nodes of one graph with narrow features, otherwise tanh"))]
    pub readout_activation: Activation,
    /// Dropout probability of the hidden units of `f_r`.
    #[schemars(
        range(min = 0),
        extend(
            "exclusiveMaximum" = 1,
            "x-data-default" = "0 for nodes, 0.5 with 500 or more labelled nodes of one graph with narrow features; for graphs 0.3 with one-shot, otherwise 0.5, 0 for one layer with mini-batches"
        )
    )]
    pub dropout: f64,
    /// Input of the read-out `f_r`.
    pub reads: Reads,
    /// Constraint function `G`; every solver but bdmm needs lin.
    #[schemars(extend("x-data-default" = "squared with bdmm where Adam is asked for, for homophilous graphs and without a bound; otherwise lin"))]
    pub constraint: ConstraintFunction,
    /// Multipliers of a node; lin and lin-eps need per-component.
    #[schemars(extend("x-data-default" = "per-node with bdmm and a G other than lin, otherwise per-component"))]
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
            normalization: Normalization::default(),
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

/// Maximum size of a state or layer: larger matrices would not fit into memory.
const LARGEST: usize = 1 << 16;
const MOST_LAYERS: usize = 1 << 10;

impl ModelConfig {
    /// Builds the model from built-in functions.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that cannot be used; [`Error::Mismatch`].
    pub fn build<S: Scalar>(&self, dims: ModelDims) -> Result<Model<S>, Error> {
        self.build_with(&Registry::default(), dims)
    }

    /// Builds the model from the functions in `registry`.
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
        let features = if self.reads.features { dims.features } else { 0 };
        let readout = registry.readout(&ReadoutSpec {
            level: dims.level,
            inputs: match self.reads.layers {
                ReadLayers::Last => self.state_dim,
                ReadLayers::All => self.state_dim * self.layers,
            },
            features,
            edge_features: dims.edge_features,
            outputs: dims.outputs,
            model: self,
        })?;
        if features > 0 && readout.features() == 0 {
            return Err(Error::Option {
                option: "reads.features",
                value: "true".into(),
                expected: format!("the read-out {} does not read features", self.readout),
            });
        }
        let constraint = Box::new(self.constraint.check()?);
        let model = Model::new(transitions, readout, self.reads, constraint, self.multipliers)?
            .with_normalization(self.normalization);
        let what = format_args!("a model with {} weights", model.weights());
        memory::require(memory::bytes_of::<S>(&[model.weights()]), what)?;
        Ok(model)
    }

    /// The network of the built-in read-outs.
    pub(crate) fn readout_network(&self) -> Network {
        Network {
            hidden_dims: self.readout_hidden_dims.clone(),
            activation: self.readout_activation,
            output_activation: Activation::Identity,
        }
    }

    fn check_sizes(&self) -> Result<(), Error> {
        if self.layers == 0 || self.layers > MOST_LAYERS {
            let expected = format!("an integer from 1 to {MOST_LAYERS} is expected");
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
                let expected = format!("an integer from 1 to {LARGEST} is expected");
                return Err(Error::Option { option, value: count.to_string(), expected });
            }
        }
        check_share("dropout", self.dropout)
    }
}

/// How to train, as a user writes it: in a file, on the command line, in Python or in code.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrainingConfig {
    /// Passes over the training data.
    #[schemars(
        range(min = 1),
        extend(
            "x-flag" = "epochs",
            "x-data-default" = "600 for nodes, 150 for graphs; 100 for homophilous graphs and with mini-batches, 200 for large heterophilous graphs, 250 \
                                for homophilous graphs with 3000 or more labelled nodes"
        )
    )]
    pub epochs: usize,
    /// Random seed: the same seed gives the same bits.
    #[schemars(
        range(max = 9_223_372_036_854_775_807_i64),
        extend("x-flag" = "seed")
    )]
    pub seed: u64,
    /// Graphs per update; none: all of them.
    #[schemars(
        range(min = 1),
        extend("x-flag" = "batch-size", "x-data-default" = "128 with mini-batches, otherwise none")
    )]
    pub batch_size: Option<usize>,
    /// Updates per epoch, each on the next mini-batch; none: one pass over the training data.
    ///
    /// With more, the graphs are reshuffled for every pass; with fewer, some graphs are left out of an epoch. GIN's
    /// epochs have 50, on 32 graphs each.
    #[schemars(range(min = 1))]
    pub updates_per_epoch: Option<usize>,
    /// Solver of the saddle point.
    #[schemars(extend("x-flag" = "solver"))]
    pub solver: SolverConfig,
    /// Solver that is not built in, by its name; none: `solver`.
    pub custom_solver: Option<String>,
    /// Options of a solver that is not built in.
    pub custom_solver_options: Options,
    /// Half-life, in updates, of the average of the weights that is evaluated and saved; none: no average.
    ///
    /// It starts as the plain mean of all weights so far, and later becomes an exponential average. Training itself uses the
    /// current weights.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub average_half_life: Option<f64>,
    /// Weights of the terms of the Lagrangian.
    pub weighing: Weighing,
    /// Bound on the Lipschitz constant of `f_a`, enforced after every update; none: no bound.
    #[schemars(extend(
        "exclusiveMinimum" = 0,
        "x-data-default" = "0.5 for homophilous graphs with 3000 or more labelled nodes, otherwise 0.9"
    ))]
    pub lipschitz: Option<f64>,
    /// Whether layers that read states are optimised as if their inputs were standardised.
    ///
    /// These are the first layer of `f_r`, and the first of `h` above another layer of states. They
    /// are initialised and optimised in coordinates in which their inputs have mean 0 and standard
    /// deviation 1; the model can represent the same functions.
    #[schemars(extend("x-data-default" = "false for homophilous graphs, otherwise true"))]
    pub standardize: bool,
    /// L2 penalty: factor of half the sum of squared weights.
    #[schemars(
        range(min = 0),
        extend("x-data-default" = "for large heterophilous graphs and for homophilous graphs with fewer than 3000 labelled nodes, 0.7 divided by their number; otherwise 0")
    )]
    pub l2: f64,
    /// Dropout probability of the entries of node features.
    ///
    /// A new mask is drawn for every update; the remaining entries are scaled up.
    #[schemars(
        range(min = 0),
        extend(
            "exclusiveMaximum" = 1,
            "x-data-default" = "0.5 for homophilous and large heterophilous graphs, 0.6 for homophilous graphs with 3000 or more labelled nodes, otherwise 0"
        )
    )]
    pub feature_dropout: f64,
    /// Class weights in the loss.
    pub class_weights: ClassWeights,
    /// Epochs between evaluations on converged states.
    #[schemars(
        range(min = 1),
        extend(
            "x-flag" = "eval-every",
            "x-data-default" = "a twentieth of the epochs, at most 10, or 2 with mini-batches; half of that for large heterophilous graphs"
        )
    )]
    pub eval_every: usize,
    /// Updates by which rows from other processes may be stale: 0, or 1 for no waiting.
    ///
    /// With 1, results depend on the number of processes, and the first update after resuming waits.
    #[schemars(range(max = 1))]
    pub staleness: usize,
    /// Size of the random sample of training graphs in evaluations before the last; none: all.
    ///
    /// These evaluations also skip the spectral radius. Validation and test data are always
    /// evaluated in full, and the last evaluation measures everything.
    #[schemars(range(min = 1))]
    pub eval_sample: Option<usize>,
    /// Early stopping: evaluations without improvement on validation data; none: never.
    ///
    /// Without a validation split, training does not stop early.
    #[schemars(range(min = 1), extend("x-flag" = "patience"))]
    pub patience: Option<usize>,
    /// Metric of the validation split that selects the epoch and decides on early stopping.
    ///
    /// Cross-validations and searches compare by it too, unless it is the loss: then they compare accuracies.
    #[schemars(extend("x-flag" = "monitor"))]
    pub monitor: Monitor,
    /// How the states of graphs outside the training data are found.
    pub inference: Inference,
}

/// Whether rare classes count more in the loss.
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
pub enum ClassWeights {
    /// Every example has weight 1.
    #[default]
    Equal,
    /// All classes have the same total weight, so rare ones count more.
    Balanced,
}

/// The solver of the saddle point and its options.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum SolverConfig {
    /// Gradient descent and ascent, as in the paper.
    Bdmm(Bdmm),
    /// A few fixed-point steps of states and adjoints per update.
    OneShot(OneShot),
    /// The fixed point and its adjoint solved at every update, as in a DEQ.
    Implicit(Implicit),
    /// The original GNN: backpropagation through all iterations.
    Unrolled(Unrolled),
    /// Stochastic steady-state embedding.
    Sse(Sse),
    /// The method of multipliers.
    AugmentedLagrangian(AugmentedLagrangian),
}

/// Of 3, 5, 8, 10, 15 and 20, the smallest whose validation accuracy is within 0.4 points of that of all epochs on
/// MUTAG, PTC, PROTEINS, Cora, Citeseer, clique and subgraph, each the mean over five seeds.
const PATIENCE: usize = 15;

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            epochs: 300,
            seed: 0,
            batch_size: None,
            updates_per_epoch: None,
            average_half_life: None,
            solver: SolverConfig::OneShot(OneShot::default()),
            custom_solver: None,
            custom_solver_options: Options::default(),
            weighing: Weighing::default(),
            lipschitz: Some(0.9),
            standardize: true,
            l2: 0.0,
            feature_dropout: 0.0,
            class_weights: ClassWeights::Equal,
            eval_every: 10,
            staleness: 0,
            eval_sample: Some(512),
            patience: Some(PATIENCE),
            monitor: Monitor::Auto,
            inference: Inference::default(),
        }
    }
}

/// A [`TrainingConfig`] that has been validated by [`check`](TrainingConfig::check).
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingPlan(TrainingConfig);

impl TrainingConfig {
    /// Validates every value.
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
        if self.staleness > 1 {
            return Err(Error::Option {
                option: "staleness",
                value: self.staleness.to_string(),
                expected: "0 or 1 is expected".into(),
            });
        }
        if let Some(half_life) = self.average_half_life {
            check_positive("average-half-life", half_life)?;
        }
        for (option, count) in [
            ("epochs", self.epochs),
            ("eval-every", self.eval_every),
            ("eval-sample", self.eval_sample.unwrap_or(1)),
            ("batch-size", self.batch_size.unwrap_or(1)),
            ("patience", self.patience.unwrap_or(1)),
            ("updates-per-epoch", self.updates_per_epoch.unwrap_or(1)),
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
/// [`Error::Option`] unless it is a probability below 1.
fn check_share(option: &'static str, value: f64) -> Result<(), Error> {
    if (0.0..1.0).contains(&value) {
        return Ok(());
    }
    let expected = "a probability below 1 is expected".into();
    Err(Error::Option { option, value: value.to_string(), expected })
}

impl TrainingPlan {
    /// The validated configuration.
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

    /// How its weights are updated.
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
