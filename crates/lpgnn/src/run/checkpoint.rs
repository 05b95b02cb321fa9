use std::path::Path;
use std::sync::Arc;

use super::RunConfig;
use super::bundle::Bundle;
use crate::lagrangian::{Model, Variables};
use crate::saddle::OptimizerState;
use crate::train::{Best, ModelEvaluation, SplitMetrics, TrainerState};
use crate::{Error, NormMemory, Place};

/// Where training is, and what it is the training of.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The configuration.
    pub config: RunConfig,
    /// The [`fingerprint`](super::fingerprint) of the data.
    pub fingerprint: String,
    /// How long training has taken so far, in seconds.
    pub seconds: f64,
    /// Everything that changes in training.
    pub state: TrainerState<f32>,
}

/// The description beside the arrays.
#[derive(serde::Serialize, serde::Deserialize)]
struct About {
    format: u32,
    kind: String,
    config: RunConfig,
    fingerprint: String,
    seconds: f64,
    epoch: usize,
    since_best: usize,
    weight_steps: u64,
    node_steps: u64,
    /// Of every moment, whether it goes with states and multipliers too.
    moments: Vec<bool>,
    /// Lengths of the vectors that are remembered of matrix norms, per layer.
    norms: Vec<Vec<usize>>,
    best: Option<AboutBest>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct AboutBest {
    epoch: usize,
    evaluation: ModelEvaluation,
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
        config: &RunConfig,
        fingerprint: &str,
        seconds: f64,
        state: &TrainerState<f32>,
    ) -> Result<(), Error> {
        let TrainerState { epoch, variables, memory, norms, best, since_best } = state;
        let about = About {
            format: FORMAT,
            kind: "checkpoint".into(),
            config: config.clone(),
            fingerprint: fingerprint.to_owned(),
            seconds,
            epoch: *epoch,
            since_best: *since_best,
            weight_steps: memory.weight_steps,
            node_steps: memory.node_steps,
            moments: memory.moments.iter().map(|moments| !moments.states.is_empty()).collect(),
            norms: norms
                .iter()
                .map(|layer| layer.vectors().iter().map(Vec::len).collect())
                .collect(),
            best: best
                .as_ref()
                .map(|best| AboutBest { epoch: best.epoch, evaluation: best.evaluation.clone() }),
        };
        let about = serde_json::to_value(about)
            .map_err(|error| Place::file(path).error(error.to_string()))?;
        let mut bundle = Bundle::new(about);
        insert(&mut bundle, "variables", variables);
        for (i, moments) in memory.moments.iter().enumerate() {
            insert(&mut bundle, &format!("moments.{i}"), moments);
        }
        for (k, layer) in norms.iter().enumerate() {
            for (i, vector) in layer.vectors().iter().enumerate() {
                bundle.insert_f64(format!("norms.{k}.{i}"), vector);
            }
        }
        if let Some(Best { score, weights, .. }) = best {
            bundle.insert("best.weights", vec![weights.len()], weights);
            // Not as text, so that the next comparison is the same to the last bit.
            bundle.insert_f64("best.score", &[score.loss, score.accuracy.unwrap_or(f64::NAN)]);
        }
        bundle.write(path)
    }

    /// Reads the checkpoint of a training of `model` on graphs with so many nodes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when it is none, a damaged one, or one of another training.
    pub fn read(path: &Path, model: &Model<f32>, nodes: usize) -> Result<Self, Error> {
        let bundle = Bundle::read(path)?;
        Self::of_bundle(bundle, model, nodes).map_err(|problem| Place::file(path).error(problem))
    }

    fn of_bundle(mut bundle: Bundle, model: &Model<f32>, nodes: usize) -> Result<Self, String> {
        let about: About = serde_json::from_value(bundle.about.take())
            .map_err(|error| format!("is no checkpoint: {error}"))?;
        if (about.format, about.kind.as_str()) != (FORMAT, "checkpoint") {
            return Err(format!("is a {} in format {}", about.kind, about.format));
        }
        let shape = model.zeros(nodes, vec![0.0; model.weights()]);
        let variables = take(&mut bundle, "variables", &shape, true)?;
        let moments = (0..)
            .zip(&about.moments)
            .map(|(i, &whole)| take(&mut bundle, &format!("moments.{i}"), &shape, whole));
        let moments = moments.collect::<Result<_, String>>()?;
        if about.norms.len() != model.layers() {
            return Err(format!("is of {} layers", about.norms.len()));
        }
        let mut norms = Vec::with_capacity(model.layers());
        for (k, lengths) in about.norms.iter().enumerate() {
            let vectors = lengths
                .iter()
                .enumerate()
                .map(|(i, &length)| bundle.take_f64(&format!("norms.{k}.{i}"), length));
            norms.push(NormMemory::from_vectors(vectors.collect::<Result<_, String>>()?));
        }
        let best = match about.best {
            None => None,
            Some(AboutBest { epoch, evaluation }) => {
                let weights = bundle.take("best.weights", &[model.weights()])?;
                let score = bundle.take_f64("best.score", 2)?;
                let accuracy = (!score[1].is_nan()).then_some(score[1]);
                Some(Best {
                    epoch,
                    score: SplitMetrics { loss: score[0], accuracy },
                    evaluation,
                    weights,
                })
            }
        };
        let memory = OptimizerState {
            gradient: variables.zeros_like(),
            moments,
            weight_steps: about.weight_steps,
            node_steps: about.node_steps,
            coordinates: Arc::default(),
            undecayed: Arc::default(),
        };
        Ok(Self {
            config: about.config,
            fingerprint: about.fingerprint,
            seconds: about.seconds,
            state: TrainerState {
                epoch: about.epoch,
                variables,
                memory,
                norms,
                best,
                since_best: about.since_best,
            },
        })
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

/// Variables of this shape; without `whole`, their weights alone.
fn take(
    bundle: &mut Bundle,
    name: &str,
    shape: &Variables<f32>,
    whole: bool,
) -> Result<Variables<f32>, String> {
    let mut matrices = |kind: &str, like: &[crate::Matrix<f32>]| {
        let like = if whole { like } else { &[] };
        like.iter()
            .enumerate()
            .map(|(k, m)| bundle.take_matrix(&format!("{name}.{kind}.{k}"), m.rows(), m.cols()))
            .collect::<Result<Vec<_>, String>>()
    };
    Ok(Variables {
        states: matrices("states", &shape.states)?,
        multipliers: matrices("multipliers", &shape.multipliers)?,
        weights: bundle.take(&format!("{name}.weights"), &[shape.weights.len()])?,
    })
}
