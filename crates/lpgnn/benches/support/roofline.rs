//! The least an update can take: `benchmarks/README.md` has the formula.

use lpgnn::graph::Features;

use super::machine::Machine;
use super::workload::Workload;

/// What an update of the GNN by `bdmm` cannot do without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Multiplications and additions of products.
    pub(crate) flops: f64,
    /// Values of tanh.
    pub(crate) tanhs: f64,
    /// Bytes from and to memory.
    pub(crate) bytes: f64,
}

impl Work {
    pub(crate) fn of(workload: &Workload, tanh: bool) -> Self {
        let batch = &workload.batch;
        let (nodes, pairs) = (batch.nodes() as f64, batch.neighbours().len() as f64);
        let rows = workload.level.rows(batch) as f64;
        let (s, h, k) = (workload.state as f64, workload.hidden as f64, workload.classes as f64);
        let m = batch.node_features().width() as f64;
        // Features that are not dense are gathered, not multiplied.
        let (dense, feature_bytes) = match batch.node_features() {
            Features::Dense(_) => (m, 4.0 * nodes * m),
            Features::OneHot(_) => (0.0, 4.0 * nodes),
            Features::Sparse(sparse) => (0.0, 8.0 * sparse.stored() as f64),
        };
        // Forward, into the states, into the weights; features have no gradient.
        let first = nodes * (3.0 * 2.0 * s * h + 2.0 * 2.0 * dense * h);
        let second = 3.0 * if tanh { pairs } else { nodes } * h * s;
        let output = 3.0 * rows * (s * h + h * k);
        Self {
            flops: 2.0 * (first + second + output),
            tanhs: pairs * h + if tanh { pairs * s } else { 0.0 } + rows * h,
            // X and its two moments, read and written; features; neighbours.
            bytes: 4.0 * 6.0 * nodes * s + feature_bytes + 4.0 * pairs,
        }
    }

    /// Milliseconds below which this machine cannot go.
    pub(crate) fn bound(self, machine: Machine) -> f64 {
        let arithmetic = self.flops / machine.peak + self.tanhs / machine.tanh;
        1e3 * arithmetic.max(self.bytes / machine.triad)
    }
}
