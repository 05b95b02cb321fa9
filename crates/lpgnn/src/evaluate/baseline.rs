use crate::activation::Activation;
use crate::data::Split;
use crate::graph::{GraphBatch, Level, Targets};
use crate::network::Network;
use crate::numeric::{Scratch, uniform};
use crate::optim::Adam;
use crate::readout::{Loss, Mlp, MlpGradients, Supervision, TargetScale};
use crate::{Error, Matrix, Scalar};

/// The structure-free baseline: a network of the sum of a graph's node features, or of a node's own
/// feature, that sees no edges. What a GNN adds to it is what it makes of the structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// Units of the hidden layer.
    pub hidden_dim: usize,
    /// Steps of Adam, each over all that is trained on.
    pub epochs: usize,
    /// Learning rate.
    pub lr: f64,
    /// Epochs between evaluations.
    pub eval_every: usize,
    /// Random seed.
    pub seed: u64,
}

/// The evaluation of the baseline after an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaselineScore {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// The accuracy on the validation split, or the negative loss; none without such a split.
    pub val: Option<f64>,
    /// The same on the test split.
    pub test: f64,
}

impl Default for Baseline {
    fn default() -> Self {
        Self { hidden_dim: 32, epochs: 300, lr: 0.01, eval_every: 10, seed: 0 }
    }
}

impl Baseline {
    /// Trains it, and returns its evaluations on the splits.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when there is nothing to train on or to test.
    pub fn train(
        &self,
        batch: &GraphBatch<f32>,
        split: &Split,
        level: Level,
    ) -> Result<Vec<BaselineScore>, Error> {
        let targets = level.targets_of(batch);
        let features = match level {
            Level::Node => own(batch),
            Level::Graph => sums(batch),
        };
        let rows = |members: &[usize]| -> Vec<usize> {
            if (split.level, level) == (Level::Graph, Level::Node) {
                members.iter().flat_map(|&graph| batch.nodes_of(graph)).collect()
            } else {
                members.to_vec()
            }
        };
        let scale = TargetScale::of(&Supervision::of(targets.clone(), &rows(&split.train))?);
        let supervise = |members: &[usize]| {
            let some = Supervision::of(targets.clone(), &rows(members))?;
            Ok::<_, Error>(match &scale {
                Some(scale) => scale.standardize(&some),
                None => some,
            })
        };
        let train = supervise(&split.train)?;
        let (val, test) = (supervise(&split.val)?, supervise(&split.test)?);
        if train.total() <= 0.0 || test.total() <= 0.0 {
            return Err(Error::Mismatch("the training or the test split has no targets".into()));
        }
        let features = standardized(features, &rows(&split.train));
        let network = Network {
            hidden_dims: vec![self.hidden_dim],
            activation: Activation::Relu,
            output_activation: Activation::Identity,
        };
        let mlp = Mlp::new(features.cols(), targets.width(), network, 0.0);
        let scratch = Scratch::new();
        let mut weights = vec![0.0; mlp.parameters().weights()];
        mlp.parameters().initialize(&mut uniform(self.seed), &mut weights);
        let (mut first, mut second) = (vec![0.0; weights.len()], vec![0.0; weights.len()]);
        let mut predictions = Matrix::zeros(features.rows(), targets.width());
        let mut evaluation = vec![];
        for epoch in 1..=self.epochs {
            let mut gradient = vec![0.0; weights.len()];
            #[allow(clippy::cast_possible_truncation, reason = "a mean in single precision")]
            let factor = (1.0 / train.total()) as f32;
            let loss = Loss { supervision: &train, factor };
            let to = MlpGradients { weights: Some(&mut gradient), rows: None };
            let rows = (features.as_slice(), None);
            mlp.pass(&weights, rows, loss, &mut predictions, to, &scratch);
            let moments = [&mut first[..], &mut second[..]];
            Adam::new(self.lr).descend(epoch as u64, &mut weights, &gradient, moments);
            if epoch % self.eval_every.max(1) == 0 || epoch == self.epochs {
                let y = &mut predictions;
                mlp.forward(&weights, features.as_slice(), None, y, &scratch);
                let val = (val.total() > 0.0).then(|| value(&val, y));
                evaluation.push(BaselineScore { epoch, val, test: value(&test, y) });
            }
        }
        Ok(evaluation)
    }
}

/// The accuracy, or the negative loss.
fn value(supervision: &Supervision<f32>, predictions: &Matrix<f32>) -> f64 {
    match supervision.targets() {
        Targets::Classes { .. } => {
            let (right, all) = supervision.correct(predictions);
            right as f64 / all.max(1) as f64
        }
        _ => -supervision.mean_loss(predictions),
    }
}

/// `Σ_v l_v` of every graph.
fn sums(batch: &GraphBatch<f32>) -> Matrix<f32> {
    let features = batch.node_features();
    let mut sums = Matrix::zeros(batch.graphs(), features.width());
    for graph in 0..batch.graphs() {
        for node in batch.nodes_of(graph) {
            for (column, value) in features.entries(node) {
                sums.row_mut(graph)[column] += value;
            }
        }
    }
    sums
}

/// `l_v` of every node.
fn own(batch: &GraphBatch<f32>) -> Matrix<f32> {
    let features = batch.node_features();
    let mut own = Matrix::zeros(batch.nodes(), features.width());
    for node in 0..batch.nodes() {
        for (column, value) in features.entries(node) {
            own.row_mut(node)[column] += value;
        }
    }
    own
}

/// Columns with mean 0 and standard deviation 1 over some rows; a constant one is only shifted.
fn standardized(mut matrix: Matrix<f32>, rows: &[usize]) -> Matrix<f32> {
    let count = rows.len().max(1) as f64;
    for column in 0..matrix.cols() {
        let values = || rows.iter().map(|&row| matrix.row(row)[column].f64());
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let scale = if variance > 1e-12 { 1.0 / variance.sqrt() } else { 1.0 };
        for row in 0..matrix.rows() {
            let x = &mut matrix.row_mut(row)[column];
            *x = f32::of((x.f64() - mean) * scale);
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::CliqueConfig;
    use crate::data::{Encoding, FeatureOptions};

    #[test]
    fn it_learns_what_features_tell_and_no_more() {
        // Membership in a clique has nothing to do with features.
        let set = CliqueConfig::default().generate(1).unwrap();
        let encoding = Encoding::new(&set, &FeatureOptions::default()).unwrap();
        let batch = encoding.batch(&set).unwrap();
        let split = set.split().unwrap();
        let evaluation = Baseline::default().train(&batch, split, Level::Node).unwrap();
        let last = evaluation.last().unwrap();
        assert_eq!(last.epoch, 300);
        assert!((0.4..0.7).contains(&last.test), "{last:?}");
    }
}
