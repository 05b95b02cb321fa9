use crate::activation::Activation;
use crate::graph::{GraphBatch, Level, Targets};
use crate::network::Network;
use crate::numeric::{Scratch, uniform};
use crate::optim::Adam;
use crate::readout::{Loss, Mlp, MlpGradients, Supervision};
use crate::train::{Monitor, SplitName, TrainingData};
use crate::{Matrix, Scalar};

/// The structure-free baseline: a network of the sum of a graph's node features, or of a node's own
/// features, that sees no edges. What a GNN adds to it is what it makes of the structure.
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
    /// About how many multiplications it may take; none: as many as it takes.
    ///
    /// Beyond it, a sample of every split and fewer epochs have to do. Counted and not timed, so that
    /// the result does not depend on the machine.
    pub budget: Option<f64>,
    /// The metric of its scores, if it is one that trainings are compared by; otherwise they are accuracies, or negative losses.
    pub metric: Monitor,
}

/// The evaluations of a baseline, and what it was trained on.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct BaselineReport {
    /// Its evaluations, in the order of the epochs.
    pub scores: Vec<BaselineScore>,
    /// Number of nodes or graphs that it was trained on.
    pub trained_on: usize,
    /// Number of nodes or graphs of the training split; more than that if it was trained on a sample.
    pub of: usize,
}

/// The evaluation of the baseline after an epoch.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct BaselineScore {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// The accuracy on the validation split, the negative loss, or another [metric](Baseline::metric); none without such a split.
    #[serde(default, with = "crate::nan::optional")]
    pub val: Option<f64>,
    /// The same on the test split.
    #[serde(default, with = "crate::nan::optional")]
    pub test: Option<f64>,
}

impl Default for Baseline {
    fn default() -> Self {
        let metric = Monitor::Auto;
        Self {
            hidden_dim: 32,
            epochs: 300,
            lr: 0.01,
            eval_every: 10,
            seed: 0,
            budget: None,
            metric,
        }
    }
}

/// Samples are not smaller than this, and epochs not fewer.
const LEAST_ROWS: usize = 500;
const LEAST_EPOCHS: usize = 30;
/// How many times the budget the smallest sample may take.
const OVERDRAFT: f64 = 4.0;

impl BaselineReport {
    /// The evaluation of the best epoch on the validation split, the first of equals; the last without
    /// such a split.
    pub fn best(&self) -> Option<&BaselineScore> {
        let mut best = self.scores.last().filter(|score| score.val.is_none());
        for score in &self.scores {
            if score.val > best.and_then(|best| best.val) {
                best = Some(score);
            }
        }
        best
    }
}

impl Baseline {
    /// About as many multiplications as take a second, for use beside a training run.
    pub const SMALL_BUDGET: f64 = 4e9;

    /// Trains it, and evaluates it on the other splits; none if even a small sample would exceed the
    /// budget by far, since there are too many features.
    pub fn train(&self, data: &TrainingData<f32>) -> Option<BaselineReport> {
        let mut splits: Vec<SplitRows> = data.splits().map(SplitRows::new).collect();
        let of = splits.first()?.rows.len();
        let epochs = self.reduce(&mut splits)?;
        let (mean, scale) = moments(&splits[0].features());
        let inputs = |rows: &SplitRows<'_>| standardized(rows.features(), &mean, &scale);
        let targets: Vec<Supervision> =
            splits.iter().map(|split| split.supervision.select(&split.rows)).collect();
        let inputs: Vec<Matrix<f32>> = splits.iter().map(inputs).collect();
        let trained_on = splits[0].rows.len();
        let network = Network {
            hidden_dims: vec![self.hidden_dim],
            activation: Activation::Relu,
            output_activation: Activation::Identity,
        };
        let mlp = Mlp::new(inputs[0].cols(), data.outputs(), network, 0.0);
        let scratch = Scratch::new();
        let mut weights = vec![0.0; mlp.parameters().weights()];
        mlp.parameters().initialize(&mut uniform(self.seed), &mut weights);
        let (mut first, mut second) = (vec![0.0; weights.len()], vec![0.0; weights.len()]);
        #[allow(clippy::cast_possible_truncation, reason = "a mean in single precision")]
        let factor = (1.0 / targets[0].total()) as f32;
        let mut scores = vec![];
        for epoch in 1..=epochs {
            let mut gradient = vec![0.0; weights.len()];
            let mut predictions = Matrix::zeros(trained_on, data.outputs());
            let loss = Loss { supervision: &targets[0], factor };
            let to = MlpGradients { weights: Some(&mut gradient), rows: None, features: None };
            let rows = inputs[0].as_slice().into();
            mlp.pass(&weights, rows, loss, &mut predictions, to, &scratch);
            let moments = [&mut first[..], &mut second[..]];
            Adam::new(self.lr).descend(epoch as u64, &mut weights, &gradient, moments);
            if epoch % self.eval_every.max(1) == 0 || epoch == epochs {
                let mut score = BaselineScore { epoch, val: None, test: None };
                for ((split, inputs), targets) in splits.iter().zip(&inputs).zip(&targets).skip(1) {
                    let mut y = Matrix::zeros(inputs.rows(), data.outputs());
                    mlp.forward(&weights, inputs.as_slice().into(), &mut y, &scratch);
                    let value = (targets.total() > 0.0).then(|| self.value(targets, &y));
                    match split.name {
                        SplitName::Val => score.val = value,
                        _ => score.test = value,
                    }
                }
                scores.push(score);
            }
        }
        Some(BaselineReport { scores, trained_on, of })
    }

    /// The metric, the accuracy, or the negative loss.
    fn value(&self, supervision: &Supervision<f32>, predictions: &Matrix<f32>) -> f64 {
        if self.metric.compares_trainings() {
            return self.metric.of(supervision, predictions).unwrap_or(f64::NAN);
        }
        match supervision.targets() {
            Targets::Classes { .. } => {
                let (right, all) = supervision.correct(predictions);
                right as f64 / all.max(1) as f64
            }
            _ => -supervision.mean_loss(predictions),
        }
    }

    /// Takes samples where all rows would exceed the budget; returns the number of epochs.
    fn reduce(&self, splits: &mut [SplitRows<'_>]) -> Option<usize> {
        let Some(budget) = self.budget else { return Some(self.epochs) };
        let share = budget / self.work(splits, self.epochs);
        if share >= 1.0 {
            return Some(self.epochs);
        }
        splits.iter_mut().for_each(|split| split.sample(share));
        let share = (budget / self.work(splits, self.epochs)).min(1.0);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let epochs = (self.epochs as f64 * share) as usize;
        let epochs = epochs.max(LEAST_EPOCHS).min(self.epochs);
        (self.work(splits, epochs) <= OVERDRAFT * budget).then_some(epochs)
    }

    /// About how many multiplications so many epochs take: three passes over what is trained on in each,
    /// one over the rest at every evaluation.
    fn work(&self, splits: &[SplitRows<'_>], epochs: usize) -> f64 {
        let width = splits[0].batch.node_features().width().max(1);
        let rows =
            |splits: &[SplitRows<'_>]| splits.iter().map(|of| of.rows.len()).sum::<usize>() as f64;
        let evaluations = (epochs / self.eval_every.max(1)).max(1) as f64;
        let passes = 3.0 * epochs as f64 * rows(&splits[..1]) + evaluations * rows(&splits[1..]);
        passes * (width * self.hidden_dim) as f64
    }
}

/// The rows of a split that have targets: nodes, or graphs.
struct SplitRows<'a> {
    name: SplitName,
    batch: &'a GraphBatch<f32>,
    supervision: &'a Supervision<f32>,
    level: Level,
    rows: Vec<usize>,
}

impl<'a> SplitRows<'a> {
    fn new(
        (name, level, batch, supervision): (
            SplitName,
            Level,
            &'a GraphBatch<f32>,
            &'a Supervision<f32>,
        ),
    ) -> Self {
        let counts = supervision.counts();
        let rows = (0..counts.len()).filter(|&row| counts[row] > 0.0).collect();
        Self { name, batch, supervision, level, rows }
    }

    /// Keeps about this share of the rows, evenly spread.
    fn sample(&mut self, share: f64) {
        let all = self.rows.len();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let kept = ((all as f64 * share) as usize).max(LEAST_ROWS).min(all);
        self.rows = (0..kept).map(|i| self.rows[i * all / kept]).collect();
    }

    /// `l_v` of nodes, `Σ_v l_v` of graphs.
    fn features(&self) -> Matrix<f32> {
        let features = self.batch.node_features();
        let mut sums = Matrix::zeros(self.rows.len(), features.width());
        for (to, &row) in self.rows.iter().enumerate() {
            let nodes = match self.level {
                Level::Node => row..row + 1,
                Level::Graph => self.batch.nodes_of(row),
            };
            for node in nodes {
                for (column, value) in features.entries(node) {
                    sums.row_mut(to)[column] += value;
                }
            }
        }
        sums
    }
}

/// The mean of every column, and the factor that makes its standard deviation 1; that of a constant
/// column is 1.
fn moments(matrix: &Matrix<f32>) -> (Vec<f64>, Vec<f64>) {
    let count = matrix.rows().max(1) as f64;
    let column = |column: usize| {
        let values = || (0..matrix.rows()).map(|row| matrix.row(row)[column].f64());
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        (mean, if variance > 1e-12 { 1.0 / variance.sqrt() } else { 1.0 })
    };
    (0..matrix.cols()).map(column).unzip()
}

/// `(x − mean) · scale`, column by column.
fn standardized(mut matrix: Matrix<f32>, mean: &[f64], scale: &[f64]) -> Matrix<f32> {
    for row in 0..matrix.rows() {
        for ((x, mean), scale) in matrix.row_mut(row).iter_mut().zip(mean).zip(scale) {
            *x = f32::of((x.f64() - mean) * scale);
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::CliqueConfig;
    use crate::run::{RunConfig, Setup};

    fn data() -> TrainingData {
        // Membership in a clique has nothing to do with features.
        let set = CliqueConfig::default().generate(1).unwrap();
        Setup::new(&RunConfig::for_data("clique", &set, &[]), &set).unwrap().data
    }

    #[test]
    fn it_learns_what_features_tell_and_no_more() {
        let report = Baseline::default().train(&data()).unwrap();
        let last = report.scores.last().unwrap();
        assert_eq!((last.epoch, report.trained_on), (300, report.of));
        assert!((0.4..0.7).contains(&last.test.unwrap()), "{last:?}");
        let best = report.scores.iter().filter_map(|score| score.val).fold(0.0, f64::max);
        assert_eq!(report.best().unwrap().val, Some(best));
    }

    #[test]
    fn a_budget_bounds_rows_and_epochs_and_gives_up_before_it_is_far_exceeded() {
        let data = data();
        let splits = || data.splits().map(SplitRows::new).collect::<Vec<_>>();
        let all = Baseline::default().work(&splits(), 300);
        for share in [0.5, 0.2, 0.1] {
            let baseline = Baseline { budget: Some(share * all), ..Baseline::default() };
            let mut rows = splits();
            let epochs = baseline.reduce(&mut rows).unwrap();
            assert!(rows[0].rows.len() < splits()[0].rows.len());
            assert!(baseline.work(&rows, epochs) <= 1.01 * share * all, "{share}: {epochs}");
        }
        let report = Baseline { budget: Some(0.1 * all), ..Baseline::default() }.train(&data);
        let report = report.unwrap();
        assert!(report.trained_on < report.of, "{report:?}");
        assert_eq!(Baseline { budget: Some(1.0), ..Baseline::default() }.train(&data), None);
    }
}
