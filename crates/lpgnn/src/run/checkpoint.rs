use std::path::{Path, PathBuf};

use super::bundle::Bundle;
use super::checkpoint_parts::AboutParts;
use super::{RunConfig, SettingChange, Setup};
use crate::lagrangian::{Model, Variables};
use crate::saddle::{OptimizerState, Slot, Slots};
use crate::train::{Best, ModelEvaluation, SplitMetrics, TrainerState};
use crate::{Error, Matrix, NormMemory, Place};

/// What is trained on what: everything that decides on the state of training but the time it had.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TrainingOrigin {
    /// The configuration.
    pub config: RunConfig,
    /// The [`fingerprint`](super::fingerprint) of the data.
    pub fingerprint: String,
    /// The [fingerprint](crate::data::Split::fingerprint) of their split.
    pub split: String,
    /// Settings that were changed on the way.
    pub changes: Vec<EpochChange>,
}

/// A setting that was changed after an epoch, when training was resumed.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct EpochChange {
    /// Epochs that were done with the value before.
    pub epoch: usize,
    /// The setting and its values.
    #[serde(flatten)]
    pub change: SettingChange,
}

impl TrainingOrigin {
    /// Of training by a setup of this configuration.
    pub fn new(config: RunConfig, setup: &Setup) -> Self {
        Self {
            config,
            fingerprint: setup.fingerprint.clone(),
            split: setup.split_fingerprint.clone(),
            changes: vec![],
        }
    }
}

/// The state of training, with its configuration and data.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// What is trained on what.
    pub origin: TrainingOrigin,
    /// How long training has taken so far, in seconds.
    pub seconds: f64,
    /// Everything that changes in training.
    pub state: TrainerState<f32>,
}

/// The description beside the arrays.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct About {
    format: u32,
    kind: String,
    origin: TrainingOrigin,
    seconds: f64,
    epoch: usize,
    since_best: usize,
    updates: u64,
    pub(super) slots: Vec<AboutSlot>,
    /// Lengths of the vectors that are remembered of matrix norms, per layer.
    norms: Vec<Vec<usize>>,
    best: Option<AboutBest>,
    /// Of a graph in parts: where the rows of nodes are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parts: Option<AboutParts>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct AboutBest {
    epoch: usize,
    evaluation: ModelEvaluation,
}

/// A slot of the optimiser state; its numbers are arrays, to the last bit.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct AboutSlot {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) kind: SlotKind,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "count")]
pub(super) enum SlotKind {
    Weights,
    States,
    Multipliers,
    Number,
    Counter(u64),
    NodeCounter(u64),
}

const FORMAT: u32 = 1;

impl Checkpoint {
    /// Writes a checkpoint of `state`.
    ///
    /// What solvers do not need again is left out: the last gradient.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; an earlier checkpoint is then still there.
    pub fn write(
        path: &Path,
        origin: &TrainingOrigin,
        seconds: f64,
        state: &TrainerState<f32>,
    ) -> Result<(), Error> {
        let bundle = Self::bundle(origin, seconds, state, None);
        bundle.map_err(|problem| Place::file(path).error(problem))?.write(path)
    }

    pub(super) fn bundle(
        origin: &TrainingOrigin,
        seconds: f64,
        state: &TrainerState<f32>,
        parts: Option<AboutParts>,
    ) -> Result<Bundle, String> {
        let TrainerState { epoch, updates, variables, optimizer, norms, best, since_best } = state;
        let about = About {
            format: FORMAT,
            kind: "checkpoint".into(),
            origin: origin.clone(),
            seconds,
            epoch: *epoch,
            since_best: *since_best,
            updates: *updates,
            slots: optimizer.slots.iter().map(|(name, slot)| about(name, slot)).collect(),
            norms: norms
                .iter()
                .map(|layer| layer.vectors().iter().map(Vec::len).collect())
                .collect(),
            best: best
                .as_ref()
                .map(|best| AboutBest { epoch: best.epoch, evaluation: best.evaluation.clone() }),
            parts,
        };
        let about = serde_json::to_value(about).map_err(|error| error.to_string())?;
        let mut bundle = Bundle::new(about);
        insert(&mut bundle, "variables", variables);
        for (name, slot) in optimizer.slots.iter() {
            insert_slot(&mut bundle, name, slot);
        }
        for (k, layer) in norms.iter().enumerate() {
            for (i, vector) in layer.vectors().iter().enumerate() {
                bundle.insert_f64(format!("norms.{k}.{i}"), vector);
            }
        }
        if let Some(Best { score, weights, .. }) = best {
            bundle.insert("best.weights", vec![weights.len()], weights);
            // Not as text, so that the next comparison is the same to the last bit.
            let number = |number: Option<f64>| number.unwrap_or(f64::NAN);
            let score = [score.loss, number(score.accuracy), number(score.monitored)];
            bundle.insert_f64("best.score", &score);
        }
        Ok(bundle)
    }

    /// The opposite of [`bundle`](Self::bundle).
    pub(super) fn of_bundle(
        mut bundle: Bundle,
        model: &Model<f32>,
        nodes: usize,
    ) -> Result<Self, String> {
        let about: About = serde_json::from_value(bundle.about.take())
            .map_err(|error| format!("is not a checkpoint: {error}"))?;
        Self::of_arrays(about, bundle, model, nodes)
    }

    /// Reads the checkpoint of a training of `model` on graphs with so many nodes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when it is not a checkpoint, is damaged, or is of another run.
    pub fn read(path: &Path, model: &Model<f32>, nodes: usize) -> Result<Self, Error> {
        CheckpointFile::open(path)?.read(model, nodes)
    }

    pub(super) fn of_arrays(
        about: About,
        mut bundle: Bundle,
        model: &Model<f32>,
        nodes: usize,
    ) -> Result<Self, String> {
        let shape = model.zeros(nodes, vec![0.0; model.weights()]);
        let variables = take(&mut bundle, "variables", &shape)?;
        let mut slots = Slots::default();
        for slot in &about.slots {
            slots.insert(&slot.name, take_slot(&mut bundle, slot, &shape)?);
        }
        let norms = take_norms(&mut bundle, &about.norms, model.layers())?;
        let best = match about.best {
            None => None,
            Some(best) => Some(take_best(&mut bundle, best, model.weights())?),
        };
        Ok(Self {
            origin: about.origin,
            seconds: about.seconds,
            state: TrainerState {
                epoch: about.epoch,
                updates: about.updates,
                optimizer: OptimizerState::with_slots(&variables, slots),
                variables,
                norms,
                best,
                since_best: about.since_best,
            },
        })
    }
}

/// A checkpoint of which the description is read: what it belongs to can be told before its arrays have to
/// fit a model.
pub(crate) struct CheckpointFile {
    pub(super) path: PathBuf,
    pub(super) about: About,
    pub(super) bundle: Bundle,
}

impl CheckpointFile {
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when it is not a checkpoint, or is damaged.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let mut bundle = Bundle::read(path)?;
        let problem = |problem: String| Place::file(path).error(problem);
        let about: About = serde_json::from_value(bundle.about.take())
            .map_err(|error| problem(format!("is not a checkpoint: {error}")))?;
        if (about.format, about.kind.as_str()) != (FORMAT, "checkpoint") {
            return Err(problem(format!("is a {} in format {}", about.kind, about.format)));
        }
        Ok(Self { path: path.to_owned(), about, bundle })
    }

    /// What is trained on what.
    pub(crate) fn origin(&self) -> &TrainingOrigin {
        &self.about.origin
    }

    /// Epochs that are done.
    pub(crate) fn epoch(&self) -> usize {
        self.about.epoch
    }

    /// # Errors
    ///
    /// [`Error::Input`] when its arrays are those of another model.
    pub(crate) fn read(self, model: &Model<f32>, nodes: usize) -> Result<Checkpoint, Error> {
        if self.about.parts.is_some() {
            let problem = "is of a graph in parts, but the data are not";
            return Err(Place::file(&self.path).error(problem));
        }
        Checkpoint::of_arrays(self.about, self.bundle, model, nodes)
            .map_err(|problem| Place::file(&self.path).error(problem))
    }
}

fn insert(bundle: &mut Bundle, name: &str, variables: &Variables<f32>) {
    bundle.insert(format!("{name}.weights"), vec![variables.weights.len()], &variables.weights);
    for (k, states) in variables.states.iter().enumerate() {
        bundle.insert_matrix(format!("{name}.states.{k}"), states);
    }
    for (k, multipliers) in variables.multipliers.iter().enumerate() {
        bundle.insert_matrix(format!("{name}.multipliers.{k}"), multipliers);
    }
}

/// Variables of this shape.
fn take(bundle: &mut Bundle, name: &str, shape: &Variables<f32>) -> Result<Variables<f32>, String> {
    Ok(Variables {
        states: take_matrices(bundle, &format!("{name}.states"), &shape.states)?,
        multipliers: take_matrices(bundle, &format!("{name}.multipliers"), &shape.multipliers)?,
        weights: bundle.take(&format!("{name}.weights"), &[shape.weights.len()])?,
    })
}

pub(super) fn take_matrices(
    bundle: &mut Bundle,
    name: &str,
    shape: &[Matrix<f32>],
) -> Result<Vec<Matrix<f32>>, String> {
    let matrices = shape.iter().enumerate();
    matrices.map(|(k, m)| bundle.take_matrix(&format!("{name}.{k}"), m.rows(), m.cols())).collect()
}

fn about(name: &str, slot: &Slot<f32>) -> AboutSlot {
    let kind = match slot {
        Slot::Weights(_) => SlotKind::Weights,
        Slot::States(_) => SlotKind::States,
        Slot::Multipliers(_) => SlotKind::Multipliers,
        Slot::Number(_) => SlotKind::Number,
        Slot::Counter(count) => SlotKind::Counter(*count),
        Slot::NodeCounter(count) => SlotKind::NodeCounter(*count),
    };
    AboutSlot { name: name.to_owned(), kind }
}

/// The kind comes last, so that no two slots share an array whatever their names.
pub(super) fn insert_slot(bundle: &mut Bundle, name: &str, slot: &Slot<f32>) {
    let mut insert_matrices = |kind: &str, matrices: &[Matrix<f32>]| {
        for (k, matrix) in matrices.iter().enumerate() {
            bundle.insert_matrix(format!("slots.{name}.{kind}.{k}"), matrix);
        }
    };
    match slot {
        Slot::Weights(weights) => {
            bundle.insert(format!("slots.{name}.weights"), vec![weights.len()], weights);
        }
        Slot::States(states) => insert_matrices("states", states),
        Slot::Multipliers(multipliers) => insert_matrices("multipliers", multipliers),
        Slot::Number(number) => bundle.insert_f64(format!("slots.{name}.number"), &[*number]),
        Slot::Counter(_) | Slot::NodeCounter(_) => {}
    }
}

pub(super) fn take_slot(
    bundle: &mut Bundle,
    AboutSlot { name, kind }: &AboutSlot,
    shape: &Variables<f32>,
) -> Result<Slot<f32>, String> {
    let at = |kind: &str| format!("slots.{name}.{kind}");
    Ok(match kind {
        SlotKind::Weights => Slot::Weights(bundle.take(&at("weights"), &[shape.weights.len()])?),
        SlotKind::States => Slot::States(take_matrices(bundle, &at("states"), &shape.states)?),
        SlotKind::Multipliers => {
            Slot::Multipliers(take_matrices(bundle, &at("multipliers"), &shape.multipliers)?)
        }
        SlotKind::Number => Slot::Number(bundle.take_f64(&at("number"), 1)?[0]),
        SlotKind::Counter(count) => Slot::Counter(*count),
        SlotKind::NodeCounter(count) => Slot::NodeCounter(*count),
    })
}

fn take_norms(
    bundle: &mut Bundle,
    lengths: &[Vec<usize>],
    layers: usize,
) -> Result<Vec<NormMemory>, String> {
    if lengths.len() != layers {
        return Err(format!("is of {} layers", lengths.len()));
    }
    let mut layer = |(k, lengths): (usize, &Vec<usize>)| {
        let vectors = lengths.iter().enumerate();
        let vectors =
            vectors.map(|(i, &length)| bundle.take_f64(&format!("norms.{k}.{i}"), length));
        Ok(NormMemory::from_vectors(vectors.collect::<Result<_, String>>()?))
    };
    lengths.iter().enumerate().map(&mut layer).collect()
}

fn take_best(bundle: &mut Bundle, best: AboutBest, weights: usize) -> Result<Best<f32>, String> {
    let weights = bundle.take("best.weights", &[weights])?;
    let score = bundle.take_f64("best.score", 3)?;
    let number = |number: f64| (!number.is_nan()).then_some(number);
    Ok(Best {
        epoch: best.epoch,
        score: SplitMetrics {
            loss: score[0],
            accuracy: number(score[1]),
            monitored: number(score[2]),
        },
        evaluation: best.evaluation,
        weights,
    })
}
