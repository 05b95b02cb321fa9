//! The part of a first layer that reads features: `L W`, without making `L` dense.

use std::borrow::Cow;
use std::ops::Range;

use super::columns::{by_columns, lanes, lanes_mut};
use crate::Scalar;
use crate::graph::{FeaturesView, NO_EDGE, SparseRows};
use crate::numeric::{
    Arithmetic, Eights, Factors, Finish, Kernel, Lanes, Numbers, Packed, dispatch, for_lanes,
    padded, product, transposed_product,
};
use crate::parameters::Parameters;

/// The rows `W: [feature, width]` of a first layer that multiply a feature.
#[derive(Debug)]
pub(crate) struct FeatureWeights<'w, S: Scalar> {
    block: usize,
    rows: usize,
    width: usize,
    padded_rows: Cow<'w, [S]>,
    forward: Option<Packed<S>>,
    backward: Option<Packed<S>>,
}

impl<'w, S: Scalar> FeatureWeights<'w, S> {
    /// Block `block` of `layout`, prepared for features of the form of `features`; the way back to
    /// features is prepared when they are dense.
    pub(crate) fn new(
        layout: &Parameters,
        block: usize,
        weights: &'w [S],
        features: FeaturesView<'_, S>,
    ) -> Self {
        let (rows, width) = (layout.rows(block), layout.columns(block));
        let matrix = layout.of(block, weights);
        let dense = matches!(features, FeaturesView::Dense(_));
        Self {
            block,
            rows,
            width,
            padded_rows: if dense { Cow::default() } else { layout.padded(block, weights) },
            forward: dense.then(|| Packed::new(matrix, rows, width)),
            backward: dense.then(|| Packed::transposed(matrix, width, rows)),
        }
    }

    /// A matrix with padded rows, for the way forward alone, prepared for features of the form of `features`.
    pub(crate) fn of_matrix(
        matrix: Vec<S>,
        rows: usize,
        width: usize,
        features: FeaturesView<'_, S>,
    ) -> Self {
        let dense = matches!(features, FeaturesView::Dense(_));
        Self {
            block: 0,
            rows,
            width,
            forward: dense.then(|| Packed::new(&matrix, rows, width)),
            backward: None,
            padded_rows: matrix.into(),
        }
    }

    /// The same, with nothing borrowed.
    pub(crate) fn into_owned(self) -> FeatureWeights<'static, S> {
        let Self { block, rows, width, padded_rows, forward, backward } = self;
        let padded_rows = Cow::Owned(padded_rows.into_owned());
        FeatureWeights { block, rows, width, padded_rows, forward, backward }
    }

    /// Block `block` of `layout`, prepared for the features of single edges in any order.
    pub(crate) fn for_edges(layout: &Parameters, block: usize, weights: &[S]) -> Self {
        let (rows, width) = (layout.rows(block), layout.columns(block));
        let mut padded_rows = layout.padded_copy(block, weights);
        padded_rows.resize((rows + 1) * padded(width), S::ZERO);
        let padded_rows = padded_rows.into();
        Self { block, rows, width, padded_rows, forward: None, backward: None }
    }

    /// The rows of `W`, padded, and behind them, [for edges](Self::for_edges), one of zeros.
    pub(crate) fn padded_rows(&self) -> &[S] {
        &self.padded_rows
    }

    /// The factors of `L W` for the features of nodes from `first` on, where they are dense.
    pub(crate) fn factors<'a>(
        &'a self,
        features: FeaturesView<'a, S>,
        first: usize,
    ) -> Option<Factors<'a, S>> {
        match (features, &self.forward) {
            (FeaturesView::Dense(matrix), Some(b)) => {
                Some(Factors { a: &matrix.as_slice()[first * self.rows..], stride: self.rows, b })
            }
            _ => None,
        }
    }

    /// `Y ← Y + L W` for the features of `nodes`; `y` has padded rows.
    pub(crate) fn add(&self, features: FeaturesView<'_, S>, nodes: Range<usize>, y: &mut [S]) {
        if self.width == 0 {
            return;
        }
        if let Some(factors) = self.factors(features, nodes.start) {
            product(nodes.len(), &[factors], y, padded(self.width), Finish::Add);
        } else if let FeaturesView::OneHot(one_hot) = features {
            gather_rows(&one_hot.columns()[nodes], padded(self.width), &self.padded_rows, y);
        } else if let FeaturesView::Sparse(sparse) = features {
            add_sparse(sparse, nodes, padded(self.width), &self.padded_rows, y);
        }
    }

    /// `Y ← Y + L W` for the features of `edges`, row by row; [`NO_EDGE`] has the feature zero.
    pub(crate) fn add_edges(&self, features: FeaturesView<'_, S>, edges: &[u32], y: &mut [S]) {
        if self.width == 0 {
            return;
        }
        for (&edge, y) in edges.iter().zip(y.chunks_exact_mut(padded(self.width))) {
            if edge != NO_EDGE {
                self.add_row(features, edge as usize, y);
            }
        }
    }

    fn add_row(&self, features: FeaturesView<'_, S>, row: usize, y: &mut [S]) {
        let stride = padded(self.width);
        for (column, value) in features.entries(row) {
            for (y, &w) in y.iter_mut().zip(&self.padded_rows[column * stride..][..stride]) {
                *y += value * w;
            }
        }
    }

    /// `∂𝓛/∂W ← … + Lᵀ D` for the features of `nodes`; `d` has padded rows.
    pub(crate) fn gradient(
        &self,
        layout: &Parameters,
        features: FeaturesView<'_, S>,
        nodes: Range<usize>,
        d: &[S],
        partial: &mut [S],
    ) {
        if self.width == 0 {
            return;
        }
        let d_w = layout.partial(self.block, partial);
        if let FeaturesView::Dense(matrix) = features {
            let from = &matrix.as_slice()[nodes.start * self.rows..];
            transposed_product(nodes.len(), from, self.rows, self.rows, d, self.width, d_w);
        } else if let FeaturesView::OneHot(one_hot) = features {
            let columns = one_hot.columns()[nodes].iter().map(|&column| Some(column));
            scatter_rows(columns, padded(self.width), d, d_w);
        } else if let FeaturesView::Sparse(sparse) = features {
            scatter_sparse(sparse, nodes, padded(self.width), d, d_w);
        }
    }

    /// The same, straight into `∂𝓛/∂θ`.
    pub(crate) fn gradient_of_rows(
        &self,
        layout: &Parameters,
        features: FeaturesView<'_, S>,
        nodes: Range<usize>,
        d: &[S],
        d_weights: &mut [S],
    ) {
        if self.width == 0 {
            return;
        }
        let d_w = layout.of_mut(self.block, d_weights);
        for (node, d) in nodes.zip(d.chunks_exact(padded(self.width))) {
            scatter_row(features, node, &d[..self.width], d_w);
        }
    }

    /// The same for the features of `edges`.
    pub(crate) fn gradient_edges(
        &self,
        layout: &Parameters,
        features: FeaturesView<'_, S>,
        edges: &[u32],
        d: &[S],
        partial: &mut [S],
    ) {
        if self.width == 0 {
            return;
        }
        let d_w = layout.partial(self.block, partial);
        if let FeaturesView::OneHot(one_hot) = features {
            let columns = edges.iter().map(|&edge| of_edge(one_hot.columns(), edge));
            return scatter_rows(columns, padded(self.width), d, d_w);
        }
        for (&edge, d) in edges.iter().zip(d.chunks_exact(padded(self.width))) {
            if edge != NO_EDGE {
                scatter_row(features, edge as usize, d, d_w);
            }
        }
    }

    /// `∂𝓛/∂L ← … + D Wᵀ`, for features that are dense.
    pub(crate) fn back(&self, d: &[S], d_features: &mut [S]) {
        if let Some(packed) = &self.backward
            && self.rows > 0
            && self.width > 0
        {
            let rows = d_features.len() / self.rows;
            let factors = Factors { a: d, stride: padded(self.width), b: packed };
            product(rows, &[factors], d_features, self.rows, Finish::Add);
        }
    }
}

fn scatter_row<S: Scalar>(features: FeaturesView<'_, S>, row: usize, d: &[S], d_w: &mut [S]) {
    for (column, value) in features.entries(row) {
        for (d_w, &d) in d_w[column * d.len()..][..d.len()].iter_mut().zip(d) {
            *d_w += value * d;
        }
    }
}

/// The column of an edge's feature; none for [`NO_EDGE`].
#[inline(always)]
fn of_edge(columns: &[u32], edge: u32) -> Option<u32> {
    (edge != NO_EDGE).then(|| columns[edge as usize])
}

/// `y_i ← y_i + w[columns_i]`: the product with one-hot rows.
fn gather_rows<S: Scalar>(columns: &[u32], width: usize, w: &[S], y: &mut [S]) {
    struct GatherRows<'a, S>(&'a [u32], usize, &'a [S], &'a mut [S]);
    impl<S: Scalar> Kernel for GatherRows<'_, S> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self(columns, width, w, y) = self;
            for (&column, y) in columns.iter().zip(y.chunks_exact_mut(width)) {
                let w = &w[column as usize * width..][..width];
                for_lanes!((y), (w) => A::Lanes::<S>::load(y).add(Lanes::load(w)).store(y));
            }
        }
    }
    dispatch(GatherRows(columns, width, w, y));
}

/// `Y ← Y + L W` for the sparse features of `nodes`.
fn add_sparse<S: Scalar>(
    features: &SparseRows<S>,
    nodes: Range<usize>,
    width: usize,
    w: &[S],
    y: &mut [S],
) {
    struct AddSparse<'a, S, const W: usize> {
        features: &'a SparseRows<S>,
        nodes: Range<usize>,
        column: usize,
        width: usize,
        w: &'a [S],
        y: &'a mut [S],
    }
    impl<S: Scalar, const W: usize> Kernel for AddSparse<'_, S, W> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self { features, nodes, column, width, w, y } = self;
            let mut row = column;
            for node in nodes {
                let y = lanes_mut(y, row);
                let mut sum = A::Eights::<S, W>::load(y);
                let (places, values) = features.row(node);
                for (&place, &value) in places.iter().zip(values) {
                    let w = Eights::load(lanes(w, place as usize * width + column));
                    sum = A::Eights::<S, W>::splat(value).mul_add(w, sum);
                }
                sum.store(y);
                row += width;
            }
        }
    }
    by_columns!(width, |column, W| AddSparse::<S, W> {
        features,
        nodes: nodes.clone(),
        column,
        width,
        w,
        y: &mut *y,
    });
}

/// `∂𝓛/∂W ← … + Lᵀ D` for the sparse features of `nodes`.
fn scatter_sparse<S: Scalar>(
    features: &SparseRows<S>,
    nodes: Range<usize>,
    width: usize,
    d: &[S],
    d_w: &mut [S],
) {
    struct ScatterSparse<'a, S, const W: usize> {
        features: &'a SparseRows<S>,
        nodes: Range<usize>,
        column: usize,
        width: usize,
        d: &'a [S],
        d_w: &'a mut [S],
    }
    impl<S: Scalar, const W: usize> Kernel for ScatterSparse<'_, S, W> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self { features, nodes, column, width, d, d_w } = self;
            let mut row = column;
            for node in nodes {
                let d = A::Eights::<S, W>::load(lanes(d, row));
                let (places, values) = features.row(node);
                for (&place, &value) in places.iter().zip(values) {
                    let d_w = lanes_mut(d_w, place as usize * width + column);
                    A::Eights::<S, W>::splat(value).mul_add(d, Eights::load(d_w)).store(d_w);
                }
                row += width;
            }
        }
    }
    by_columns!(width, |column, W| ScatterSparse::<S, W> {
        features,
        nodes: nodes.clone(),
        column,
        width,
        d,
        d_w: &mut *d_w,
    });
}

/// `d_w[columns_i] ← d_w[columns_i] + d_i`: the way back.
fn scatter_rows<S: Scalar>(
    columns: impl Iterator<Item = Option<u32>>,
    width: usize,
    d: &[S],
    d_w: &mut [S],
) {
    struct ScatterRows<'a, S, I>(I, usize, &'a [S], &'a mut [S]);
    impl<S: Scalar, I: Iterator<Item = Option<u32>>> Kernel for ScatterRows<'_, S, I> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self(columns, width, d, d_w) = self;
            for (column, d) in columns.zip(d.chunks_exact(width)) {
                let Some(column) = column else { continue };
                let d_w = &mut d_w[column as usize * width..][..width];
                for_lanes!((d_w), (d) => A::Lanes::<S>::load(d_w).add(Lanes::load(d)).store(d_w));
            }
        }
    }
    dispatch(ScatterRows(columns, width, d, d_w));
}
