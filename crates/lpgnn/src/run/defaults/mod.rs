//! The settings that do well on given data, where nobody says otherwise.

mod alike;
mod data;
mod different;
mod model;
mod solver;

pub(crate) use data::Neighbours;

use alike::PLENTY_OF_TARGETS;
use data::has_many_targets;
use different::ENOUGH_TARGETS;
use model::{model_of, reads_features};
use solver::{asks_for_adam, solver_of, weights_of};

use super::{RunConfig, Setting};
use crate::data::{Dataset, FeatureSource, Level};
use crate::train::TrainingConfig;

/// Nodes above which graphs are trained on in batches.
const MANY_NODES: usize = 20_000;
/// How many of them then.
const BATCH: usize = 128;
/// Epochs or layers that no setting asks for, since there is at least one.
const NOT_ASKED: usize = 0;

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
        let neighbours = match task {
            Level::Node => Neighbours::of(dataset, asked.split),
            Level::Graph => Neighbours::Unknown,
        };
        let many_targets = task == Level::Node && has_many_targets(dataset, asked.split);
        let batches = dataset.nodes() > MANY_NODES && dataset.graphs() > 100;
        let epochs = match (asked.training.epochs, task, neighbours) {
            (NOT_ASKED, _, Neighbours::Alike(PLENTY_OF_TARGETS..)) => 250,
            (NOT_ASKED, _, Neighbours::Alike(_)) => 100,
            (NOT_ASKED, _, Neighbours::Different(ENOUGH_TARGETS..)) => 200,
            (NOT_ASKED, Level::Node, _) => 600,
            (NOT_ASKED, Level::Graph, _) if batches => 100,
            (NOT_ASKED, Level::Graph, _) => 150,
            (epochs, ..) => epochs,
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
        let alike = matches!(neighbours, Neighbours::Alike(_));
        config.hold_free_states(task, &asked, !alike && !asks_for_adam(settings));
        match (task, neighbours) {
            (_, Neighbours::Alike(PLENTY_OF_TARGETS..)) => {
                config.learn_what_carries_states(dataset);
            }
            (_, Neighbours::Alike(targets)) => config.hold_what_carries_states(dataset, targets),
            (_, Neighbours::Different(targets @ ENOUGH_TARGETS..)) => {
                config.learn_what_neighbours_say(dataset, targets);
            }
            (Level::Node, _) if many_targets => config.widen(32, 64, 0.5),
            (Level::Node, _) => {}
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
}

/// The L2 penalty beside a mean over so many targets: as much as this beside their sum.
fn l2_of(targets: usize) -> f64 {
    const L2_OF_ALL: f64 = 0.7;
    round(L2_OF_ALL / targets.max(1) as f64)
}

/// To two digits, as a person would write it.
fn round(x: f64) -> f64 {
    let unit = 10_f64.powf(x.log10().floor() - 1.0);
    ((x / unit).round() * unit * 1e12).round() / 1e12
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Matrix;
    use crate::data::{Categories, DatasetParts, FeatureColumns, Split, TargetColumn};
    use crate::graph::SparseRows;
    use crate::network::StateWeights;
    use crate::run::Schema;

    fn classes(rows: usize) -> TargetColumn {
        let numbers: Vec<i64> = (0..rows).map(|row| i64::from(row % 2 == 0)).collect();
        TargetColumn::Classes(Categories::from_integers("y", &numbers))
    }

    /// Graphs in which the first node has `degree` neighbours.
    pub(super) fn stars(graphs: usize, nodes: usize, degree: usize) -> DatasetParts {
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
    pub(super) fn embedding(rows: usize, unit: f32) -> FeatureColumns {
        let value = |i: usize| unit * ((i * 7 % 11) as f32) * (1.0 + (i % 16) as f32 / 5.0);
        let values = Matrix::from_entries(rows, 16, (0..16 * rows).map(value).collect()).unwrap();
        let names: Vec<String> = (0..16).map(|j| format!("x{j}")).collect();
        FeatureColumns::none(rows).with_values(names, values).unwrap()
    }

    /// A path whose halves have a class each, 0.8 of which are trained on.
    pub(super) fn halves(nodes: u32) -> DatasetParts {
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

    /// One of every kind that the defaults tell apart.
    pub(super) fn datasets() -> Vec<Dataset> {
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
        let mut different = stars(1, 600, 20);
        different.node_features = words(600);
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
            different,
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
}
