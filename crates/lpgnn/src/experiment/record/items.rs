use super::components::Components;
use crate::Matrix;
use crate::data::{Dataset, Split};
use crate::evaluate::probabilities;
use crate::graph::{GraphBatch, Level, Share, Targets};
use crate::readout::largest;
use crate::run::Predictions;
use crate::train::SplitName;

/// Single nodes or graphs, as the saved model sees them: columns of one length, `items.json`.
///
/// Of more than [`MOST`](Items::MOST), every so many-th is kept. Numbers have five significant digits.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Items {
    /// How many there are in the data.
    pub of: usize,
    /// Which ones these are.
    pub index: Vec<usize>,
    /// The split of each; none of those in no split.
    pub split: Vec<Option<SplitName>>,
    /// The class, where it is known.
    pub target: Vec<Option<usize>>,
    /// The predicted class.
    pub predicted: Vec<Option<usize>>,
    /// The probability of the second of two classes.
    pub positive: Vec<Option<f64>>,
    /// The probability of the predicted class.
    pub confidence: Vec<Option<f64>>,
    /// Real targets, a column each.
    pub values: Vec<Vec<Option<f64>>>,
    /// The predictions of these.
    pub predicted_values: Vec<Vec<Option<f64>>>,
    /// The state along its first principal component; of a graph, the mean of its nodes'.
    pub pca_x: Vec<Option<f64>>,
    /// The same along the second one.
    pub pca_y: Vec<Option<f64>>,
    /// The share of the variance that the two have.
    pub pca_explained: f64,
    /// The mean of `abs(λ)`, where training had multipliers.
    pub multiplier: Vec<Option<f64>>,
}

impl Items {
    /// Items at most.
    pub const MOST: usize = 5000;

    pub(super) fn new(
        predictions: &Predictions,
        dataset: &Dataset,
        (split, task): (&Split, Level),
        multipliers: &[Matrix<f32>],
    ) -> Self {
        let (batch, outputs) = (&predictions.batch, &predictions.outputs);
        let of = outputs.rows();
        let index: Vec<usize> = (0..of).step_by(of.div_ceil(Self::MOST).max(1)).collect();
        let mut items = Self { of, ..Self::default() };
        items.take_targets(task.targets_of(batch), outputs, &index);
        let states: Vec<Vec<f64>> = index
            .iter()
            .map(|&i| mean_state(batch, task, i, &predictions.fixed_point.states))
            .collect();
        let Components { places: [x, y], explained } = Components::of(&states);
        items.pca_x = x.into_iter().map(digits).collect();
        items.pca_y = y.into_iter().map(digits).collect();
        items.pca_explained = explained;
        let sizes = multiplier_sizes(dataset, split, task, multipliers);
        items.multiplier = index.iter().map(|&i| sizes.get(i).copied().flatten()).collect();
        let splits = splits(dataset, split, task, of);
        items.split = index.iter().map(|&i| splits[i]).collect();
        items.index = index;
        items
    }

    /// The same of a graph in parts, from what every rank knows of its nodes.
    pub(super) fn of_parts(
        predictions: &Predictions,
        (split, task): (&Split, Level),
        multipliers: &[Matrix<f32>],
        share: &Share,
    ) -> Self {
        let rows: Vec<usize> = share.sample(Self::MOST).collect();
        let some = |own: &Matrix<f32>| share.concatenate_rows(&own.select(rows.iter().copied()));
        let targets = task.targets_of(&predictions.batch).select(rows.iter().copied());
        let (targets, outputs) = (targets.concatenated(share), some(&predictions.outputs));
        let states: Vec<Matrix<f32>> = predictions.fixed_point.states.iter().map(some).collect();
        let multipliers: Vec<Matrix<f32>> = multipliers.iter().map(some).collect();
        let mut of_nodes = vec![0.0; predictions.outputs.rows()];
        for (number, members) in (1_u8..).zip([&split.train, &split.val, &split.test]) {
            members.iter().for_each(|&node| of_nodes[node] = f64::from(number));
        }
        let own: Vec<f64> = rows.iter().map(|&row| of_nodes[row]).collect();
        let first = share.nodes().start;
        let index: Vec<f64> = rows.iter().map(|&row| (first + row) as f64).collect();

        let places: Vec<usize> = (0..outputs.rows()).collect();
        let mut items = Self { of: share.whole_nodes(), ..Self::default() };
        items.take_targets(&targets, &outputs, &places);
        let state = |&i: &usize| states.iter().flat_map(move |x| x.row(i)).map(|&x| f64::from(x));
        let states: Vec<Vec<f64>> = places.iter().map(|i| state(i).collect()).collect();
        let Components { places: [x, y], explained } = Components::of(&states);
        items.pca_x = x.into_iter().map(digits).collect();
        items.pca_y = y.into_iter().map(digits).collect();
        items.pca_explained = explained;
        let size = |&i: &usize| {
            let entries = || multipliers.iter().flat_map(move |of| of.row(i));
            let total: f64 = entries().map(|&x| f64::from(x.abs())).sum();
            let count = entries().count();
            (count > 0).then(|| digits(total / count as f64)).flatten()
        };
        items.multiplier = places.iter().map(size).collect();
        let names = [SplitName::Train, SplitName::Val, SplitName::Test];
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they were integers"
        )]
        let whole = |x: f64| x as usize;
        let name = |x: f64| whole(x).checked_sub(1).and_then(|i| names.get(i).copied());
        items.split = share.concatenate(&own).into_iter().map(name).collect();
        items.index = share.concatenate(&index).into_iter().map(whole).collect();
        items
    }

    /// Whether all columns that are there have an entry per item.
    pub(crate) fn is_table(&self) -> bool {
        let values = self.values.iter().chain(&self.predicted_values).map(Vec::len);
        let columns = [
            self.target.len(),
            self.predicted.len(),
            self.positive.len(),
            self.confidence.len(),
            self.multiplier.len(),
        ];
        let [all, classes] =
            [&[self.split.len(), self.pca_x.len(), self.pca_y.len()][..], &columns];
        all.iter().all(|&len| len == self.index.len())
            && classes.iter().copied().chain(values).all(|len| len == 0 || len == self.index.len())
            && self.values.len() == self.predicted_values.len()
    }

    fn take_targets(&mut self, targets: &Targets<f32>, outputs: &Matrix<f32>, index: &[usize]) {
        match targets {
            Targets::Values(values) => {
                let column = |of: &Matrix<f32>, j: usize| -> Vec<Option<f64>> {
                    index.iter().map(|&i| digits(f64::from(of.row(i)[j]))).collect()
                };
                self.values = (0..values.cols()).map(|j| column(values, j)).collect();
                self.predicted_values = (0..values.cols()).map(|j| column(outputs, j)).collect();
            }
            Targets::Classes { classes, class } => {
                for &i in index {
                    let y = outputs.row(i);
                    let p = probabilities(y);
                    let told = p.iter().all(|p| p.is_finite());
                    let best = largest(y);
                    self.target.push(targets.is_known(i).then(|| class[i] as usize));
                    self.predicted.push(told.then_some(best));
                    self.confidence.push(p.get(best).copied().and_then(digits));
                    if *classes == 2 {
                        self.positive.push(p.get(1).copied().and_then(digits));
                    }
                }
            }
            Targets::None(_) => {}
        }
    }
}

/// The states of all layers, of a node or on average over a graph.
fn mean_state(batch: &GraphBatch<f32>, task: Level, i: usize, states: &[Matrix<f32>]) -> Vec<f64> {
    let nodes = match task {
        Level::Node => i..i + 1,
        Level::Graph => batch.nodes_of(i),
    };
    let count = nodes.len().max(1) as f64;
    let layer = |x: &Matrix<f32>| -> Vec<f64> {
        let component =
            |c: usize| nodes.clone().map(|v| f64::from(x.row(v)[c])).sum::<f64>() / count;
        (0..x.cols()).map(component).collect()
    };
    states.iter().flat_map(layer).collect()
}

/// The mean of `abs(λ)` of every node or graph that was trained on. Where graphs are split, rows of
/// multipliers are those of the training graphs, one after the other.
fn multiplier_sizes(
    dataset: &Dataset,
    split: &Split,
    task: Level,
    multipliers: &[Matrix<f32>],
) -> Vec<Option<f64>> {
    let starts = dataset.node_starts();
    let trained: Vec<usize> = match split.level {
        Level::Graph => split.train.clone(),
        Level::Node => (0..starts.len().saturating_sub(1)).collect(),
    };
    let count = match task {
        Level::Node => starts.last().copied().unwrap_or(0),
        Level::Graph => starts.len().saturating_sub(1),
    };
    let mut sizes = vec![None; count];
    let mean = |rows: std::ops::Range<usize>| {
        let entries = || {
            multipliers
                .iter()
                .filter(|of| rows.end <= of.rows())
                .flat_map(|of| rows.clone().flat_map(|row| of.row(row)))
        };
        let count = entries().count();
        let total: f64 = entries().map(|&x| f64::from(x.abs())).sum();
        (count > 0).then(|| digits(total / count as f64)).flatten()
    };
    let mut row = 0;
    for graph in trained {
        let nodes = starts[graph]..starts[graph + 1];
        match task {
            Level::Graph => sizes[graph] = mean(row..row + nodes.len()),
            Level::Node => {
                nodes.clone().zip(row..).for_each(|(v, row)| sizes[v] = mean(row..row + 1));
            }
        }
        row += nodes.len();
    }
    sizes
}

/// The split of every node or graph.
fn splits(dataset: &Dataset, split: &Split, task: Level, count: usize) -> Vec<Option<SplitName>> {
    let mut splits = vec![None; count];
    for (name, members) in [
        (SplitName::Train, &split.train),
        (SplitName::Val, &split.val),
        (SplitName::Test, &split.test),
    ] {
        split.rows(members, task, dataset).into_iter().for_each(|row| splits[row] = Some(name));
    }
    splits
}

/// Five significant digits; none of what is not finite.
fn digits(x: f64) -> Option<f64> {
    x.is_finite().then(|| format!("{x:.4e}").parse().unwrap_or(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(digits(0.123_456_789), Some(0.123_46));
        assert_eq!(digits(-1.0), Some(-1.0));
        assert_eq!(digits(f64::NAN), None);
    }
}
