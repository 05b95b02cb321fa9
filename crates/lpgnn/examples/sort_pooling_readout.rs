//! A custom `SortPooling` read-out: checked, trained, saved, loaded and predicted with.

use lpgnn::data::{Categories, Dataset, DatasetParts, FeatureColumns, TargetColumn};
use lpgnn::graph::{GraphBatch, Level};
use lpgnn::parameters::Parameters;
use lpgnn::readout::{
    Mlp, MlpGradients, MlpInput, Readout, ReadoutGradients, ReadoutInput, Supervision,
};
use lpgnn::registry::{Options, Registry};
use lpgnn::run::{RunConfig, SavedModel, Setup};
use lpgnn::train::{ModelConfig, Trainer};
use lpgnn::{Error, Matrix, Scalar, Scratch, check, network::Network};

/// A network of the `k` nodes with the largest last component, in that order, one after the other;
/// zeros where a graph has fewer (Zhang et al., 2018).
#[derive(Debug)]
struct SortPooling {
    inputs: usize,
    mlp: Mlp,
}

impl SortPooling {
    fn new(k: usize, inputs: usize, outputs: usize) -> Self {
        Self { inputs, mlp: Mlp::new(k * inputs, outputs, Network::one_hidden(16), 0.0) }
    }

    /// The places in the pooled rows, each with the node that belongs there.
    fn chosen<S: Scalar>(&self, input: ReadoutInput<'_, S>) -> Vec<(usize, usize)> {
        let (width, states) = (self.mlp.inputs(), input.states());
        let of_graph = |graph: usize| {
            let mut nodes: Vec<usize> = input.batch.nodes_of(graph).collect();
            let key = |v: usize| states.row(v)[self.inputs - 1].f64();
            nodes.sort_by(|&a, &b| key(b).total_cmp(&key(a)));
            (graph * width..(graph + 1) * width).step_by(self.inputs).zip(nodes)
        };
        (0..input.batch.graphs()).flat_map(of_graph).collect()
    }

    fn pooled<S: Scalar>(&self, input: ReadoutInput<'_, S>) -> Vec<S> {
        let mut pooled = vec![S::ZERO; input.batch.graphs() * self.mlp.inputs()];
        let states = input.states();
        for (place, v) in self.chosen(input) {
            pooled[place..place + self.inputs].copy_from_slice(states.row(v));
        }
        pooled
    }
}

impl<S: Scalar> Readout<S> for SortPooling {
    fn parameters(&self) -> &Parameters {
        self.mlp.parameters()
    }

    fn level(&self) -> Level {
        Level::Graph
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    #[rustfmt::skip]
    fn forward(&self, w: &[S], input: ReadoutInput<'_, S>, y: &mut Matrix<S>, scratch: &Scratch<S>) {
        let pooled = self.pooled(input);
        let rows = MlpInput { dropout: input.dropout, ..pooled[..].into() };
        self.mlp.forward(w, rows, y, scratch);
    }

    #[rustfmt::skip]
    fn backward(&self, w: &[S], input: ReadoutInput<'_, S>, d_y: &Matrix<S>, to: ReadoutGradients<'_, S>, scratch: &Scratch<S>) {
        let (pooled, mut d) = (self.pooled(input), self.pooled(input));
        let gradients = MlpGradients { weights: to.weights, rows: Some(&mut d), features: None };
        let rows = MlpInput { dropout: input.dropout, ..pooled[..].into() };
        self.mlp.backward(w, rows, d_y, gradients, scratch);
        let Some(d_states) = to.states else { return };
        for (place, v) in self.chosen(input) {
            d_states.row_mut(v).iter_mut().zip(&d[place..]).for_each(|(to, &d)| *to += d);
        }
    }
}

/// Rings and, one in three, paths of 4 to 13 nodes: which are paths?
fn rings_and_paths(graphs: u32) -> Result<Dataset, Error> {
    let (mut node_starts, mut edges, mut class, mut first) = (vec![0], vec![], vec![], 0);
    for graph in 0..graphs {
        let (size, is_path) = (4 + graph % 10, graph % 3 == 0);
        let pairs = (u32::from(is_path)..size).map(|v| (first + (v + size - 1) % size, first + v));
        edges.extend(pairs.flat_map(|(u, v)| [(u, v), (v, u)]));
        first += size;
        node_starts.push(first as usize);
        class.push(if is_path { "path" } else { "ring" });
    }
    Dataset::new(DatasetParts {
        name: "rings and paths".into(),
        node_features: FeatureColumns::none(first as usize),
        edge_features: FeatureColumns::none(edges.len()),
        graph_targets: Some(TargetColumn::Classes(Categories::from_text("class", &class))),
        node_targets: None,
        split: None,
        node_starts,
        edges,
    })
}

fn main() -> Result<(), Error> {
    let graph = |nodes: usize| GraphBatch::graph(&vec![vec![]; nodes], &[]);
    check::readout(&SortPooling::new(2, 3, 4), &GraphBatch::union(&[graph(3)?, graph(1)?])?, 1)?;
    let registry = Registry::default().with_readout("sort-pooling", |spec| {
        let k = spec.model.readout_options.get("k")?.unwrap_or(5);
        Ok(Box::new(SortPooling::new(k, spec.inputs, spec.outputs)))
    });
    let dataset = rings_and_paths(120)?;
    let mut config = RunConfig::for_data("rings and paths", &dataset, &[]);
    let (readout, readout_options) = ("sort-pooling".into(), Options::default().with("k", 12));
    config.model = ModelConfig { readout, readout_options, ..ModelConfig::default() };
    let setup = Setup::with_registry(&registry, &config, &dataset, None)?;
    let trained = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?.run(&mut ())?;
    let model = SavedModel::new(&setup, &config, "rings", trained.epoch, trained.weights);
    let loaded = SavedModel::from_bytes_with(&registry, &model.to_bytes()?)?;
    let said = loaded.predict(&dataset, true)?;
    assert_eq!(said.outputs, model.predict(&dataset, true)?.outputs);
    let (right, all) = Supervision::all(said.batch.graph_targets().clone()).correct(&said.outputs);
    assert!(10 * right > 8 * all, "{right} of {all}, of which two thirds are rings");
    Ok(())
}
