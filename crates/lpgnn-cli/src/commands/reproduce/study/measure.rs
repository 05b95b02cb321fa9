use std::collections::{BTreeMap, VecDeque};

use lpgnn::data::Dataset;

/// What can be measured, in percent, counts or seconds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measure {
    /// What is varied.
    Value,
    /// Edges between the two nodes of the first graph that are farthest apart, or nearly so.
    Hops,
    /// Nodes and edges.
    Size,
    /// Standard deviation of the degrees over their mean.
    DegreeVariation,
    /// Accuracy on the test split, in percent, on converged states.
    Accuracy,
    /// The same on the training split.
    TrainAccuracy,
    /// Training accuracy of trained states minus that of converged ones, in points.
    CheatingGap,
    /// Mean of `abs(x − f_a)` at the end.
    Residual,
    /// The largest `abs(x − f_a)` of the converged states.
    ConvergedResidual,
    /// Share of the graphs that converge, in percent.
    Converged,
    /// Updates until the residual reaches the tolerance and stays below it.
    UpdatesToResidual,
    /// Updates so far.
    Updates,
    /// Evaluations of `f_a`, with or without its derivative.
    Passes,
    /// Applications of `f_a` until states have converged.
    Iterations,
    /// Spectral radius of `∂f_a/∂x`, an estimate.
    SpectralRadius,
    /// CPU seconds.
    Seconds,
    /// CPU nanoseconds per update, node and edge.
    NanosecondsPerItem,
}

impl Measure {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Hops => "hops from end to end",
            Self::Size => "nodes and edges",
            Self::DegreeVariation => "std of degrees / mean",
            Self::Accuracy => "test accuracy, %",
            Self::TrainAccuracy => "training accuracy, %",
            Self::CheatingGap => "cheating gap, points",
            Self::Residual => "mean abs(x − f_a)",
            Self::ConvergedResidual => "largest abs(x − f_a)",
            Self::Converged => "graphs that converge, %",
            Self::UpdatesToResidual => "updates to the residual",
            Self::Updates => "updates",
            Self::Passes => "evaluations of f_a",
            Self::Iterations => "applications of f_a",
            Self::SpectralRadius => "spectral radius",
            Self::Seconds => "CPU seconds",
            Self::NanosecondsPerItem => "ns per node, edge and update",
        }
    }
}

/// What was measured at a point.
pub(crate) type Measured = BTreeMap<Measure, f64>;

/// Measures of the data themselves.
pub(super) fn of_data(dataset: &Dataset) -> Measured {
    let (nodes, edges) = (dataset.nodes(), dataset.edges());
    let mut degrees = vec![0_u32; nodes];
    for &(source, _) in edges {
        degrees[source as usize] += 1;
    }
    let count = nodes.max(1) as f64;
    let mean = degrees.iter().map(|&degree| f64::from(degree)).sum::<f64>() / count;
    let square = |degree: &u32| (f64::from(*degree) - mean).powi(2);
    let std = (degrees.iter().map(square).sum::<f64>() / count).sqrt();
    [
        (Measure::Hops, hops(dataset) as f64),
        (Measure::Size, (nodes + edges.len()) as f64),
        (Measure::DegreeVariation, if mean > 0.0 { std / mean } else { 0.0 }),
    ]
    .into()
}

/// The distance of the farthest node from the node that is farthest from the first: the diameter
/// of a tree, a lower bound otherwise.
fn hops(dataset: &Dataset) -> usize {
    let first = 0..dataset.node_starts().get(1).copied().unwrap_or(0);
    if first.is_empty() {
        return 0;
    }
    let mut starts = vec![0; first.end + 1];
    let inside = || dataset.edges().iter().filter(|(u, _)| (*u as usize) < first.end);
    for &(source, _) in inside() {
        starts[source as usize + 1] += 1;
    }
    for node in 0..first.end {
        starts[node + 1] += starts[node];
    }
    // Edges are sorted by source.
    let targets: Vec<usize> = inside().map(|&(_, target)| target as usize).collect();
    let farthest = |from: usize| {
        let mut distance = vec![usize::MAX; first.end];
        distance[from] = 0;
        let mut queue = VecDeque::from([from]);
        let mut last = from;
        while let Some(node) = queue.pop_front() {
            last = node;
            for &next in &targets[starts[node]..starts[node + 1]] {
                if distance[next] == usize::MAX {
                    distance[next] = distance[node] + 1;
                    queue.push_back(next);
                }
            }
        }
        (last, distance[last])
    };
    farthest(farthest(0).0).1
}

#[cfg(test)]
mod tests {
    use lpgnn::data::generate::{ChainsConfig, GridsConfig, TreesConfig};

    use super::*;

    #[test]
    fn hops_are_counted_from_end_to_end() {
        let chain = ChainsConfig { length: 8, ..ChainsConfig::default() }.generate(0).unwrap();
        let grid = GridsConfig { rows: 3, columns: 5, ..GridsConfig::default() };
        let tree = TreesConfig { depth: 3, stretch: 4, ..TreesConfig::default() };
        let of = |dataset: &Dataset| of_data(dataset)[&Measure::Hops];
        assert_eq!(of(&chain).to_bits(), 7.0_f64.to_bits());
        assert_eq!(of(&grid.generate(0).unwrap()).to_bits(), 6.0_f64.to_bits());
        assert_eq!(of(&tree.generate(0).unwrap()).to_bits(), 24.0_f64.to_bits());
        // 40 chains of 8 nodes and 14 edges.
        assert_eq!(of_data(&chain)[&Measure::Size].to_bits(), (40.0_f64 * 22.0).to_bits());
    }
}
