use std::path::Path;
use std::sync::Arc;

use super::bundle::Bundle;
use super::{Setup, SplitConfig, fingerprint};
use crate::data::{Dataset, Encoding, Split, TargetColumn};
use crate::graph::{Communicator, GraphBatch, Level};
use crate::inference::{
    Certificate, Explanation, FixedPoint, Inference, InferenceProgress, Question, Score, explain,
};
use crate::lagrangian::Model;
use crate::readout::largest;
use crate::registry::Registry;
use crate::train::{ModelConfig, ModelDims, TrainingConfig};
use crate::transition::Transition;
use crate::{Error, Matrix, Place, Scratch, memory};

/// A trained model with all that is needed to use it.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedModel {
    /// The version of this library that trained it.
    pub version: String,
    /// Whose targets it predicts.
    pub task: Level,
    /// How many classes or values it predicts.
    pub outputs: usize,
    /// Names of the values, if it does not predict classes.
    pub value_names: Vec<String>,
    /// Its functions.
    pub model: ModelConfig,
    /// How it was trained, and how states of new graphs are found.
    pub training: TrainingConfig,
    /// How data are encoded as features.
    pub encoding: Encoding,
    /// The training data.
    pub data: DataOrigin,
    /// How the training data were split.
    pub split: SplitConfig,
    /// The split itself: which nodes or graphs were trained on. None in files that do not tell.
    pub members: Option<Split>,
    /// The epoch of its weights.
    pub epoch: usize,
    /// The weights of all functions.
    pub weights: Vec<f32>,
    /// What else is to be kept with the model, such as the history of its training; null if nothing is.
    pub notes: serde_json::Value,
    functions: Functions,
    max_iter: Option<usize>,
}

/// The number of iterations per layer that a model's own settings can ask for in prediction: a
/// model from elsewhere does not decide how long this machine computes.
pub const MOST_ITERATIONS: usize = 100_000;

/// The functions that `model` names, built once.
#[derive(Clone, Debug)]
struct Functions(Arc<Model<f32>>);

/// They follow from the other fields.
impl PartialEq for Functions {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The data a model was trained on.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DataOrigin {
    /// The name of the data.
    pub name: String,
    /// Their [`fingerprint`](super::fingerprint).
    pub fingerprint: String,
    /// The [fingerprint](Split::fingerprint) of their split; empty where that is not known.
    #[serde(default)]
    pub split: String,
}

/// The predictions of a model.
#[derive(Debug)]
pub struct Predictions {
    /// The graphs in numbers, with their targets if they were asked for.
    pub batch: GraphBatch<f32>,
    /// The states that were found, if they were asked for, and how well they meet `x = f_a(x)`.
    pub fixed_point: FixedPoint<f32>,
    /// A row for every node or graph: logits of the classes, or values.
    pub outputs: Matrix<f32>,
}

impl Predictions {
    /// Whether all outputs of a node or graph are finite; if not, it has no prediction.
    pub fn is_finite(&self, row: usize) -> bool {
        self.outputs.row(row).iter().all(|x| x.is_finite())
    }

    /// That there is a prediction for every node or graph.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], which says how many outputs are not finite.
    pub fn check_finite(&self) -> Result<(), Error> {
        let rows = self.outputs.rows();
        match (0..rows).filter(|&row| !self.is_finite(row)).count() {
            0 => Ok(()),
            count => Err(Error::Mismatch(format!(
                "{count} of {rows} outputs are infinite or not a number: they are not predictions"
            ))),
        }
    }

    /// States from which nothing finite follows have not converged, whatever their residual.
    fn without_false_convergence(mut self, task: Level) -> Self {
        for graph in 0..self.batch.graphs() {
            let rows = match task {
                Level::Node => self.batch.nodes_of(graph),
                Level::Graph => graph..graph + 1,
            };
            let finite = rows.into_iter().all(|row| self.is_finite(row));
            let share = self.batch.across();
            let finite = share.map_or(finite, |share| !share.communicator().any(!finite));
            self.fixed_point.converged[graph] &= finite;
        }
        self
    }
}

/// The description beside the weights.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    format: u32,
    kind: String,
    version: String,
    task: Level,
    outputs: usize,
    value_names: Vec<String>,
    model: ModelConfig,
    training: TrainingConfig,
    encoding: Encoding,
    data: DataOrigin,
    #[serde(default)]
    split: SplitConfig,
    /// What is split, if the split is there: as arrays of indices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<Level>,
    epoch: usize,
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    notes: serde_json::Value,
}

/// Changes when an older program could not read the file any more.
const FORMAT: u32 = 1;

/// The arrays of the split.
const TRAIN: &str = "split.train";
const VAL: &str = "split.val";
const TEST: &str = "split.test";

/// No width of anything is larger: so no product of sizes overflows.
const LARGEST_WIDTH: usize = 1 << 26;
const MOST_LAYERS: usize = 1 << 10;

impl SavedModel {
    /// The model that training by a setup has led to.
    pub fn new(
        setup: &Setup,
        config: &super::RunConfig,
        name: &str,
        epoch: usize,
        mut weights: Vec<f32>,
    ) -> Self {
        if let Some(scale) = &setup.target_scale {
            let readout = setup.model.readout().parameters();
            scale.undo(readout, &mut weights[setup.model.readout_weights()]);
        }
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            task: setup.task,
            outputs: setup.data.outputs(),
            value_names: setup.value_names.clone(),
            model: config.model.clone(),
            training: config.training.clone(),
            encoding: setup.encoding.clone(),
            data: DataOrigin {
                name: name.into(),
                fingerprint: setup.fingerprint.clone(),
                split: setup.split_fingerprint.clone(),
            },
            split: config.split,
            // Of a graph in parts, this process knows the split of its own nodes only.
            members: setup.data.training_graphs().across().is_none().then(|| setup.split.clone()),
            epoch,
            weights,
            notes: serde_json::Value::Null,
            functions: Functions(setup.model.clone()),
            max_iter: None,
        }
    }

    /// The same, trained by another split than that of its setup: one that has a test split too.
    #[must_use]
    pub fn with_split(mut self, split: Split) -> Self {
        self.data.split = split.fingerprint();
        self.members = Some(split);
        self
    }

    /// The split of these data that it was trained by; none where that is not known: because it was
    /// trained on other data, or its file does not tell.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when its file tells of members that the data do not have.
    pub fn split_of(&self, dataset: &Dataset) -> Result<Option<&Split>, Error> {
        let Some(split) = &self.members else { return Ok(None) };
        if fingerprint(dataset) != self.data.fingerprint {
            return Ok(None);
        }
        split.check(dataset.nodes(), dataset.graphs())?;
        Ok(Some(split))
    }

    /// Names of the classes, if it predicts classes.
    pub fn classes(&self) -> Option<&[String]> {
        match self.task {
            Level::Node => self.encoding.node_classes(),
            Level::Graph => self.encoding.graph_classes(),
        }
    }

    /// Its functions.
    pub fn functions(&self) -> &Model<f32> {
        &self.functions.0
    }

    /// Predicts nodes or graphs. With `targets`, the batch has those of `dataset`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], [`Error::UnknownCategory`] when the data do not fit the model.
    pub fn predict(&self, dataset: &Dataset, targets: bool) -> Result<Predictions, Error> {
        self.predict_observed(dataset, targets, &mut |_| ())
    }

    /// The same; `tell` is called on the way, on this thread.
    ///
    /// # Errors
    ///
    /// Those of [`predict`](Self::predict).
    pub fn predict_observed(
        &self,
        dataset: &Dataset,
        targets: bool,
        tell: &mut dyn FnMut(InferenceProgress),
    ) -> Result<Predictions, Error> {
        self.predict_shared(dataset, targets, None, tell)
    }

    /// The same by all ranks together, if there are several; all have all predictions.
    ///
    /// # Errors
    ///
    /// Those of [`predict`](Self::predict).
    pub fn predict_shared(
        &self,
        dataset: &Dataset,
        targets: bool,
        communicator: Option<&Arc<dyn Communicator>>,
        tell: &mut dyn FnMut(InferenceProgress),
    ) -> Result<Predictions, Error> {
        let batch = self.batch(dataset, targets)?;
        let batch = match communicator {
            None => batch,
            Some(communicator) => batch.shared_by(communicator),
        };
        self.functions().check(&batch)?;
        let scratch = Scratch::new();
        let fixed_point = self.states(&batch, &scratch, tell)?;
        let outputs = fixed_point.outputs(self.functions(), &self.weights, &batch, &scratch);
        Ok(Predictions { batch, fixed_point, outputs }.without_false_convergence(self.task))
    }

    /// The same in one process and without the states, so that of many small graphs only a few at a time are in memory.
    ///
    /// # Errors
    ///
    /// Those of [`predict`](Self::predict).
    pub fn predict_without_states(
        &self,
        dataset: &Dataset,
        targets: bool,
        tell: &mut dyn FnMut(InferenceProgress),
    ) -> Result<Predictions, Error> {
        let (batch, scratch) = (self.batch(dataset, targets)?, Scratch::new());
        let inference = self.inference(&batch)?;
        let (fixed_point, outputs) =
            inference.outputs(self.functions(), &self.weights, &batch, &scratch, tell);
        Ok(Predictions { batch, fixed_point, outputs }.without_false_convergence(self.task))
    }

    /// How far the states of every graph are from their fixed point at most, by their residuals: see [`Certificate`].
    /// Infinite where nothing is known.
    ///
    /// # Errors
    ///
    /// Those of [`Certificate::new`].
    pub fn distances(&self, predictions: &Predictions) -> Result<Vec<f64>, Error> {
        let (batch, residuals) = (&predictions.batch, &predictions.fixed_point.residuals);
        if batch.across().is_some() {
            return Ok(vec![f64::INFINITY; residuals.len()]);
        }
        let certificate = Certificate::new(self.functions(), &self.weights, batch)?;
        let none = || vec![f64::INFINITY; residuals.len()];
        Ok(certificate.map_or_else(none, |known| known.distances(batch, residuals)))
    }

    /// Data that it can read, in numbers.
    fn batch(&self, dataset: &Dataset, targets: bool) -> Result<GraphBatch, Error> {
        let batch = if targets {
            self.check_target_names(dataset)?;
            self.encoding.batch(dataset)?
        } else {
            self.encoding.batch_without_targets(dataset)?
        };
        self.functions().check(&batch)?;
        Ok(batch)
    }

    /// That real targets are in the order of its outputs, where their names say so.
    fn check_target_names(&self, dataset: &Dataset) -> Result<(), Error> {
        let Some(TargetColumn::Values { names, .. }) = self.task.targets(dataset) else {
            return Ok(());
        };
        let misplaced =
            |(name, own): (&String, &String)| name != own && self.value_names.contains(name);
        if names.iter().zip(&self.value_names).any(misplaced) {
            return Err(Error::Mismatch(format!(
                "the targets are {}, but the model predicts {}, in this order",
                names.join(", "),
                self.value_names.join(", ")
            )));
        }
        Ok(())
    }

    /// The states of graphs that it can read.
    fn states(
        &self,
        batch: &GraphBatch,
        scratch: &Scratch,
        tell: &mut dyn FnMut(InferenceProgress),
    ) -> Result<FixedPoint, Error> {
        let inference = self.inference(batch)?;
        Ok(inference.states_observed(self.functions(), &self.weights, batch, scratch, tell))
    }

    /// How the states of these graphs are found, with a limit to the iterations.
    fn inference(&self, batch: &GraphBatch) -> Result<Inference, Error> {
        let inference = match self.max_iter {
            Some(max_iter) => self.training.inference.with_max_iter(max_iter),
            None => self.training.inference.at_most(MOST_ITERATIONS),
        };
        let fits = self.check_memory(&inference, batch.nodes());
        match batch.across() {
            None => fits?,
            Some(share) => share.agree(fits)?,
        }
        Ok(inference)
    }

    /// Explains what it predicts of a node or graph: the class it predicts, or output `output`; with the graph that the item
    /// is or belongs to, in which the explanation numbers nodes.
    ///
    /// # Errors
    ///
    /// As [`predict`](Self::predict) and [`explain`].
    pub fn explain(
        &self,
        dataset: &Dataset,
        item: usize,
        output: Option<usize>,
        edges: usize,
    ) -> Result<(usize, Explanation), Error> {
        let model = self.functions();
        let batch = self.encoding.batch_without_targets(dataset)?;
        model.check(&batch)?;
        let items = self.task.rows(&batch);
        if item >= items {
            return Err(Error::Mismatch(format!(
                "{} {item} does not exist: there are {items} {}, counted from 0",
                self.task.as_str(),
                self.task.plural()
            )));
        }
        let (graph, item) = match self.task {
            Level::Graph => (item, 0),
            Level::Node => {
                let graph = batch.node_starts().partition_point(|&start| start <= item) - 1;
                (graph, item - batch.node_starts()[graph])
            }
        };
        let batch = batch.select(&[graph]);
        let scratch = Scratch::new();
        let found = self.states(&batch, &scratch, &mut |_| ())?;
        if found.failures() > 0 {
            return Err(Error::Mismatch(format!(
                "the states of graph {graph} have not converged (|x - f_a| is {:.1e} at most), so there is no fixed \
                 point from which to explain a prediction",
                found.largest_residual()
            )));
        }
        let outputs = found.outputs(model, &self.weights, &batch, &scratch);
        let score = match self.classes() {
            Some(_) => Score::Class(output.unwrap_or_else(|| largest(outputs.row(item)))),
            None => Score::Value(output.unwrap_or(0)),
        };
        let question = Question { item, score, edges };
        Ok((graph, explain(model, &self.weights, &batch, &found, question, &scratch)?))
    }

    /// The same model, but states of new graphs are found in at most `max_iter` iterations per layer,
    /// whatever its settings say. Without this, it is what its settings say and at most
    /// [`MOST_ITERATIONS`].
    #[must_use]
    pub fn with_max_iter(self, max_iter: usize) -> Self {
        Self { max_iter: Some(max_iter), ..self }
    }

    fn check_memory(&self, inference: &Inference, nodes: usize) -> Result<(), Error> {
        let state_dim = self.functions().transitions().map(Transition::state_dim).sum();
        let copies = inference.copies();
        let what = format_args!("finding states of {state_dim} components for {nodes} nodes");
        memory::require(memory::bytes_of::<f32>(&[nodes, state_dim, copies]), what)
    }

    /// # Errors
    ///
    /// [`Error::Io`]
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        self.bundle().write(path)
    }

    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when the file is not a model, or is damaged.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::read_with(&Registry::default(), path)
    }

    /// The same with custom functions.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    pub fn read_with(registry: &Registry<f32>, path: &Path) -> Result<Self, Error> {
        let bundle = Bundle::read(path)?;
        Self::of_bundle(bundle, registry).map_err(|problem| Place::file(path).error(problem))
    }

    /// The file as bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it cannot be written in this format.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        self.bundle().to_bytes().map_err(Error::Mismatch)
    }

    /// The model of such bytes. Whatever they are, they lead to a model that can be used or to an
    /// error.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when they are not a model.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Self::from_bytes_with(&Registry::default(), bytes)
    }

    /// The same with custom functions.
    ///
    /// # Errors
    ///
    /// Those of [`from_bytes`](Self::from_bytes).
    pub fn from_bytes_with(registry: &Registry<f32>, bytes: &[u8]) -> Result<Self, Error> {
        Bundle::from_bytes(bytes)
            .and_then(|bundle| Self::of_bundle(bundle, registry))
            .map_err(|problem| Error::Mismatch(format!("the model {problem}")))
    }

    fn bundle(&self) -> Bundle {
        let about = About {
            format: FORMAT,
            kind: "model".into(),
            version: self.version.clone(),
            task: self.task,
            outputs: self.outputs,
            value_names: self.value_names.clone(),
            model: self.model.clone(),
            training: self.training.clone(),
            encoding: self.encoding.clone(),
            data: self.data.clone(),
            split: self.split,
            members: self.members.as_ref().map(|split| split.level),
            epoch: self.epoch,
            notes: self.notes.clone(),
        };
        let about = serde_json::to_value(about).unwrap_or_default();
        let mut bundle = Bundle::new(about);
        for (parameter, range) in self.functions().parameters().iter() {
            bundle.insert(parameter.name(), parameter.shape(), &self.weights[range]);
        }
        if let Some(Split { train, val, test, .. }) = &self.members {
            for (name, members) in [TRAIN, VAL, TEST].into_iter().zip([train, val, test]) {
                bundle.insert_indices(name, members);
            }
        }
        bundle
    }

    fn of_bundle(mut bundle: Bundle, registry: &Registry<f32>) -> Result<Self, String> {
        let about = bundle.about.take();
        match (about["kind"].as_str(), about["format"].as_u64()) {
            (Some("model"), Some(format)) if format == u64::from(FORMAT) => {}
            (Some("model"), format) => {
                return Err(format!(
                    "is a model in format {}, but this program reads format {FORMAT}",
                    format.map_or_else(|| "unknown".into(), |format| format.to_string())
                ));
            }
            (kind, _) => return Err(format!("is a {}, not a model", kind.unwrap_or("file"))),
        }
        let about: About = serde_json::from_value(about)
            .map_err(|error| format!("has a broken description: {error}"))?;
        about.check_sizes()?;
        let text = |error: Error| format!("cannot be used: {error}");
        about.training.clone().check().map_err(text)?;
        let functions = about.model.build_with(registry, about.dims()).map_err(text)?;
        // It grows by what the file has, not by what its description asks for.
        let mut weights = vec![];
        for (parameter, _) in functions.parameters().iter() {
            weights.extend(bundle.take(parameter.name(), &parameter.shape())?);
        }
        let members = match about.members {
            None => None,
            Some(level) => {
                let mut take = |name| bundle.take_indices(name);
                let (train, val, test) = (take(TRAIN)?, take(VAL)?, take(TEST)?);
                Some(Split { level, train, val, test })
            }
        };
        let surplus: Vec<&str> = bundle.names().collect();
        if !surplus.is_empty() {
            return Err(format!(
                "has arrays that do not belong to any of its functions: {}",
                surplus.join(", ")
            ));
        }
        if !weights.iter().all(|weight| weight.is_finite()) {
            return Err("has weights that are not finite".into());
        }
        Ok(Self {
            version: about.version,
            task: about.task,
            outputs: about.outputs,
            value_names: about.value_names,
            model: about.model,
            training: about.training,
            encoding: about.encoding,
            data: about.data,
            split: about.split,
            members,
            epoch: about.epoch,
            weights,
            notes: about.notes,
            functions: Functions(Arc::new(functions)),
            max_iter: None,
        })
    }
}

impl About {
    fn dims(&self) -> ModelDims {
        ModelDims {
            features: self.encoding.node_width(),
            edge_features: self.encoding.edge_width(),
            outputs: self.outputs,
            level: self.task,
        }
    }

    /// That no size is so large that a computation with it would fail.
    fn check_sizes(&self) -> Result<(), String> {
        self.encoding.check(LARGEST_WIDTH).map_err(|error| format!("cannot be used: {error}"))?;
        let config = &self.model;
        let units = config.hidden_dims.iter().chain(&config.readout_hidden_dims);
        if units.chain([&config.state_dim, &self.outputs]).any(|&width| width > LARGEST_WIDTH)
            || config.layers > MOST_LAYERS
            || config.hidden_dims.len() + config.readout_hidden_dims.len() > MOST_LAYERS
        {
            return Err("cannot be used: its functions are too large".into());
        }
        let classes = match self.task {
            Level::Node => self.encoding.node_classes(),
            Level::Graph => self.encoding.graph_classes(),
        };
        let outputs = classes.map_or(self.value_names.len(), <[String]>::len);
        let mut names: Vec<&String> = classes.unwrap_or(&self.value_names).iter().collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("names “{}” twice among what it predicts", pair[0]));
        }
        if outputs == self.outputs {
            Ok(())
        } else {
            Err(format!("names {outputs} classes or values, but predicts {}", self.outputs))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::CliqueConfig;
    use crate::numeric::uniform;
    use crate::run::RunConfig;

    fn bundle() -> (Dataset, RunConfig, Bundle) {
        let dataset = CliqueConfig { graphs: 2, ..CliqueConfig::default() }.generate(1).unwrap();
        let config = RunConfig::for_data("clique", &dataset, &[]);
        let setup = Setup::new(&config, &dataset).unwrap();
        let weights = vec![0.5; setup.model.weights()];
        let bundle = SavedModel::new(&setup, &config, "clique", 1, weights).bundle();
        (dataset, config, bundle)
    }

    #[test]
    fn an_array_too_many_or_too_few_is_named() {
        let read = |bundle: &Bundle| {
            let model = SavedModel::from_bytes(&bundle.to_bytes().unwrap());
            model.map(drop).map_err(|error| error.to_string())
        };
        let (_, _, bundle) = bundle();
        assert_eq!(read(&bundle), Ok(()));
        let mut more = bundle.clone();
        more.insert("transition.1.0.bias", vec![1], &[1.0]);
        assert_eq!(
            read(&more).unwrap_err(),
            "the model has arrays that do not belong to any of its functions: transition.1.0.bias"
        );
        let mut fewer = bundle;
        fewer.take("readout.0.bias", &[20]).unwrap();
        assert_eq!(read(&fewer).unwrap_err(), "the model has no array readout.0.bias");
    }

    /// A checksum keeps accidents away; this is about files that were made to harm.
    #[test]
    fn a_strange_description_with_the_right_checksum_never_panics() {
        let (dataset, config, bundle) = bundle();
        let about = bundle.about.to_string().into_bytes();
        let mut draw = uniform(7);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place")]
        let mut below = |count: usize| (draw() * count as f64) as usize;
        let mut read = 0;
        for variant in 0..5000 {
            let mut strange = about.clone();
            let digits: Vec<usize> =
                (0..strange.len()).filter(|&at| strange[at].is_ascii_digit()).collect();
            for _ in 0..=variant % 3 {
                let at = digits[below(digits.len())];
                match variant % 4 {
                    0 => strange[at] = b'0' + u8::try_from(below(10)).unwrap(),
                    1 => drop(strange.splice(at..at, b"9999999".iter().copied())),
                    2 => drop(strange.splice(at..=at, b"-1".iter().copied())),
                    _ => strange[below(about.len())] = b' ' + u8::try_from(below(90)).unwrap(),
                }
            }
            let Ok(about) = serde_json::from_slice(&strange) else { continue };
            read += 1;
            let mut bundle = bundle.clone();
            bundle.about = about;
            let bytes = bundle.to_bytes().unwrap();
            // Other options of inference may be legal and take for ever.
            if let Ok(model) = SavedModel::from_bytes(&bytes)
                && model.training == config.training
            {
                let _ = model.predict(&dataset, false);
            }
        }
        assert!(read > 1000, "only {read} variants were JSON at all");
    }
}
