use std::fmt::Debug;

use super::handed::Handed;
use crate::constraint::Constraint;
use crate::graph::{FeaturesView, GraphBatch};
use crate::lagrangian::Variables;
use crate::normalization::{GraphNorm, Normalization};
use crate::numeric::{Scratch, SpareMatrix};
use crate::parameters::Parameters;
use crate::readout::Readout;
use crate::transition::{Input, Kept, Transition, forward_all};
use crate::{Error, Matrix, Scalar};

/// The functions of an LP-GNN: `f_a` of every layer, `f_r`, `G`, and what they read.
///
/// Layer 1 reads the features of the nodes; layer `k` reads layer `k − 1` in their place, its states
/// `x` or `f_a(x)`, as the read-out does. Both may be [normalised](Normalization) on the way.
#[derive(Debug)]
pub struct Model<S: Scalar = f32> {
    transitions: Vec<Box<dyn Transition<S>>>,
    /// Of what every layer hands on; empty if that is not normalised.
    normalizations: Vec<GraphNorm>,
    readout: Box<dyn Readout<S>>,
    reads: Reads,
    constraint: Box<dyn Constraint<S>>,
    multipliers: Multipliers,
    /// Those of all functions, with prefixes.
    parameters: Parameters,
}

/// The parameters of all functions, with prefixes.
fn declare<S: Scalar>(
    transitions: &[Box<dyn Transition<S>>],
    normalizations: &[GraphNorm],
    readout: &dyn Readout<S>,
) -> Parameters {
    let mut all = Parameters::new();
    for (layer, transition) in transitions.iter().enumerate() {
        all = all.with_all(&format!("transition.{layer}"), transition.parameters());
    }
    for (layer, normalization) in normalizations.iter().enumerate() {
        all = all.with_all(&format!("normalization.{layer}"), &normalization.parameters());
    }
    all.with_all("readout", readout.parameters())
}

/// What the read-out reads.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Reads {
    /// The states `x`, or `f_a(x)`.
    #[schemars(extend("x-data-default" = "transition"))]
    pub from: ReadFrom,
    /// Layers that the read-out reads.
    #[schemars(extend("x-data-default" = "all for graphs with one-shot, otherwise last"))]
    pub layers: ReadLayers,
    /// Whether node features are read too, in addition to the layers.
    ///
    /// With them, a read-out with a hidden layer contains the MLP without edges. For graphs, features are pooled like
    /// states.
    #[schemars(extend("x-data-default" = "true for nodes, and for graphs with one layer and mini-batches"))]
    pub features: bool,
}

/// The states `x`, or `f_a(x)`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ReadFrom {
    /// `x_v`, as in the paper.
    #[default]
    State,
    /// `f_{a,v}(X)`, as in its authors' code.
    ///
    /// What a cheating state gains is lost on the way, and the layers of a stack are never behind
    /// each other.
    Transition,
}

/// Which layers the read-out reads.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ReadLayers {
    /// The last layer.
    #[default]
    Last,
    /// All layers, concatenated.
    All,
}

/// How many multipliers a node has, per layer.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Multipliers {
    /// One, as in the paper: `λ_v Σ_i G(x_vi − f_vi)`.
    #[default]
    PerNode,
    /// One per component: `Σ_i λ_vi G(x_vi − f_vi)`.
    PerComponent,
}

impl<S: Scalar> Model<S> {
    /// A model from its functions.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when there is no layer, when the read-out reads another number of
    /// components than there are, when two parameters of a function have the same name, or when `G` takes both signs and there is one multiplier per
    /// node: then only the sum of a node's residuals would be held at zero, and states drift away.
    pub fn new(
        transitions: Vec<Box<dyn Transition<S>>>,
        readout: Box<dyn Readout<S>>,
        reads: Reads,
        constraint: Box<dyn Constraint<S>>,
        multipliers: Multipliers,
    ) -> Result<Self, Error> {
        let Some(last) = transitions.last() else {
            return Err(Error::Mismatch(
                "the model has no layers, but at least one is expected".into(),
            ));
        };
        let read = match reads.layers {
            ReadLayers::Last => last.state_dim(),
            ReadLayers::All => transitions.iter().map(|layer| layer.state_dim()).sum(),
        };
        if read != readout.inputs() {
            return Err(Error::Mismatch(format!(
                "f_a gives the read-out {read} components, but it reads {}",
                readout.inputs()
            )));
        }
        if constraint.takes_both_signs() && multipliers == Multipliers::PerNode {
            return Err(Error::Mismatch(format!(
                "G = {constraint:?} with one multiplier per node only holds the sum of a node's \
                 residuals at zero, and states drift away; give it one per component"
            )));
        }
        let parameters = declare(&transitions, &[], readout.as_ref());
        parameters.check()?;
        let normalizations = vec![];
        Ok(Self {
            transitions,
            normalizations,
            readout,
            reads,
            constraint,
            multipliers,
            parameters,
        })
    }

    /// The same, whose layers hand on their states in another form.
    #[must_use]
    pub fn with_normalization(mut self, normalization: Normalization) -> Self {
        self.normalizations = match normalization {
            Normalization::None => vec![],
            Normalization::GraphNorm => {
                self.transitions().map(|layer| GraphNorm::new(layer.state_dim())).collect()
            }
        };
        self.parameters = declare(&self.transitions, &self.normalizations, self.readout.as_ref());
        self
    }

    /// Whether it can read these graphs.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when features have other lengths than its functions read.
    pub fn check(&self, batch: &GraphBatch<S>) -> Result<(), Error> {
        if !self.normalizations.is_empty() && (batch.share().is_some() || batch.across().is_some())
        {
            return Err(Error::Mismatch(
                "the model uses GraphNorm, which needs whole graphs: several processes and graphs in parts do not \
                 support it"
                    .into(),
            ));
        }
        let (reads, width) = (self.readout.features(), batch.node_features().width());
        if reads > 0 && reads != width {
            return Err(Error::Mismatch(format!(
                "the read-out reads {reads} features of a node, but the nodes have {width}"
            )));
        }
        let mut below = None;
        for transition in &self.transitions {
            let states = below.map(|width| Matrix::zeros(batch.nodes(), width));
            let features = match &states {
                None => batch.node_features().view(),
                Some(states) => FeaturesView::Dense(states),
            };
            transition.check(features, batch.edge_features().view())?;
            below = Some(transition.state_dim());
        }
        Ok(())
    }

    /// The transition function of every layer.
    pub fn transitions(
        &self,
    ) -> impl ExactSizeIterator<Item = &dyn Transition<S>> + DoubleEndedIterator {
        self.transitions.iter().map(AsRef::as_ref)
    }

    /// The transition function of one layer.
    ///
    /// # Panics
    ///
    /// When there is no such layer.
    pub fn transition(&self, layer: usize) -> &dyn Transition<S> {
        self.transitions[layer].as_ref()
    }

    /// `K`, the number of layers.
    pub fn layers(&self) -> usize {
        self.transitions.len()
    }

    /// `f_r`
    pub fn readout(&self) -> &dyn Readout<S> {
        self.readout.as_ref()
    }

    /// What the read-out reads.
    pub fn reads(&self) -> Reads {
        self.reads
    }

    /// `G`
    pub fn constraint(&self) -> &dyn Constraint<S> {
        self.constraint.as_ref()
    }

    /// The number of multipliers of a node.
    pub fn multipliers(&self) -> Multipliers {
        self.multipliers
    }

    /// The parameters of all functions, in the order of their weights: `transition.0.…` of the first
    /// layer, and so on, `normalization.0.…` likewise if there is one, then `readout.…`.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Number of weights, of all functions.
    pub fn weights(&self) -> usize {
        self.parameters.weights()
    }

    /// The weights of the transition of `layer`, among all weights.
    pub fn transition_weights(&self, layer: usize) -> std::ops::Range<usize> {
        let weights = |transition: &dyn Transition<S>| transition.parameters().weights();
        let start = self.transitions().take(layer).map(weights).sum::<usize>();
        start..start + weights(self.transitions[layer].as_ref())
    }

    /// How every layer normalises what it hands on; empty if none does.
    pub fn normalizations(&self) -> &[GraphNorm] {
        &self.normalizations
    }

    /// The weights of the normalisation of `layer`, among all weights.
    pub(crate) fn normalization_weights(&self, layer: usize) -> std::ops::Range<usize> {
        let weights = |norm: &GraphNorm| norm.parameters().weights();
        let behind = self.transition_weights(self.layers() - 1).end;
        let start = behind + self.normalizations[..layer].iter().map(weights).sum::<usize>();
        start..start + weights(&self.normalizations[layer])
    }

    /// The weights of the read-out, among all weights.
    pub fn readout_weights(&self) -> std::ops::Range<usize> {
        self.weights() - self.readout.parameters().weights()..self.weights()
    }

    /// Where training starts: weights drawn as they are declared, states and multipliers zero.
    ///
    /// `draw` gives uniform numbers in `[0, 1)`.
    pub fn start(&self, nodes: usize, draw: &mut dyn FnMut() -> f64) -> Variables<S> {
        let mut weights = vec![S::ZERO; self.weights()];
        self.parameters.initialize(draw, &mut weights);
        self.zeros(nodes, weights)
    }

    /// The point with these weights at which states and multipliers are zero.
    pub fn zeros(&self, nodes: usize, weights: Vec<S>) -> Variables<S> {
        let multiplier = |state| match self.multipliers {
            Multipliers::PerNode => 1,
            Multipliers::PerComponent => state,
        };
        let widths = || self.transitions().map(Transition::state_dim);
        Variables {
            weights,
            states: widths().map(|width| Matrix::zeros(nodes, width)).collect(),
            multipliers: widths().map(|width| Matrix::zeros(nodes, multiplier(width))).collect(),
        }
    }

    /// `f_a` of the first `count` layers, and what layers hand on.
    pub(crate) fn f_x<'s>(
        &self,
        count: usize,
        weights: &[S],
        batch: &GraphBatch<S>,
        states: &[Matrix<S>],
        scratch: &'s Scratch<S>,
    ) -> Handed<'s, S> {
        self.handing_on(count, weights, (batch, states), scratch, |layer, handed| {
            let transition = self.transition(layer);
            let below = self.below(layer, states, handed);
            let mut f = scratch.matrix(batch.nodes(), transition.state_dim());
            let weights = &weights[self.transition_weights(layer)];
            forward_all(transition, weights, (batch, below), &states[layer], &mut f, scratch);
            f
        })
    }

    /// The same, and what is kept of each layer for the pass that follows.
    pub(crate) fn f_x_keeping<'s>(
        &self,
        count: usize,
        weights: &[S],
        batch: &GraphBatch<S>,
        states: &[Matrix<S>],
        scratch: &'s Scratch<S>,
    ) -> (Handed<'s, S>, Vec<Kept<'s, S>>) {
        let mut kept = vec![];
        let handed = self.handing_on(count, weights, (batch, states), scratch, |layer, handed| {
            let transition = self.transition(layer);
            let node_features = self.features(layer, batch, states, handed);
            let input = Input { node_features, ..Input::of(batch, &states[layer]) };
            let mut f = scratch.matrix(batch.nodes(), transition.state_dim());
            let weights = &weights[self.transition_weights(layer)];
            kept.push(transition.forward_keeping(weights, input, &mut f, scratch));
            f
        });
        (handed, kept)
    }

    /// Layer by layer, each of which reads what the one below hands on. Where `x` is handed on, every layer does.
    fn handing_on<'s>(
        &self,
        count: usize,
        weights: &[S],
        (batch, states): (&GraphBatch<S>, &[Matrix<S>]),
        scratch: &'s Scratch<S>,
        mut f_x: impl FnMut(usize, &Handed<'s, S>) -> SpareMatrix<'s, S>,
    ) -> Handed<'s, S> {
        let mut handed = Handed::new();
        for layer in 0..states.len() {
            if layer < count {
                let f = f_x(layer, &handed);
                handed.f_x.push(f);
            }
            if layer < count || self.reads.from == ReadFrom::State {
                self.hand_on(layer, weights, (batch, states), &mut handed, scratch);
            }
        }
        handed
    }

    /// The features that `layer` reads: those of the graphs, or what the read-out would read of the
    /// layer below.
    pub(crate) fn features<'a>(
        &self,
        layer: usize,
        batch: &'a GraphBatch<S>,
        states: &'a [Matrix<S>],
        handed: &'a Handed<'_, S>,
    ) -> FeaturesView<'a, S> {
        let below = self.below(layer, states, handed);
        below.map_or(batch.node_features().view(), FeaturesView::Dense)
    }

    /// The layers that the read-out reads.
    pub(crate) fn read_layers(&self) -> std::ops::Range<usize> {
        match self.reads.layers {
            ReadLayers::Last => self.layers() - 1..self.layers(),
            ReadLayers::All => 0..self.layers(),
        }
    }
}
