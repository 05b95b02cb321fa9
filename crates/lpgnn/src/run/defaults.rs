use super::homophily::homophily;
use super::{RunConfig, Setting, SplitConfig};
use crate::Matrix;
use crate::activation::Activation;
use crate::constraint::ConstraintFunction;
use crate::data::{Dataset, FeatureSource, Level};
use crate::lagrangian::{Multipliers, ReadFrom, ReadLayers, Reads, Scale};
use crate::network::StateWeights;
use crate::saddle::{
    AugmentedLagrangian, Bdmm, DualRule, Implicit, LrDecay, OneShot, PrimalRule, Sse, Unrolled,
    WeightDescent,
};
use crate::train::{ModelConfig, SolverConfig, TrainingConfig};

/// Degrees above which a sum over neighbours, held to a bound, says little about each of them.
const LARGE_DEGREE: usize = 15;
/// Nodes above which graphs are trained on in batches.
const MANY_NODES: usize = 20_000;
/// How many of them then.
const BATCH: usize = 128;
/// Epochs or layers that no setting asks for, since there is at least one.
const NOT_ASKED: usize = 0;
/// Labelled nodes of one graph from which on wide networks do not just learn them by heart.
const MANY_TARGETS: usize = 500;
/// Labelled nodes of one graph whose neighbours are alike from which on it can be learnt how they influence each other.
const PLENTY_OF_TARGETS: usize = 3_000;

impl RunConfig {
    /// What does well on data of this kind and size and on their split, where these settings are going
    /// to be made [`with`](Self::with) it: the task, the split, the solver and the epochs among them
    /// decide on others.
    ///
    /// The split is the one that training uses: that of the data, or the one that the settings draw.
    /// One from elsewhere becomes that of the data first, by [`Dataset::with_split`].
    pub fn for_data(source: &str, dataset: &Dataset, settings: &[Setting]) -> Self {
        let asked = Self::asked(settings);
        let task = Level::of_task(asked.data.task, dataset).unwrap_or(Level::Node);
        let alike = if task == Level::Node { alike(dataset, asked.split) } else { None };
        let plenty = alike.is_some_and(|targets| targets >= PLENTY_OF_TARGETS);
        let many_targets = task == Level::Node && has_many_targets(dataset, asked.split);
        let batches = dataset.nodes() > MANY_NODES && dataset.graphs() > 100;
        let epochs = match (asked.training.epochs, task) {
            (NOT_ASKED, Level::Node) if plenty => 250,
            (NOT_ASKED, Level::Node) if alike.is_some() => 100,
            (NOT_ASKED, Level::Node) => 600,
            (NOT_ASKED, Level::Graph) if batches => 100,
            (NOT_ASKED, Level::Graph) => 150,
            (epochs, _) => epochs,
        };
        let of_epoch = asked.training.updates_per_epoch.unwrap_or_else(|| {
            let batch = asked.training.batch_size.or(batches.then_some(BATCH));
            batch.map_or(1, |batch| dataset.graphs().div_ceil(batch.max(1)))
        });
        let weights = weights_of(task, epochs.saturating_mul(of_epoch));
        let inner_steps = if batches || task == Level::Graph { 3 } else { 2 };
        let solver = solver_of(&asked.training.solver, weights, inner_steps);
        let mut config = Self::default();
        source.clone_into(&mut config.data.source);
        if dataset.reads_all() {
            config.features.source = FeatureSource::All;
        }
        config.model = model_of(task, dataset);
        config.training = TrainingConfig {
            epochs,
            solver,
            batch_size: batches.then_some(BATCH),
            eval_every: (epochs / 20).clamp(1, if batches { 2 } else { 10 }),
            ..TrainingConfig::default()
        };
        let solver = config.training.solver;
        if matches!(solver, SolverConfig::Bdmm(_) | SolverConfig::AugmentedLagrangian(_)) {
            // A loss that weighs little cannot write the classes into the states. A node pulls its
            // own state alone, a graph those of all its nodes in one direction.
            config.training.weighing.loss_weight = if task == Level::Node { 0.01 } else { 0.001 };
        }
        if let SolverConfig::Bdmm(solver) = &mut config.training.solver {
            let linear = asked.model.constraint == ConstraintFunction::Linear;
            let free = linear && alike.is_none() && !asks_for_adam(settings);
            if let (true, Some(bound)) = (free, asked.training.lipschitz) {
                let steps = match asked.training.solver {
                    SolverConfig::Bdmm(asked) => asked.inner_steps.max(3),
                    _ => 3,
                };
                *solver = plain_steps(*solver, steps, bound);
                config.training.weighing.loss_weight = 0.1;
            } else {
                config.model.constraint = ConstraintFunction::Squared;
                config.model.multipliers = Multipliers::PerNode;
            }
        }
        match (task, alike) {
            (Level::Node, Some(_)) if plenty => config.learn_what_carries_states(dataset),
            (Level::Node, Some(targets)) => config.hold_what_carries_states(dataset, targets),
            (Level::Node, None) if many_targets => config.widen(32, 64, 0.5),
            (Level::Node, None) => {}
            (Level::Graph, _) => config.stack_layers(),
        }
        // Where there is a lot to learn from, a single layer is starved by states that suit a stack.
        let layers = match asked.model.layers {
            NOT_ASKED => config.model.layers,
            layers => layers,
        };
        let starved = task == Level::Graph && batches && layers == 1;
        if starved {
            config.widen(64, 64, 0.0);
        }
        // What a node has to say itself need not pass through the states. Few graphs do not teach how to weigh both.
        let reads = task == Level::Node || starved;
        config.model.reads.features = reads && reads_features(&asked);
        if let Some(graph) = dataset.in_parts() {
            // Its nodes were encoded and split when it was written.
            config.features = graph.info().features.clone();
            config.split = graph.info().split;
        }
        config
    }

    /// What the settings ask for, whatever the data; no epochs or layers where they do not ask for any. What cannot
    /// be used is found out when the settings are made.
    fn asked(settings: &[Setting]) -> Self {
        let mut nothing = Self::default();
        (nothing.training.epochs, nothing.model.layers) = (NOT_ASKED, NOT_ASKED);
        nothing.with(settings).unwrap_or(nothing)
    }

    /// What does well where there is a lot to learn from.
    fn widen(&mut self, units: usize, readout_units: usize, dropout: f64) {
        (self.model.state_dim, self.model.hidden_dims) = (units, vec![units]);
        self.model.readout_hidden_dims = vec![readout_units];
        (self.model.activation, self.model.readout_activation) =
            (Activation::Relu, Activation::Relu);
        self.model.dropout = dropout;
    }

    /// What does well on many graphs: layers that count what those below have found, all of them
    /// read. There are few graphs to learn from, so that weights are kept small.
    fn stack_layers(&mut self) {
        let SolverConfig::OneShot(solver) = &mut self.training.solver else { return };
        solver.weights.weight_decay = 0.03;
        self.model.layers = 4;
        self.model.reads.layers = ReadLayers::All;
        self.model.activation = Activation::Relu;
        self.model.dropout = 0.3;
    }

    /// What does well on one graph whose neighbours are alike, with so many targets: all that is learnt is how features are
    /// read, with some of them left out, and the fixed point spreads it.
    fn hold_what_carries_states(&mut self, dataset: &Dataset, targets: usize) {
        self.model.transition = "gcn".into();
        self.model.state_weights = StateWeights::Frozen;
        self.model.state_dim = 16;
        (self.model.hidden_dims, self.model.readout_hidden_dims) = (vec![], vec![]);
        // As much, beside the mean of the loss, as 0.7 beside its sum.
        self.training.l2 = round(L2_OF_ALL / targets.max(1) as f64);
        // As many steps as it takes to follow features that change with every update.
        self.leave_out_features(dataset, 0.5, WeightDescent::default(), 20);
    }

    /// The same with plenty of targets: how neighbours influence each other is learnt too. A small bound lets the features
    /// that neighbours have come before what is far away, of which a second layer says more.
    fn learn_what_carries_states(&mut self, dataset: &Dataset) {
        self.model.transition = "gnn-mean".into();
        (self.model.layers, self.model.state_dim) = (2, 64);
        (self.model.hidden_dims, self.model.readout_hidden_dims) = (vec![64], vec![]);
        self.training.lipschitz = Some(0.5);
        let weights = WeightDescent { lr: 0.02, ..WeightDescent::default() };
        self.leave_out_features(dataset, 0.6, weights, 4);
    }

    /// What wide features of one graph whose neighbours are alike need, of which some are left out of every update.
    fn leave_out_features(
        &mut self,
        dataset: &Dataset,
        dropout: f64,
        weights: WeightDescent,
        inner_steps: usize,
    ) {
        self.features.row_normalize = dataset.node_features().sparse().is_some();
        // A mean over neighbours lets through what they have in common. Noise that was made as large as the rest is not.
        self.features.standardize = !have_one_unit(dataset.node_features().values());
        let training = &mut self.training;
        training.standardize = false;
        training.feature_dropout = dropout;
        training.weighing.loss = Scale::Mean;
        match &mut training.solver {
            SolverConfig::OneShot(solver) => {
                *solver = OneShot { weights, inner_steps, ..OneShot::default() };
            }
            SolverConfig::Implicit(solver) => solver.weights = weights,
            SolverConfig::Unrolled(solver) => solver.weights = weights,
            SolverConfig::Sse(solver) => solver.weights = weights,
            SolverConfig::Bdmm(_) | SolverConfig::AugmentedLagrangian(_) => {}
        }
    }
}

/// Large steps find the way, small ones let states and weights come to rest. Read-outs of whole graphs learn slowly: they
/// keep the large steps for a quarter of the time, and halve them then.
fn weights_of(task: Level, updates: usize) -> WeightDescent {
    let (halves, lr_decay) = match task {
        Level::Node => (3.0, LrDecay::Smooth),
        Level::Graph => (4.0, LrDecay::Step),
    };
    let lr_half_life = Some((updates as f64 / halves).round().max(1.0));
    WeightDescent { lr: 0.005, lr_half_life, lr_decay, ..WeightDescent::default() }
}

/// Descent-ascent whose states cannot be used to cheat: with `G = lin` and plain gradient steps the loss moves a state by as much as
/// it weighs, while Adam makes the smallest pull as large as any other.
///
/// The rate is one at which `X ← X − η ((I − J)ᵀ (Λ + ρ (X − f_a(X))) + ∂loss/∂X)` does not diverge: with `‖J‖ ≤ L` and `ρ = 1`,
/// `η ρ (1 + L)²` is at most 1.2 and has to be below 2. In the steps of an update together multipliers move by at most once the
/// violation: with ten steps of 0.3 they swing, and nothing is learnt.
fn plain_steps(solver: Bdmm, steps: usize, bound: f64) -> Bdmm {
    let rate = round(0.3 * (2.0 / (1.0 + bound.max(1.0))).powi(2));
    Bdmm {
        state_rule: PrimalRule::Sgd,
        state_lr: rate,
        dual_rule: DualRule::Sgd,
        multiplier_lr: rate.min(round(1.0 / steps as f64)),
        inner_steps: steps,
        ..solver
    }
}

/// Whether settings ask for descent-ascent by Adam, as in the paper: by name, or by a rate of states or multipliers without the
/// rule that it is for.
fn asks_for_adam(settings: &[Setting]) -> bool {
    let named = |paths: [&str; 2]| {
        let is = |setting: &&Setting| {
            let path = setting.path().strip_prefix("training.solver.");
            path.is_some_and(|path| paths.contains(&path))
        };
        settings.iter().filter(is).map(Setting::value).collect::<Vec<_>>()
    };
    let (rules, rates) = (named(["state-rule", "dual-rule"]), named(["state-lr", "multiplier-lr"]));
    if rules.is_empty() { !rates.is_empty() } else { rules.iter().any(|&rule| rule == "adam") }
}

/// A solver of this kind with its defaults.
fn solver_of(kind: &SolverConfig, weights: WeightDescent, inner_steps: usize) -> SolverConfig {
    match kind {
        // The penalty holds states to the constraint.
        SolverConfig::Bdmm(_) => SolverConfig::Bdmm(Bdmm { penalty: 1.0, ..Bdmm::default() }),
        SolverConfig::AugmentedLagrangian(_) => {
            SolverConfig::AugmentedLagrangian(AugmentedLagrangian::default())
        }
        SolverConfig::Sse(_) => SolverConfig::Sse(Sse { weights, ..Sse::default() }),
        SolverConfig::Implicit(_) => {
            SolverConfig::Implicit(Implicit { weights, ..Implicit::default() })
        }
        SolverConfig::Unrolled(_) => {
            SolverConfig::Unrolled(Unrolled { weights, ..Unrolled::default() })
        }
        // With one step the states lag behind the weights and both may swing around the saddle;
        // in batches they are stale by all the weight steps of an epoch, and in a stack every
        // layer has to follow those below.
        SolverConfig::OneShot(_) => {
            SolverConfig::OneShot(OneShot { weights, inner_steps, ..OneShot::default() })
        }
    }
}

/// The functions for a task on these data.
fn model_of(task: Level, dataset: &Dataset) -> ModelConfig {
    let transition = match task {
        _ if largest_degree(dataset) <= LARGE_DEGREE => "gnn-sum".into(),
        Level::Node => "gnn-mean".into(),
        Level::Graph => "gnn-normalized".into(),
    };
    let reads = Reads { from: ReadFrom::Transition, layers: ReadLayers::Last, features: false };
    match task {
        Level::Node => ModelConfig { transition, reads, ..ModelConfig::default() },
        // Sums over a graph are far from where tanh bends, and there are few of them to fit.
        Level::Graph => ModelConfig {
            transition,
            reads,
            state_dim: 16,
            hidden_dims: vec![32],
            readout_hidden_dims: vec![32],
            readout_activation: Activation::Relu,
            dropout: 0.5,
            ..ModelConfig::default()
        },
    }
}

/// Less than one target in so many nodes is few.
const FEW_TARGETS: usize = 10;
/// From this width on, features describe a node.
const WIDE: usize = 16;
/// Neighbours are alike whose classes have this much in common. Published graphs have 0.6 and more, or 0.1 and less.
const ALIKE: f64 = 0.3;
/// The penalty on squared weights where the loss is a sum over targets.
const L2_OF_ALL: f64 = 0.7;

/// The number of training targets of one graph whose neighbours are alike, as far as training targets tell. Where they are too
/// few to tell, neighbours are taken to be.
pub(crate) fn alike(dataset: &Dataset, split: SplitConfig) -> Option<usize> {
    if let Some(graph) = dataset.in_parts() {
        return graph.info().alike;
    }
    let features = dataset.node_features();
    let describe = features.sparse().is_some() || features.values().cols() >= WIDE;
    if dataset.graphs() != 1 || !describe || !features.categories().is_empty() {
        return None;
    }
    let split =
        split.divide(dataset, Level::Node).ok().filter(|split| split.level == Level::Node)?;
    let few = split.train.len() * FEW_TARGETS < dataset.nodes();
    let alike = homophily(dataset, &split.train).map_or(few, |found| found >= ALIKE);
    alike.then_some(split.train.len())
}

/// Whether one graph has many labelled nodes to learn from.
fn has_many_targets(dataset: &Dataset, split: SplitConfig) -> bool {
    if let Some(graph) = dataset.in_parts() {
        return graph.info().split_sizes[0] >= MANY_TARGETS;
    }
    let split = split.divide(dataset, Level::Node).ok();
    let trained = split.filter(|split| split.level == Level::Node).map(|split| split.train.len());
    dataset.graphs() == 1 && trained.is_some_and(|count| count >= MANY_TARGETS)
}

/// Whether columns are of the same kind, as those of an embedding are: standard deviations within a factor of 100, and
/// neither very large nor very small.
fn have_one_unit(values: &Matrix<f32>) -> bool {
    let count = values.rows().max(1) as f64;
    let column = |j: usize| {
        let values = || (0..values.rows()).map(|row| f64::from(values.row(row)[j]));
        let mean = values().sum::<f64>() / count;
        (values().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt()
    };
    let all: Vec<f64> = (0..values.cols()).map(column).filter(|&std| std > 0.0).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    most <= 100.0 * least && (0.01..=10.0).contains(&most)
}

/// To two digits, as a person would write it.
fn round(x: f64) -> f64 {
    let unit = 10_f64.powf(x.log10().floor() - 1.0);
    ((x / unit).round() * unit * 1e12).round() / 1e12
}

/// Whether the read-out that settings ask for can read features.
fn reads_features(asked: &RunConfig) -> bool {
    ["auto", "node", "sum", "mean", "max"].contains(&&asked.model.readout[..])
}

/// The largest `de[v]`, in which parents and children count alike and each once, as in the transition's sums.
fn largest_degree(dataset: &Dataset) -> usize {
    if let Some(graph) = dataset.in_parts() {
        return graph.info().largest_degree;
    }
    let edges = dataset.edges();
    let mut degrees = vec![0_usize; dataset.nodes()];
    for &(source, target) in edges {
        degrees[target as usize] += 1;
        // A child that is a parent too is counted as a parent.
        if edges.binary_search(&(target, source)).is_err() {
            degrees[source as usize] += 1;
        }
    }
    degrees.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::homophily::tests::cliques_with;
    use super::*;
    use crate::data::{Categories, DatasetParts, FeatureColumns, Split, TargetColumn};
    use crate::graph::SparseRows;
    use crate::run::Schema;

    fn classes(rows: usize) -> TargetColumn {
        let numbers: Vec<i64> = (0..rows).map(|row| i64::from(row % 2 == 0)).collect();
        TargetColumn::Classes(Categories::from_integers("y", &numbers))
    }

    /// Graphs in which the first node has `degree` neighbours.
    fn stars(graphs: usize, nodes: usize, degree: usize) -> DatasetParts {
        let edges: Vec<(u32, u32)> = (0..graphs)
            .flat_map(|graph| (1..=degree).map(move |leaf| (graph * nodes + leaf, graph * nodes)))
            .map(|(u, v)| (u32::try_from(u).unwrap(), u32::try_from(v).unwrap()))
            .collect();
        DatasetParts {
            name: "stars".into(),
            node_starts: (0..=graphs).map(|graph| graph * nodes).collect(),
            node_features: FeatureColumns::none(graphs * nodes),
            edge_features: FeatureColumns::none(edges.len()),
            edges,
            node_targets: Some(classes(graphs * nodes)),
            graph_targets: None,
            split: None,
        }
    }

    fn words(rows: usize) -> FeatureColumns {
        let sparse = SparseRows::new(3, (0..=rows).collect(), vec![1; rows], vec![1.0; rows]);
        FeatureColumns::none(rows).with_sparse(sparse.unwrap()).unwrap()
    }

    /// Wide rows, all columns of which have this standard deviation or up to ten times as much.
    fn embedding(rows: usize, unit: f32) -> FeatureColumns {
        let value = |i: usize| unit * ((i * 7 % 11) as f32) * (1.0 + (i % 16) as f32 / 5.0);
        let values = Matrix::from_entries(rows, 16, (0..16 * rows).map(value).collect()).unwrap();
        let names: Vec<String> = (0..16).map(|j| format!("x{j}")).collect();
        FeatureColumns::none(rows).with_values(names, values).unwrap()
    }

    /// A path whose halves have a class each, 0.8 of which are trained on.
    fn halves(nodes: u32) -> DatasetParts {
        let edges: Vec<(u32, u32)> = (1..nodes).map(|v| (v - 1, v)).collect();
        let class: Vec<i64> = (0..nodes).map(|v| i64::from(2 * v < nodes)).collect();
        DatasetParts {
            node_features: words(nodes as usize),
            edge_features: FeatureColumns::none(edges.len()),
            edges,
            node_targets: Some(TargetColumn::Classes(Categories::from_integers("y", &class))),
            ..stars(1, nodes as usize, 0)
        }
    }

    #[test]
    fn with_plenty_of_targets_it_is_learnt_what_carries_states() {
        let config =
            |nodes| RunConfig::for_data("halves", &Dataset::new(halves(nodes)).unwrap(), &[]);
        let (few, plenty) = (config(3000), config(4000));
        assert_eq!((few.model.layers, few.model.state_weights), (1, StateWeights::Frozen));
        assert_eq!((plenty.model.layers, plenty.model.state_weights), (2, StateWeights::Random));
        assert!(plenty.training.l2 == 0.0 && few.training.l2 > 0.0);
    }

    #[test]
    fn training_targets_tell_whether_neighbours_are_alike() {
        let config = |alike: bool, unit: f32| {
            let dataset = cliques_with(alike, embedding(16, unit));
            RunConfig::for_data("cliques", &dataset, &[])
        };
        let (alike, different) = (config(true, 0.1), config(false, 0.1));
        assert_eq!(alike.model.state_weights, StateWeights::Frozen);
        assert_eq!((alike.features.standardize, alike.model.reads.features), (false, true));
        // 0.7 over 13 training nodes.
        assert!((alike.training.l2 - 0.054).abs() < 1e-12, "{}", alike.training.l2);
        assert_eq!(different.model.state_weights, StateWeights::Random);
        assert_eq!((different.features.standardize, different.model.reads.features), (true, true));
        assert!(config(true, 1e4).features.standardize, "their unit is far from 1");
    }

    #[test]
    fn a_readout_that_does_not_read_features_is_not_told_to() {
        let wish = [Setting::new("test", "model.readout", "mine")];
        let dataset = datasets().remove(0);
        assert!(!RunConfig::for_data("stars", &dataset, &wish).model.reads.features);
        assert!(RunConfig::for_data("stars", &dataset, &[]).model.reads.features);
    }

    #[test]
    fn descent_ascent_takes_plain_steps_unless_it_is_to_be_as_in_the_paper() {
        let config = |dataset: usize, wishes: &[(&str, &str)]| {
            let kind = Setting::new("test", "training.solver.kind", "bdmm");
            let wish = |(path, value): &(&str, &str)| {
                Setting::parse("test", &format!("{path}={value}")).unwrap()
            };
            let settings: Vec<Setting> =
                std::iter::once(kind).chain(wishes.iter().map(wish)).collect();
            let config = RunConfig::for_data("stars", &datasets()[dataset], &settings);
            let SolverConfig::Bdmm(solver) = config.training.solver else { panic!("asked for") };
            (solver.state_rule, config.model.constraint, config.training.weighing.loss_weight)
        };
        let plain = (PrimalRule::Sgd, ConstraintFunction::Linear, 0.1);
        assert_eq!((config(0, &[]), config(2, &[])), (plain, plain));
        let paper = |weight| (PrimalRule::Adam, ConstraintFunction::Squared, weight);
        let squared = ("model.constraint.g", "squared");
        assert_eq!((config(0, &[squared]), config(2, &[squared])), (paper(0.01), paper(0.001)));
        let [adam, sgd] = ["adam", "sgd"].map(|rule| ("training.solver.dual-rule", rule));
        let rate = ("training.solver.state-lr", "0.02");
        assert_eq!([config(0, &[adam]), config(0, &[rate])], [paper(0.01); 2]);
        assert_eq!(config(0, &[rate, sgd]), plain);
        assert_eq!(
            config(0, &[("training.lipschitz", "none")]),
            paper(0.01),
            "nothing bounds them"
        );
        assert_eq!(config(5, &[]), paper(0.01), "where neighbours are alike, it takes many steps");
        let rates = |(steps, bound)| {
            let solver = plain_steps(Bdmm::default(), steps, bound);
            (solver.state_lr, solver.multiplier_lr)
        };
        let expected = [(0.3, 0.3), (0.3, 0.1), (0.075, 0.075)];
        assert_eq!([(3, 0.9), (10, 0.9), (3, 3.0)].map(rates), expected);
    }

    #[test]
    fn width_follows_what_there_is_to_learn_from() {
        let state_dim = |dataset: &Dataset, settings: &[Setting]| {
            RunConfig::for_data("stars", dataset, settings).model.state_dim
        };
        let one_layer = [Setting::new("test", "model.layers", 1)];
        let [few, many] = [datasets().remove(2), datasets().remove(4)];
        assert_eq!((state_dim(&few, &one_layer), state_dim(&many, &one_layer)), (16, 64));
        assert_eq!(state_dim(&many, &[]), 16, "a stack has room");
        let nodes = |count: usize| Dataset::new(stars(1, count, 3)).unwrap();
        assert_eq!((state_dim(&nodes(600), &[]), state_dim(&nodes(700), &[])), (10, 32));
    }

    /// One of every kind that the defaults tell apart.
    fn datasets() -> Vec<Dataset> {
        let graphs = |count: usize, mut parts: DatasetParts| {
            (parts.node_targets, parts.graph_targets) = (None, Some(classes(count)));
            parts
        };
        let mut citation = stars(1, 100, 3);
        citation.node_features = words(100);
        let rest = (5..100).collect();
        citation.split =
            Some(Split { level: Level::Node, train: (0..5).collect(), val: vec![], test: rest });
        let mut dense = stars(1, 100, 3);
        dense.node_features = embedding(100, 0.1);
        dense.split = citation.split.clone();
        let mut both = stars(1, 30, 3);
        let colours = Categories::from_integers("colour", &[1; 30]);
        let values = Matrix::zeros(30, 1);
        both.node_features = both.node_features.with_categories(colours).unwrap();
        both.node_features = both.node_features.with_values(vec!["size".into()], values).unwrap();
        let all = [
            stars(1, 30, 3),
            stars(1, 700, 20),
            graphs(20, stars(20, 30, 3)),
            graphs(20, stars(20, 30, 20)),
            graphs(101, stars(101, 200, 3)),
            citation,
            both,
            dense,
            halves(4000),
        ];
        let checked = |parts| Dataset::new(parts).unwrap().with_chosen_features();
        all.into_iter().map(checked).collect()
    }

    #[test]
    fn a_default_that_depends_on_the_data_says_so_beside_its_field() {
        let schema = Schema::of_runs();
        let (mut changed, mut described) = (BTreeSet::new(), BTreeSet::new());
        for dataset in datasets() {
            for solver in
                ["one-shot", "bdmm", "implicit", "unrolled", "sse", "augmented-lagrangian"]
            {
                let wish = [Setting::new("test", "training.solver.kind", solver)];
                let config = RunConfig::for_data("clique", &dataset, &wish);
                for (info, value) in schema.values(&config) {
                    let differs = info.path != "training.solver.kind"
                        && info.default.as_ref() != Some(&value);
                    assert!(
                        !differs || info.depends_on.is_some(),
                        "{} is {value}, which its declaration does not tell",
                        info.path
                    );
                    changed.extend(differs.then_some(info.path.as_str()));
                    described.extend(info.depends_on.is_some().then_some(info.path.as_str()));
                }
            }
        }
        assert_eq!(changed, described, "settings that do not depend on the data");
    }

    #[test]
    fn it_does_not_matter_where_a_split_comes_from() {
        let citation = datasets().remove(5);
        let own = RunConfig::for_data("citation", &citation, &[]);
        assert_eq!(own.model.state_weights, StateWeights::Frozen, "few nodes have a target");
        // Passed to training, in place of another one or of none.
        let passed = citation.split().cloned();
        let bare = citation.clone().with_split(None).unwrap();
        let plain = RunConfig::for_data("citation", &bare, &[]);
        assert_ne!(plain.model, own.model);
        let given = bare.clone().with_split(passed).unwrap();
        assert_eq!(RunConfig::for_data("citation", &given, &[]), own);
        // Drawn: as large a share as the own split has, or most of the nodes.
        let drawn = |shares: [f64; 3]| {
            let paths = ["split.train", "split.val", "split.test"].into_iter().zip(shares);
            let mut settings = vec![Setting::new("test", "split.source", "ratio")];
            settings.extend(paths.map(|(path, share)| Setting::new("test", path, share)));
            RunConfig::for_data("citation", &citation, &settings)
        };
        assert_eq!(drawn([0.05, 0.05, 0.9]), own);
        assert_eq!(drawn([0.8, 0.1, 0.1]), plain);
    }

    #[test]
    fn what_settings_ask_for_decides_on_other_defaults() {
        let dataset = datasets().remove(0);
        let epochs = |settings: &[Setting]| {
            let training = RunConfig::for_data("stars", &dataset, settings).training;
            (training.epochs, training.eval_every)
        };
        assert_eq!(epochs(&[]), (600, 10));
        assert_eq!(epochs(&[Setting::new("test", "training.epochs", 60)]), (60, 3));
    }

    /// One hub and its leaves, with edges that all go one way.
    fn star(edge: impl Fn(u32) -> (u32, u32)) -> Dataset {
        let leaves = 40;
        let mut edges: Vec<(u32, u32)> = (1..=leaves).map(edge).collect();
        edges.sort_unstable();
        Dataset::new(DatasetParts {
            name: "star".into(),
            node_starts: vec![0, leaves as usize + 1],
            edge_features: FeatureColumns::none(edges.len()),
            edges,
            node_features: FeatureColumns::none(leaves as usize + 1),
            node_targets: None,
            graph_targets: None,
            split: None,
        })
        .unwrap()
    }

    #[test]
    fn a_hub_is_one_whichever_way_its_edges_go() {
        assert_eq!(largest_degree(&star(|leaf| (leaf, 0))), 40);
        assert_eq!(largest_degree(&star(|leaf| (0, leaf))), 40);
        let config = RunConfig::for_data("star", &star(|leaf| (0, leaf)), &[]);
        assert_ne!(config.model.transition, "gnn-sum");
    }

    #[test]
    fn both_directions_of_an_edge_are_one_neighbour() {
        let both = |leaf: u32| if leaf.is_multiple_of(2) { (0, leaf - 1) } else { (leaf, 0) };
        assert_eq!(largest_degree(&star(both)), 20);
    }
}
