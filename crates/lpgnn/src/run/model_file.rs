use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::bundle::Bundle;
use super::tensors::shapes;
use super::{Setup, SplitConfig};
use crate::data::{Dataset, Encoding};
use crate::graph::GraphBatch;
use crate::inference::{FixedPoint, predict};
use crate::lagrangian::Model;
use crate::train::{ModelConfig, TrainingConfig};
use crate::{Error, Matrix, Place, Scratch};

/// A trained model with all that is needed to use it.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedModel {
    /// The version of this library that trained it.
    pub version: String,
    /// Whose targets it predicts.
    pub task: Task,
    /// How many classes or values it predicts.
    pub outputs: usize,
    /// Names of the values, if they are no classes.
    pub value_names: Vec<String>,
    /// Its functions.
    pub model: ModelConfig,
    /// How it was trained, and how states of new graphs are found.
    pub training: TrainingConfig,
    /// How data become numbers.
    pub encoding: Encoding,
    /// What it was trained on.
    pub data: DataOrigin,
    /// How that was divided.
    pub split: SplitConfig,
    /// The epoch its weights are of.
    pub epoch: usize,
    /// The weights of all functions.
    pub weights: Vec<f32>,
    built: Built,
}

/// The functions of a model, once they are built.
#[derive(Clone, Debug, Default)]
struct Built(OnceLock<Arc<(Shape, Model<f32>)>>);

/// All that functions are built from.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    model: ModelConfig,
    task: Task,
    node_width: usize,
    edge_width: usize,
    outputs: usize,
}

/// Two models are the same whether or not they were used.
impl PartialEq for Built {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Whose targets are predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Those of nodes.
    Nodes,
    /// Those of graphs.
    Graphs,
}

/// What a model was trained on.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DataOrigin {
    /// How the data are called.
    pub name: String,
    /// Their [`fingerprint`](super::fingerprint).
    pub fingerprint: String,
}

/// What a model says of graphs.
#[derive(Debug)]
pub struct Predictions {
    /// The graphs in numbers, with their targets if they were asked for.
    pub batch: GraphBatch<f32>,
    /// The states that were found, and how well they meet `x = f_a(x)`.
    pub fixed_point: FixedPoint<f32>,
    /// A row for every node or graph: what softmax makes probabilities of, or values.
    pub outputs: Matrix<f32>,
}

impl Task {
    /// `nodes` or `graphs`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Graphs => "graphs",
        }
    }

    /// Whether graphs have the targets.
    pub fn per_graph(self) -> bool {
        self == Self::Graphs
    }
}

/// The description beside the weights.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    format: u32,
    kind: String,
    version: String,
    task: Task,
    outputs: usize,
    value_names: Vec<String>,
    model: ModelConfig,
    training: TrainingConfig,
    encoding: Encoding,
    data: DataOrigin,
    #[serde(default)]
    split: SplitConfig,
    epoch: usize,
}

/// Changes when an older program could not read the file any more.
const FORMAT: u32 = 1;

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
            scale.undo(setup.model.output(), &mut weights[setup.model.output_weights()]);
        }
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            task: setup.task,
            outputs: setup.data.outputs(),
            value_names: setup.value_names.clone(),
            model: config.model.clone(),
            training: config.training.clone(),
            encoding: setup.encoding.clone(),
            data: DataOrigin { name: name.into(), fingerprint: setup.fingerprint.clone() },
            split: config.split,
            epoch,
            weights,
            built: Built::default(),
        }
    }

    /// Names of the classes, if it predicts classes.
    pub fn classes(&self) -> Option<&[String]> {
        match self.task {
            Task::Nodes => self.encoding.node_classes(),
            Task::Graphs => self.encoding.graph_classes(),
        }
    }

    /// Its functions.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], [`Error::Mismatch`] when its parts do not fit each other.
    pub fn build(&self) -> Result<Model<f32>, Error> {
        let model = self.shape().build()?;
        if model.weights() == self.weights.len() {
            Ok(model)
        } else {
            let (expected, found) = (model.weights(), self.weights.len());
            Err(Error::Mismatch(format!("the model has {found} weights, it needs {expected}")))
        }
    }

    fn shape(&self) -> Shape {
        Shape {
            model: self.model.clone(),
            task: self.task,
            node_width: self.encoding.node_width(),
            edge_width: self.encoding.edge_width(),
            outputs: self.outputs,
        }
    }

    /// Its functions, built the first time; again only when a field has changed since.
    fn functions(&self) -> Result<Arc<(Shape, Model<f32>)>, Error> {
        let shape = self.shape();
        let fits = |built: &&Arc<(Shape, Model<f32>)>| {
            built.0 == shape && built.1.weights() == self.weights.len()
        };
        if let Some(built) = self.built.0.get().filter(fits) {
            return Ok(built.clone());
        }
        let built = Arc::new((shape, self.build()?));
        // Of a model that has changed, the first functions stay there.
        let _ = self.built.0.set(built.clone());
        Ok(built)
    }

    /// What it says of graphs. With `targets`, the batch has those of `dataset`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], [`Error::UnknownCategory`] when the data do not fit the model.
    pub fn predict(&self, dataset: &Dataset, targets: bool) -> Result<Predictions, Error> {
        let functions = self.functions()?;
        let model = &functions.1;
        let batch = if targets {
            self.encoding.batch(dataset)?
        } else {
            self.encoding.batch_without_targets(dataset)?
        };
        model.check(&batch)?;
        let scratch = Scratch::new();
        let fixed_point = self.training.inference.states(model, &self.weights, &batch, &scratch);
        let outputs = predict(model, &self.weights, &batch, &fixed_point.states, &scratch);
        Ok(Predictions { batch, fixed_point, outputs })
    }

    /// # Errors
    ///
    /// [`Error::Io`]
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        self.bundle().write(path)
    }

    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when the file is no model, or a damaged one.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bundle = Bundle::read(path)?;
        Self::of_bundle(bundle).map_err(|problem| Place::file(path).error(problem))
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
    /// [`Error::Mismatch`] when they are no model.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Bundle::from_bytes(bytes)
            .and_then(Self::of_bundle)
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
            epoch: self.epoch,
        };
        let about = serde_json::to_value(about).unwrap_or_default();
        let mut bundle = Bundle::new(about);
        let mut rest = &self.weights[..];
        for (name, shape) in self.shapes() {
            let (these, others) = rest.split_at(shape.iter().product::<usize>().min(rest.len()));
            bundle.insert(name, shape, these);
            rest = others;
        }
        bundle
    }

    fn of_bundle(mut bundle: Bundle) -> Result<Self, String> {
        let about = bundle.about.take();
        match (about["kind"].as_str(), about["format"].as_u64()) {
            (Some("model"), Some(format)) if format == u64::from(FORMAT) => {}
            (Some("model"), format) => {
                return Err(format!(
                    "is a model in format {}, this program reads format {FORMAT}",
                    format.map_or_else(|| "unknown".into(), |format| format.to_string())
                ));
            }
            (kind, _) => return Err(format!("is a {}, not a model", kind.unwrap_or("file"))),
        }
        let about: About = serde_json::from_value(about)
            .map_err(|error| format!("has a broken description: {error}"))?;
        let mut model = Self {
            version: about.version,
            task: about.task,
            outputs: about.outputs,
            value_names: about.value_names,
            model: about.model,
            training: about.training,
            encoding: about.encoding,
            data: about.data,
            split: about.split,
            epoch: about.epoch,
            weights: vec![],
            built: Built::default(),
        };
        model.check_sizes()?;
        let text = |error: Error| format!("cannot be used: {error}");
        model.training.clone().check().map_err(text)?;
        for (name, shape) in model.shapes() {
            model.weights.extend(bundle.take(&name, &shape)?);
        }
        if !model.weights.iter().all(|weight| weight.is_finite()) {
            return Err("has weights that are not finite".into());
        }
        // Kept, for who predicts.
        model.functions().map_err(text)?;
        Ok(model)
    }

    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        shapes(&self.model, self.encoding.node_width(), self.encoding.edge_width(), self.outputs)
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
        let outputs = self.classes().map_or(self.value_names.len(), <[String]>::len);
        if outputs == self.outputs {
            Ok(())
        } else {
            Err(format!("names {outputs} classes or values, but predicts {}", self.outputs))
        }
    }
}

impl Shape {
    fn build(&self) -> Result<Model<f32>, Error> {
        let Self { model, task, node_width, edge_width, outputs } = self;
        model.build(*node_width, *edge_width, *outputs, task.per_graph())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::uniform;
    use crate::data::generate::CliqueConfig;
    use crate::run::RunConfig;

    #[test]
    fn a_model_that_was_read_is_built_once() {
        let dataset = CliqueConfig { graphs: 2, ..CliqueConfig::default() }.generate(1).unwrap();
        let config = RunConfig::for_data("clique", &dataset, &[]);
        let setup = Setup::new(&config, &dataset).unwrap();
        let weights = vec![0.5; setup.model.weights()];
        let saved = SavedModel::new(&setup, &config, "clique", 1, weights);
        let mut read = SavedModel::from_bytes(&saved.to_bytes().unwrap()).unwrap();
        assert_eq!(read, saved);
        let built = read.functions().unwrap();
        read.predict(&dataset, false).unwrap();
        assert!(Arc::ptr_eq(&built, &read.functions().unwrap()));
        // What was built for other settings is not used.
        read.model.state_dim += 1;
        assert!(read.predict(&dataset, false).is_err());
    }

    /// A checksum keeps accidents away; this is about files that were made to harm.
    #[test]
    fn a_strange_description_with_the_right_checksum_never_panics() {
        let dataset = CliqueConfig { graphs: 2, ..CliqueConfig::default() }.generate(1).unwrap();
        let config = RunConfig::for_data("clique", &dataset, &[]);
        let setup = Setup::new(&config, &dataset).unwrap();
        let weights = vec![0.5; setup.model.weights()];
        let bundle = SavedModel::new(&setup, &config, "clique", 1, weights).bundle();
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
