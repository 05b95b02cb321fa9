//! The parameters of a function, declared once: what they are called, their shapes, what they
//! multiply, and how they start.
//!
//! Everything that has to know about matrices follows from the declaration: the number of weights,
//! where they start, which of them never move or do not decay, the names of the tensors in a model
//! file, which matrices are scaled down to a Lipschitz bound, and which layers descend in
//! standardised coordinates. The weights themselves are one flat slice that comes from outside.
//!
//! ```
//! use lpgnn::parameters::{Parameters, Role};
//!
//! // tanh(A x_u + B l_v + b), then W: states of 4 components, features of 3.
//! let parameters = Parameters::new()
//!     .layer("0", 8)
//!     .weight("state", Role::NeighbourState, 4)
//!     .weight("features", Role::Input, 3)
//!     .bias()
//!     .layer("1", 4)
//!     .weight("", Role::Hidden, 8);
//! assert_eq!(parameters.weights(), 4 * 8 + 3 * 8 + 8 + 8 * 4);
//! let names: Vec<&str> = parameters.iter().map(|(parameter, _)| parameter.name()).collect();
//! assert_eq!(names, ["0.weight.state", "0.weight.features", "0.bias", "1.weight"]);
//! ```

use std::borrow::Cow;
use std::ops::Range;

use crate::graph::Reduce;
use crate::network::StateWeights;
use crate::numeric::padded;
use crate::{Error, Scalar};

/// A matrix of weights, or a bias.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    name: String,
    layer: String,
    rows: usize,
    columns: usize,
    role: Role,
    init: Init,
    frozen: bool,
    decays: bool,
}

/// What a parameter multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The state of a neighbour, or a sum over neighbours; scaled down to a Lipschitz bound.
    NeighbourState,
    /// The state of the node itself; scaled down to a Lipschitz bound.
    OwnState,
    /// What the function is given besides states: the features of nodes or the layer below; of a
    /// read-out, what it reads of the states.
    Input,
    /// The features of edges.
    EdgeFeatures,
    /// Of a read-out, the features of nodes, which it reads besides states.
    Features,
    /// What the layer below it has made of all that.
    Hidden,
    /// Nothing: it is added.
    Bias,
    /// What is normalised, component by component.
    Scale,
}

impl Role {
    /// Whether it multiplies states directly.
    pub fn is_state(self) -> bool {
        matches!(self, Self::NeighbourState | Self::OwnState)
    }
}

/// How a parameter starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Uniform in `±√(6 / (inputs + outputs))` of its layer.
    Glorot,
    /// Uniform between two numbers.
    Uniform(f64, f64),
    /// The identity, as far as it goes.
    Identity,
    /// Zero.
    Zeros,
}

impl Parameter {
    /// Its name among those of its function, as in `0.weight.own_state`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The layer it belongs to: all that is added up before an activation.
    pub fn layer(&self) -> &str {
        &self.layer
    }

    /// Rows and columns of a matrix `[inputs, outputs]`, or the length of a bias.
    pub fn shape(&self) -> Vec<usize> {
        match self.role {
            Role::Bias | Role::Scale => vec![self.columns],
            _ => vec![self.rows, self.columns],
        }
    }

    /// What it multiplies.
    pub fn role(&self) -> Role {
        self.role
    }

    /// How it starts.
    pub fn init(&self) -> Init {
        self.init
    }

    /// Whether it stays what it starts as.
    pub fn frozen(&self) -> bool {
        self.frozen
    }

    /// Whether weight decay and the L2 penalty apply to it.
    pub fn decays(&self) -> bool {
        self.decays
    }
}

/// The parameters of a function, in the order in which they lie in its flat weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    list: Vec<Parameter>,
    /// The same as the kernels need it.
    blocks: Vec<Block>,
    len: usize,
    padded_len: usize,
    /// The layer that is being declared, and its units.
    open: (String, usize),
}

/// Where a matrix lies in the weights, and in padded partial gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    rows: usize,
    columns: usize,
    at: usize,
    padded_at: usize,
}

/// To declare them.
impl Parameters {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a layer of so many units: `Σ_i W_iᵀ z_i + b`, of the weights and the bias declared next.
    #[must_use]
    pub fn layer(mut self, name: impl Into<String>, units: usize) -> Self {
        self.open = (name.into(), units);
        self
    }

    /// Declares a matrix `[inputs, units]` of the layer. It is called `layer.weight.part`, or
    /// `layer.weight` when `part` is empty, and starts [as Glorot](Init::Glorot) says.
    #[must_use]
    pub fn weight(self, part: &str, role: Role, inputs: usize) -> Self {
        let (layer, dot) = (&self.open.0, if part.is_empty() { "" } else { "." });
        let name = format!("{layer}.weight{dot}{part}");
        self.push(name, role, inputs, Init::Glorot)
    }

    /// Declares the bias of the layer. It is called `layer.bias` and starts at zero.
    #[must_use]
    pub fn bias(self) -> Self {
        let name = format!("{}.bias", self.open.0);
        self.push(name, Role::Bias, 1, Init::Zeros)
    }

    /// Declares a vector with a number per unit of the layer, called `layer.name`; it starts at zero.
    #[must_use]
    pub fn vector(self, name: &str, role: Role) -> Self {
        let name = format!("{}.{name}", self.open.0);
        self.push(name, role, 1, Init::Zeros)
    }

    /// Lets what was declared last start in another way.
    #[must_use]
    pub fn starting(mut self, init: Init) -> Self {
        if let Some(last) = self.list.last_mut() {
            last.init = init;
        }
        self
    }

    /// Keeps what was declared last as it starts.
    #[must_use]
    pub fn freeze(mut self) -> Self {
        if let Some(last) = self.list.last_mut() {
            last.frozen = true;
        }
        self
    }

    /// Exempts what was declared last from weight decay and the L2 penalty.
    #[must_use]
    pub fn without_decay(mut self) -> Self {
        if let Some(last) = self.list.last_mut() {
            last.decays = false;
        }
        self
    }

    /// Lets the matrices that pass on what neighbours say, which are those of
    /// [`Role::NeighbourState`] and [`Role::Hidden`], start as `state_weights` says.
    #[must_use]
    pub fn with_state_weights(mut self, state_weights: StateWeights) -> Self {
        for parameter in &mut self.list {
            if matches!(parameter.role, Role::NeighbourState | Role::Hidden) {
                let random = state_weights == StateWeights::Random;
                parameter.init = if random { Init::Glorot } else { Init::Identity };
                parameter.frozen = state_weights == StateWeights::Frozen;
            }
        }
        self
    }

    /// Declares those of another function behind these, with a prefix to their names.
    #[must_use]
    pub fn with_all(mut self, prefix: &str, other: &Self) -> Self {
        for parameter in &other.list {
            let name = format!("{prefix}.{}", parameter.name);
            let layer = format!("{prefix}.{}", parameter.layer);
            self.insert(Parameter { name, layer, ..parameter.clone() });
        }
        self
    }

    fn push(mut self, name: String, role: Role, rows: usize, init: Init) -> Self {
        let (layer, columns) = self.open.clone();
        let (frozen, decays) = (false, true);
        self.insert(Parameter { name, layer, rows, columns, role, init, frozen, decays });
        self
    }

    fn insert(&mut self, parameter: Parameter) {
        let Parameter { rows, columns, .. } = parameter;
        let (at, padded_at) = (self.len, self.padded_len);
        self.blocks.push(Block { rows, columns, at, padded_at });
        self.len += rows * columns;
        self.padded_len += rows * padded(columns);
        self.list.push(parameter);
    }
}

/// What follows from the declaration.
impl Parameters {
    /// Number of weights.
    pub fn weights(&self) -> usize {
        self.len
    }

    /// All of them, each with its place among the weights.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Parameter, Range<usize>)> {
        self.list.iter().enumerate().map(|(number, parameter)| (parameter, self.range(number)))
    }

    /// Where parameter `number`, counted in the order of declaration, lies among the weights.
    pub fn range(&self, number: usize) -> Range<usize> {
        let Block { rows, columns, at, .. } = self.blocks[number];
        at..at + rows * columns
    }

    /// Parameter `number` of the weights, row by row.
    pub fn of<'a, S>(&self, number: usize, weights: &'a [S]) -> &'a [S] {
        let Block { rows, columns, at, .. } = self.blocks[number];
        &weights[at..][..rows * columns]
    }

    /// The same, to be changed.
    pub fn of_mut<'a, S>(&self, number: usize, weights: &'a mut [S]) -> &'a mut [S] {
        let Block { rows, columns, at, .. } = self.blocks[number];
        &mut weights[at..][..rows * columns]
    }

    /// # Errors
    ///
    /// [`Error::Mismatch`] when two have the same name.
    pub fn check(&self) -> Result<(), Error> {
        let mut names: Vec<&str> = self.list.iter().map(Parameter::name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            None => Ok(()),
            Some(pair) => Err(Error::Mismatch(format!(
                "two parameters are called {}; every parameter needs a name of its own",
                pair[0]
            ))),
        }
    }

    /// Weights to start from; `draw` gives uniform numbers in `[0, 1)`.
    ///
    /// One number is drawn for every weight, needed or not: so how one parameter starts does not
    /// change how the others do.
    pub fn initialize<S: Scalar>(&self, draw: &mut dyn FnMut() -> f64, weights: &mut [S]) {
        for (number, parameter) in self.list.iter().enumerate() {
            let Parameter { rows, columns, .. } = *parameter;
            let bound = (6.0 / (self.inputs(parameter) + columns).max(1) as f64).sqrt();
            let weights = self.of_mut(number, weights);
            for w in &mut *weights {
                let uniform = draw();
                *w = match parameter.init {
                    Init::Glorot => S::of(bound * (2.0 * uniform - 1.0)),
                    Init::Uniform(low, high) => S::of(low + (high - low) * uniform),
                    Init::Identity | Init::Zeros => S::ZERO,
                };
            }
            if parameter.init == Init::Identity {
                (0..rows.min(columns)).for_each(|i| weights[i * columns + i] = S::ONE);
            }
        }
    }

    /// All inputs of the layer of a parameter.
    fn inputs(&self, parameter: &Parameter) -> usize {
        let layer = self.list.iter().filter(|other| other.layer == parameter.layer);
        layer.filter(|other| other.role != Role::Bias).map(|other| other.rows).sum()
    }

    /// Where the weights are that stay what they start as.
    pub fn frozen(&self) -> Vec<Range<usize>> {
        self.ranges(Parameter::frozen)
    }

    /// Where the weights are to which weight decay and the L2 penalty do not apply.
    pub fn undecayed(&self) -> Vec<Range<usize>> {
        self.ranges(|parameter| !parameter.decays)
    }

    fn ranges(&self, wanted: impl Fn(&Parameter) -> bool) -> Vec<Range<usize>> {
        self.iter().filter(|(parameter, _)| wanted(parameter)).map(|(_, range)| range).collect()
    }

    /// Multiplies every matrix that multiplies states, and no other.
    pub fn scale_states<S: Scalar>(&self, weights: &mut [S], factor: f64) {
        for range in self.ranges(|parameter| parameter.role.is_state()) {
            weights[range].iter_mut().for_each(|w| *w *= S::of(factor));
        }
    }

    /// The numbers of those of a role, in the order of declaration.
    pub(crate) fn of_role(&self, role: Role) -> impl Iterator<Item = usize> {
        (0..self.list.len()).filter(move |&number| self.list[number].role == role)
    }

    /// The layers that are linear in inputs of this role and `width` components and have a bias: these may descend
    /// in coordinates of their own.
    pub(crate) fn layers_reading(&self, role: Role, width: usize) -> Vec<InputLayer> {
        let reads = |number: &usize| self.list[*number].rows > 0;
        let inputs: Vec<usize> = self.of_role(role).filter(reads).collect();
        self.of_role(Role::Bias)
            .filter_map(|bias| {
                let same = |input: &usize| self.list[*input].layer == self.list[bias].layer;
                let inputs: Vec<usize> = inputs.iter().copied().filter(same).collect();
                let linear = inputs.iter().all(|&input| self.list[input].rows == width);
                (linear && !inputs.is_empty()).then(|| InputLayer {
                    matrices: inputs.into_iter().map(|input| self.blocks[input].at).collect(),
                    bias: self.blocks[bias].at,
                    units: self.blocks[bias].columns,
                })
            })
            .collect()
    }

    /// Units of the layer that was declared last.
    pub(crate) fn units_of_last_layer(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.columns)
    }

    /// The matrices and the bias of the layer that was declared last.
    pub(crate) fn last_layer(&self) -> (Vec<Range<usize>>, Option<Range<usize>>) {
        let layer = self.list.last().map_or("", Parameter::layer);
        let bias = self.ranges(|p| p.layer == layer && p.role == Role::Bias).pop();
        (self.ranges(|p| p.layer == layer && p.role != Role::Bias), bias)
    }
}

/// The places below `len` that none of these ranges covers; they lie in order.
pub(crate) fn others(len: usize, ranges: &[Range<usize>]) -> impl Iterator<Item = Range<usize>> {
    let starts = std::iter::once(0).chain(ranges.iter().map(|range| range.end));
    let ends = ranges.iter().map(|range| range.start).chain([len]);
    starts.zip(ends).map(|(start, end)| start..end).filter(|range| !range.is_empty())
}

/// A layer of units `Σ_i W_iᵀ p_i + b` that reads something: where it lies among the weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputLayer {
    /// Where each matrix starts that multiplies what is read; it has a row per component.
    pub(crate) matrices: Vec<usize>,
    /// Where `b` starts.
    pub(crate) bias: usize,
    /// Numbers in a row, and in `b`.
    pub(crate) units: usize,
}

impl InputLayer {
    /// The same among weights of which its function's start at `at`.
    #[must_use]
    pub(crate) fn after(mut self, at: usize) -> Self {
        self.matrices.iter_mut().for_each(|matrix| *matrix += at);
        self.bias += at;
        self
    }
}

/// Entries of a matrix above which a copy costs more than rows that start where lines of the cache do not.
const LARGE: usize = 1 << 15;

/// For the kernels, which work on padded rows.
impl Parameters {
    /// Length of a partial gradient.
    pub(crate) fn padded_len(&self) -> usize {
        self.padded_len
    }

    /// Rows of parameter `number`.
    pub(crate) fn rows(&self, number: usize) -> usize {
        self.blocks[number].rows
    }

    /// Columns of parameter `number`.
    pub(crate) fn columns(&self, number: usize) -> usize {
        self.blocks[number].columns
    }

    /// Parameter `number` of a partial gradient, with padded rows.
    pub(crate) fn partial<'a, S>(&self, number: usize, partial: &'a mut [S]) -> &'a mut [S] {
        let Block { rows, columns, padded_at, .. } = self.blocks[number];
        &mut partial[padded_at..][..rows * padded(columns)]
    }

    /// The same in partial gradients that leave out these parameters, though not the weights.
    #[must_use]
    pub(crate) fn without_partials(&self, numbers: &[usize]) -> Self {
        let mut narrow = self.clone();
        narrow.padded_len = 0;
        for (number, block) in narrow.blocks.iter_mut().enumerate() {
            if numbers.contains(&number) {
                block.rows = 0;
            }
            block.padded_at = narrow.padded_len;
            narrow.padded_len += block.rows * padded(block.columns);
        }
        narrow
    }

    /// Parameter `number` of the weights with its rows padded; a large one that needs no padding is not copied.
    pub(crate) fn padded<'a, S: Scalar>(&self, number: usize, weights: &'a [S]) -> Cow<'a, [S]> {
        let Block { rows, columns, .. } = self.blocks[number];
        if columns == padded(columns) && rows * columns >= LARGE {
            Cow::Borrowed(self.of(number, weights))
        } else {
            Cow::Owned(self.padded_copy(number, weights))
        }
    }

    /// Parameter `number` of the weights with its rows padded.
    pub(crate) fn padded_copy<S: Scalar>(&self, number: usize, weights: &[S]) -> Vec<S> {
        let Block { rows, columns, .. } = self.blocks[number];
        let mut copy = vec![S::ZERO; rows * padded(columns)];
        if columns > 0 {
            let to = copy.chunks_exact_mut(padded(columns));
            for (to, from) in to.zip(self.of(number, weights).chunks_exact(columns)) {
                to[..columns].copy_from_slice(from);
            }
        }
        copy
    }

    /// `∂𝓛/∂θ` increased by the partial gradients of the groups of all processes, in their order.
    pub(crate) fn reduce<S: Scalar>(
        &self,
        reduce: &dyn Reduce<S>,
        own: &[&[S]],
        d_weights: &mut [S],
    ) {
        match reduce.sum(own, self.padded_len()) {
            None => self.fold(&own.iter().copied(), d_weights),
            Some(sum) => self.fold(&std::iter::once(&sum[..]), d_weights),
        }
    }

    /// `∂𝓛/∂θ` increased by the sum of partial gradients, always in the same order.
    pub(crate) fn fold<'a, S: Scalar>(
        &self,
        partials: &(impl Iterator<Item = &'a [S]> + Clone),
        d_weights: &mut [S],
    ) {
        for &Block { rows, columns, at, padded_at } in &self.blocks {
            for row in 0..rows {
                let d = &mut d_weights[at + row * columns..][..columns];
                for partial in partials.clone() {
                    let from = &partial[padded_at + row * padded(columns)..][..columns];
                    for (d, &x) in d.iter_mut().zip(from) {
                        *d += x;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::uniform;

    fn two_layers() -> Parameters {
        Parameters::new()
            .layer("0", 4)
            .weight("state", Role::NeighbourState, 2)
            .weight("own_state", Role::OwnState, 2)
            .weight("features", Role::Input, 3)
            .bias()
            .layer("1", 2)
            .weight("", Role::Hidden, 4)
            .bias()
    }

    #[test]
    fn names_and_places_follow_the_declaration() {
        let all = Parameters::new().with_all("transition.0", &two_layers());
        let found: Vec<_> = all.iter().map(|(p, range)| (p.name(), p.shape(), range)).collect();
        assert_eq!(found[0], ("transition.0.0.weight.state", vec![2, 4], 0..8));
        assert_eq!(found[3], ("transition.0.0.bias", vec![4], 28..32));
        assert_eq!(found[4], ("transition.0.1.weight", vec![4, 2], 32..40));
        assert_eq!(all.weights(), 42);
    }

    #[test]
    fn a_layer_as_a_whole_sets_the_size_of_its_weights() {
        let parameters = two_layers();
        let mut weights = vec![f64::NAN; parameters.weights()];
        let mut extreme = [1.0 - f64::EPSILON, 0.0].into_iter().cycle();
        parameters.initialize(&mut || extreme.next().unwrap(), &mut weights);
        // Seven inputs and four units; four inputs and two units.
        assert!((weights[0] - (6.0_f64 / 11.0).sqrt()).abs() < 1e-9);
        assert!((weights[33] + 1.0).abs() < 1e-9);
        assert!(weights[28..32].iter().all(|&b| b == 0.0), "biases start at zero");
    }

    #[test]
    fn how_one_parameter_starts_does_not_change_the_others() {
        let start = |parameters: &Parameters| {
            let mut weights = vec![0.0_f32; parameters.weights()];
            parameters.initialize(&mut uniform(3), &mut weights);
            weights
        };
        let random = start(&two_layers());
        let held = two_layers().with_state_weights(StateWeights::Frozen);
        let identity = start(&held);
        assert_eq!(identity[..8], [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        assert_eq!(identity[8..32], random[8..32]);
        assert_eq!(held.frozen(), [0..8, 32..40]);
        assert_eq!(two_layers().frozen(), []);
    }

    #[test]
    fn only_what_multiplies_states_is_scaled() {
        let mut weights = [1.0; 42];
        two_layers().scale_states(&mut weights, 0.5);
        assert_eq!((&weights[..16], &weights[16..]), (&[0.5; 16][..], &[1.0; 26][..]));
    }

    #[test]
    fn layers_that_read_inputs_are_found_by_their_width() {
        let layer = InputLayer { matrices: vec![16], bias: 28, units: 4 };
        assert_eq!(two_layers().layers_reading(Role::Input, 3), [layer]);
        assert_eq!(two_layers().layers_reading(Role::Input, 2), []);
        let (matrices, bias) = two_layers().last_layer();
        assert_eq!((matrices, bias), (std::iter::once(32..40).collect(), Some(40..42)));
    }

    #[test]
    fn decay_applies_unless_it_is_declared_away() {
        let parameters = Parameters::new().layer("0", 1).weight("", Role::Input, 2).bias();
        assert_eq!(parameters.undecayed(), []);
        assert_eq!(parameters.without_decay().undecayed(), std::slice::from_ref(&(2..3)));
        let rest = |ranges: &[Range<usize>]| others(5, ranges).collect::<Vec<_>>();
        assert_eq!(rest(&[]), std::slice::from_ref(&(0..5)));
        assert_eq!(rest(&[0..1, 2..3, 3..4]), [1..2, 4..5]);
    }

    #[test]
    fn a_name_may_occur_once() {
        assert!(two_layers().check().is_ok());
        let error = two_layers().bias().check().unwrap_err().to_string();
        assert!(error.starts_with("two parameters are called 1.bias"), "{error}");
    }
}
