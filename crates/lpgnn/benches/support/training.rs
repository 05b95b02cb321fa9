//! Training by the defaults for some data, and predictions of the model that comes out.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use lpgnn::activation::Activation;
use lpgnn::data::{
    Categories, Dataset, DatasetParts, FeatureColumns, Level, ReadOptions, Split, TargetColumn,
    read,
};
use lpgnn::inference::Inference;
use lpgnn::lagrangian::{ReadFrom, ReadLayers, Reads};
use lpgnn::run::{RunConfig, SavedModel, Setting, Setup};
use lpgnn::train::{EpochReport, ModelConfig, Trainer, TrainerState, TrainingConfig, TrainingData};
use lpgnn::{Scratch, uniform};

use super::clock::shortest;
use super::workload::Workload;

/// Data, and how a model of them is trained.
pub(crate) struct Training {
    dataset: Dataset,
    settings: Vec<Setting>,
}

impl Training {
    /// By the defaults for a data set, but for these settings.
    pub(crate) fn read(path: &Path, settings: &[String]) -> Self {
        let dataset = read(path, &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        Self::new(dataset, settings)
    }

    /// The same for 19,500 small graphs of nodes in so many categories, nearly all of which occur.
    pub(crate) fn generated(categories: u32, settings: &[String]) -> Self {
        Self::new(wide(19_500, categories), settings)
    }

    fn new(dataset: Dataset, settings: &[String]) -> Self {
        let settings = settings.iter().map(|text| Setting::parse("--set", text).unwrap());
        Self { dataset, settings: settings.collect() }
    }

    pub(crate) fn graphs(&self) -> usize {
        self.dataset.graphs()
    }

    fn config(&self) -> RunConfig {
        RunConfig::for_data("data", &self.dataset, &self.settings).with(&self.settings).unwrap()
    }

    /// Milliseconds of each of `count` epochs, sorted, with an evaluation in each or in none. One more
    /// comes before them.
    pub(crate) fn epochs(&self, count: usize, evaluated: bool) -> Vec<f64> {
        let mut config = self.config();
        // The last epoch of a plan is always evaluated in full: it is not reached.
        (config.training.epochs, config.training.eval_every) =
            (count + 2, if evaluated { 1 } else { count + 2 });
        let setup = Setup::new(&config, &self.dataset).unwrap();
        let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
        let (mut last, mut times) = (None, vec![]);
        let mut observer = |report: &EpochReport, _: &TrainerState| {
            let now = Instant::now();
            times.extend(last.replace(now).map(|last| 1e3 * (now - last).as_secs_f64()));
            if report.epoch > count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        trainer.run(&mut observer).unwrap();
        times.sort_by(f64::total_cmp);
        times
    }

    /// A model after a few epochs.
    pub(crate) fn model(&self) -> SavedModel {
        let mut config = self.config();
        config.training.epochs = 5;
        let setup = Setup::new(&config, &self.dataset).unwrap();
        let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
        let trained = trainer.run(&mut ()).unwrap();
        SavedModel::new(&setup, &config, self.dataset.name(), trained.epoch, trained.weights)
    }

    /// Graphs per second where all are predicted together.
    pub(crate) fn predictions_per_second(&self, model: &SavedModel, seconds: f64) -> f64 {
        let all = shortest(seconds, || {
            drop(model.predict_without_states(&self.dataset, false, &mut |_| ()).unwrap());
        });
        self.graphs() as f64 / all
    }

    /// Milliseconds of `count` predictions of one graph each, sorted.
    pub(crate) fn latencies(&self, model: &SavedModel, count: usize) -> Vec<f64> {
        let graphs: Vec<Dataset> =
            (0..self.graphs().min(100)).map(|graph| one(&self.dataset, graph)).collect();
        let predict = |graph: &Dataset| {
            drop(model.predict_without_states(graph, false, &mut |_| ()).unwrap());
        };
        graphs.iter().for_each(predict);
        let mut times: Vec<f64> = (0..count)
            .map(|i| {
                let begin = Instant::now();
                predict(&graphs[i % graphs.len()]);
                1e3 * begin.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times
    }
}

/// `count` evaluations of a stack of four layers that has just been initialised, or predictions by it.
pub(crate) fn evaluate_often(workload: &Workload, predictions: bool, count: usize) {
    let config = ModelConfig {
        layers: 4,
        activation: Activation::Relu,
        reads: Reads { from: ReadFrom::Transition, layers: ReadLayers::All, features: false },
        ..ModelConfig::default()
    };
    let model = config.build::<f32>(workload.dims()).unwrap();
    let (graphs, level) = (workload.batch.graphs(), workload.level);
    let (train, test) = ((0..graphs - 2).collect(), (graphs - 2..graphs).collect());
    let split = Split { level: Level::Graph, train, val: vec![], test };
    let data = TrainingData::new(&workload.batch, &split, level).unwrap();
    let plan = TrainingConfig::default().check().unwrap();
    let trainer = Trainer::new(plan, &model, &data).unwrap();
    let (weights, scratch) = (&trainer.state().variables.weights, Scratch::new());
    for _ in 0..count {
        if predictions {
            let states = Inference::default().states(&model, weights, &workload.batch, &scratch);
            states.outputs(&model, weights, &workload.batch, &scratch);
        } else {
            trainer.evaluate();
        }
    }
}

/// Rings of 5 to 14 nodes; a node's category is drawn, a graph's class is that of its size.
fn wide(graphs: usize, categories: u32) -> Dataset {
    let mut draw = uniform(5);
    let (mut node_starts, mut edges, mut codes) = (vec![0], vec![], vec![]);
    for _ in 0..graphs {
        let (start, size) = (codes.len() as u32, 5 + (10.0 * draw()) as u32);
        codes.extend((0..size).map(|_| (f64::from(categories) * draw()) as i64));
        for i in 0..size {
            let (u, v) = (start + i, start + (i + 1) % size);
            edges.extend([(u, v), (v, u)]);
        }
        node_starts.push(codes.len());
    }
    let classes: Vec<i64> =
        node_starts.windows(2).map(|ends| i64::from(ends[1] - ends[0] > 9)).collect();
    let features = FeatureColumns::none(codes.len());
    let categories = Categories::from_integers("category", &codes);
    Dataset::new(DatasetParts {
        name: "wide".into(),
        node_starts,
        edge_features: FeatureColumns::none(edges.len()),
        edges,
        node_features: features.with_categories(categories).unwrap(),
        node_targets: None,
        graph_targets: Some(TargetColumn::Classes(Categories::from_integers("class", &classes))),
        split: None,
    })
    .unwrap()
}

/// One graph of a data set, without its targets.
fn one(dataset: &Dataset, graph: usize) -> Dataset {
    let nodes = dataset.node_starts()[graph]..dataset.node_starts()[graph + 1];
    let all = dataset.edges();
    let edges: Vec<usize> =
        (0..all.len()).filter(|&edge| nodes.contains(&(all[edge].0 as usize))).collect();
    let shift = nodes.start as u32;
    Dataset::new(DatasetParts {
        name: "one".into(),
        node_starts: vec![0, nodes.len()],
        edges: edges.iter().map(|&edge| (all[edge].0 - shift, all[edge].1 - shift)).collect(),
        edge_features: dataset.edge_features().select(&edges),
        node_features: dataset.node_features().select(&nodes.collect::<Vec<_>>()),
        node_targets: None,
        graph_targets: None,
        split: None,
    })
    .unwrap()
}
