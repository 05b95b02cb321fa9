//! Objectives around objectives.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Evaluation, Objective, Request, Variables};
use crate::Scalar;
use crate::graph::Share;
use crate::parameters::others;

/// A layer around an objective: it sees every evaluation, and may change the request and the result.
///
/// A penalty on the weights adds to value and gradient; a counter only observes; a distributed
/// reduction adds up the results of all machines. Neither the solver nor the
/// [trainer](crate::train::Trainer::with_layer) needs to know which.
pub trait ObjectiveLayer<S: Scalar = f32>: Debug + Send {
    /// Evaluates `inner`, and applies this layer.
    fn evaluate(
        &self,
        inner: &dyn Objective<S>,
        at: &Variables<S>,
        request: Request,
        gradient: &mut Variables<S>,
    ) -> Evaluation;
}

/// An objective with layers around it, the last one outside.
///
/// ```
/// use lpgnn::check::Quadratic;
/// use lpgnn::lagrangian::{CountEvaluations, L2, Layered, Objective, ObjectiveLayer, Request};
///
/// let (inner, count) = (Quadratic::parabola(), CountEvaluations::default());
/// let layers: [Box<dyn ObjectiveLayer<f64>>; 2] =
///     [Box::new(L2::new(0.1)), Box::new(count.clone())];
/// let objective = Layered { inner: &inner, layers: &layers };
/// let at = inner.start();
/// objective.evaluate(&at, Request::ALL, &mut at.zeros_like());
/// assert_eq!(count.get(), 1);
/// ```
#[derive(Clone, Copy)]
pub struct Layered<'a, S: Scalar> {
    /// The innermost objective.
    pub inner: &'a dyn Objective<S>,
    /// From the inside to the outside.
    pub layers: &'a [Box<dyn ObjectiveLayer<S>>],
}

impl<S: Scalar> Debug for Layered<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Layered").field("layers", &self.layers).finish_non_exhaustive()
    }
}

impl<S: Scalar> Objective<S> for Layered<'_, S> {
    fn share(&self) -> Option<&Share> {
        self.inner.share()
    }

    fn evaluate(
        &self,
        at: &Variables<S>,
        request: Request,
        gradient: &mut Variables<S>,
    ) -> Evaluation {
        match self.layers.split_last() {
            None => self.inner.evaluate(at, request, gradient),
            Some((outer, layers)) => {
                outer.evaluate(&Layered { inner: self.inner, layers }, at, request, gradient)
            }
        }
    }
}

/// `ρ_θ/2 Σ θ²`, added to the loss.
#[derive(Clone, Debug, PartialEq)]
pub struct L2 {
    /// `ρ_θ`
    pub factor: f64,
    /// Where the weights are that it leaves out, as [declared](crate::parameters::Parameters::undecayed).
    pub except: Vec<Range<usize>>,
}

impl L2 {
    /// The penalty on all weights.
    pub fn new(factor: f64) -> Self {
        Self { factor, except: vec![] }
    }
}

impl<S: Scalar> ObjectiveLayer<S> for L2 {
    fn evaluate(
        &self,
        inner: &dyn Objective<S>,
        at: &Variables<S>,
        request: Request,
        gradient: &mut Variables<S>,
    ) -> Evaluation {
        let mut evaluation = inner.evaluate(at, request, gradient);
        if request.loss {
            let ranges = || others(at.weights.len(), &self.except);
            let squares: f64 =
                ranges().flat_map(|range| &at.weights[range]).map(|w| w.f64() * w.f64()).sum();
            evaluation.loss += 0.5 * self.factor * squares;
            if request.weights {
                let factor = S::of(self.factor);
                for range in ranges() {
                    let penalised = gradient.weights[range.clone()].iter_mut();
                    penalised.zip(&at.weights[range]).for_each(|(d, &w)| *d += factor * w);
                }
            }
        }
        evaluation
    }
}

/// Counts evaluations of an objective. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct CountEvaluations(Arc<AtomicU64>);

impl CountEvaluations {
    /// Number of evaluations so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S: Scalar> ObjectiveLayer<S> for CountEvaluations {
    fn evaluate(
        &self,
        inner: &dyn Objective<S>,
        at: &Variables<S>,
        request: Request,
        gradient: &mut Variables<S>,
    ) -> Evaluation {
        self.0.fetch_add(1, Ordering::Relaxed);
        inner.evaluate(at, request, gradient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{self, Quadratic};

    #[test]
    fn the_gradient_of_an_l2_penalty_is_its_slope() {
        let inner = Quadratic::random(4, 7);
        let at = inner.start();
        let some: Vec<Range<usize>> = std::iter::once(1..2).collect();
        for (factor, except) in [(0.0, vec![]), (0.3, vec![]), (0.3, some)] {
            let layers: [Box<dyn ObjectiveLayer<f64>>; 1] = [Box::new(L2 { factor, except })];
            let worst = check::gradients(&Layered { inner: &inner, layers: &layers }, &at);
            assert!(worst < 1e-8, "{layers:?}: {worst:e}");
        }
    }

    #[test]
    fn an_l2_penalty_leaves_out_what_is_exempt() {
        let inner = Quadratic::random(4, 7);
        let at = inner.start();
        let loss = |except: Range<usize>| {
            let except = std::iter::once(except).collect();
            let layers: [Box<dyn ObjectiveLayer<f64>>; 1] = [Box::new(L2 { factor: 2.0, except })];
            let layered = Layered { inner: &inner, layers: &layers };
            layered.evaluate(&at, Request::ALL, &mut at.zeros_like()).loss
        };
        let bare = inner.evaluate(&at, Request::ALL, &mut at.zeros_like()).loss;
        assert!((loss(0..at.weights.len()) - bare).abs() < 1e-12);
        assert!((loss(1..at.weights.len()) - bare - at.weights[0].powi(2)).abs() < 1e-12);
    }

    /// Adds a constant to the loss, or multiplies it.
    #[derive(Debug)]
    struct Change(f64, f64);

    impl ObjectiveLayer<f64> for Change {
        fn evaluate(
            &self,
            inner: &dyn Objective<f64>,
            at: &Variables<f64>,
            request: Request,
            gradient: &mut Variables<f64>,
        ) -> Evaluation {
            let evaluation = inner.evaluate(at, request, gradient);
            Evaluation { loss: (evaluation.loss + self.0) * self.1, ..evaluation }
        }
    }

    #[test]
    fn the_last_layer_lies_outside() {
        let inner = Quadratic::parabola();
        let at = inner.start();
        let layers: [Box<dyn ObjectiveLayer<f64>>; 2] =
            [Box::new(Change(1.0, 1.0)), Box::new(Change(0.0, 3.0))];
        let objective = Layered { inner: &inner, layers: &layers };
        let loss = objective.evaluate(&at, Request::ALL, &mut at.zeros_like()).loss;
        assert!((loss - 3.0).abs() < 1e-15, "{loss}");
    }
}
