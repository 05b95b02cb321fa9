//! What a solver remembers from update to update, by name.

use std::ops::Range;

use crate::lagrangian::Variables;
use crate::transition::for_each_group;
use crate::{Error, Matrix, Scalar};

/// What a solver remembers from update to update: slots with names of its own choice.
///
/// A solver asks for the slots it needs at every update; the first time they are zero. Whoever
/// calls it needs no knowledge of them: with batches of some of the graphs, what belongs to nodes
/// moves along with its nodes, and a checkpoint keeps all of it.
///
/// ```
/// use lpgnn::saddle::Slots;
///
/// let mut slots = Slots::<f32>::default();
/// let [first, second] = slots.weights(["momentum", "average"], 3);
/// (first[0], second[2]) = (1.0, 2.0);
/// *slots.counter("steps") += 1;
/// assert_eq!(slots.weights(["momentum"], 3)[0], [1.0, 0.0, 0.0]);
/// assert_eq!(*slots.counter("steps"), 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Slots<S = f32> {
    entries: Vec<(String, Slot<S>)>,
}

/// What lies in a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Slot<S = f32> {
    /// One number per weight.
    Weights(Vec<S>),
    /// One row per node for every layer, as long as a state.
    States(Vec<Matrix<S>>),
    /// One row per node for every layer, as long as the multipliers of a node.
    Multipliers(Vec<Matrix<S>>),
    /// A number.
    Number(f64),
    /// A count.
    Counter(u64),
    /// A count of what has been done to these nodes: where graphs take turns in batches, each batch
    /// of an epoch finds the count of the epoch before.
    NodeCounter(u64),
}

/// The [`Slot::NodeCounter`]s at some time.
pub(crate) type NodeCounts = Vec<(String, u64)>;

impl<S> Default for Slots<S> {
    fn default() -> Self {
        Self { entries: vec![] }
    }
}

impl<S: Scalar> Slots<S> {
    /// Slots with one number for each of `count` weights; all their names differ.
    ///
    /// # Panics
    ///
    /// When a slot of that name is of another kind or length.
    pub fn weights<const N: usize>(&mut self, names: [&str; N], count: usize) -> [&mut [S]; N] {
        self.get(names, || Slot::Weights(vec![S::ZERO; count])).map(|(name, slot)| match slot {
            Slot::Weights(weights) => {
                let found = weights.len();
                assert_eq!(found, count, "the slot {name} is of {found} weights, not {count}");
                &mut weights[..]
            }
            other => other.is_not(name, "one number per weight"),
        })
    }

    /// Slots shaped like these states; all their names differ.
    ///
    /// # Panics
    ///
    /// When a slot of that name is of another kind.
    pub fn states<const N: usize>(
        &mut self,
        names: [&str; N],
        like: &[Matrix<S>],
    ) -> [&mut [Matrix<S>]; N] {
        self.get(names, || Slot::States(zeros_like(like))).map(|(name, slot)| match slot {
            Slot::States(states) => &mut states[..],
            other => other.is_not(name, "one row per node, like states"),
        })
    }

    /// Slots shaped like these multipliers; all their names differ.
    ///
    /// # Panics
    ///
    /// When a slot of that name is of another kind.
    pub fn multipliers<const N: usize>(
        &mut self,
        names: [&str; N],
        like: &[Matrix<S>],
    ) -> [&mut [Matrix<S>]; N] {
        self.get(names, || Slot::Multipliers(zeros_like(like))).map(|(name, slot)| match slot {
            Slot::Multipliers(multipliers) => &mut multipliers[..],
            other => other.is_not(name, "one row per node, like multipliers"),
        })
    }

    /// A number, `start` at first.
    ///
    /// # Panics
    ///
    /// When a slot of that name is of another kind.
    pub fn number(&mut self, name: &str, start: f64) -> &mut f64 {
        match self.get([name], || Slot::Number(start)) {
            [(_, Slot::Number(number))] => number,
            [(name, other)] => other.is_not(name, "a number"),
        }
    }

    /// A count, zero at first.
    ///
    /// # Panics
    ///
    /// When a slot of that name is of another kind.
    pub fn counter(&mut self, name: &str) -> &mut u64 {
        match self.get([name], || Slot::Counter(0)) {
            [(_, Slot::Counter(count))] => count,
            [(name, other)] => other.is_not(name, "a count"),
        }
    }

    /// The count in the slot of this name, if there is one.
    pub(crate) fn find_counter(&self, name: &str) -> Option<u64> {
        self.entries.iter().find_map(|(own, slot)| match slot {
            Slot::Counter(count) if own == name => Some(*count),
            _ => None,
        })
    }

    /// The numbers in the slot of this name, one per weight, if there is one.
    pub(crate) fn find_weights(&self, name: &str) -> Option<&[S]> {
        self.entries.iter().find_map(|(own, slot)| match slot {
            Slot::Weights(weights) if own == name => Some(&weights[..]),
            _ => None,
        })
    }

    /// A count of what has been done to the nodes at hand, zero at first.
    ///
    /// # Panics
    ///
    /// When a slot of that name is of another kind.
    pub fn node_counter(&mut self, name: &str) -> &mut u64 {
        match self.get([name], || Slot::NodeCounter(0)) {
            [(_, Slot::NodeCounter(count))] => count,
            [(name, other)] => other.is_not(name, "a count of nodes"),
        }
    }

    /// All slots with their names, in the order in which they were first asked for.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Slot<S>)> {
        self.entries.iter().map(|(name, slot)| (name.as_str(), slot))
    }

    /// Sets a slot, whatever was there.
    pub fn insert(&mut self, name: &str, slot: Slot<S>) {
        match self.entries.iter_mut().find(|(known, _)| known == name) {
            Some((_, place)) => *place = slot,
            None => self.entries.push((name.to_owned(), slot)),
        }
    }

    /// Whether all of it has the shape of what it is remembered of.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], naming the first slot that has not.
    pub fn check(&self, at: &Variables<S>) -> Result<(), Error> {
        let same = |a: &[Matrix<S>], b: &[Matrix<S>]| {
            let shape = |matrix: &Matrix<S>| (matrix.rows(), matrix.cols());
            a.iter().map(shape).eq(b.iter().map(shape))
        };
        let misfit = self.iter().find(|(_, slot)| match slot {
            Slot::Weights(weights) => weights.len() != at.weights.len(),
            Slot::States(states) => !same(states, &at.states),
            Slot::Multipliers(multipliers) => !same(multipliers, &at.multipliers),
            Slot::Number(_) | Slot::Counter(_) | Slot::NodeCounter(_) => false,
        });
        match misfit {
            None => Ok(()),
            Some((name, _)) => Err(Error::Mismatch(format!(
                "the optimiser state {name} has the shape of another model or of other graphs"
            ))),
        }
    }

    /// What belongs to no node.
    pub(crate) fn without_nodes(mut self) -> Self {
        self.entries.retain(|(_, slot)| {
            matches!(slot, Slot::Weights(_) | Slot::Number(_) | Slot::Counter(_))
        });
        self
    }

    /// The same with the rows of some nodes, or of all, in place of those that it has.
    pub(crate) fn with_rows(mut self, rows: impl Fn(&Matrix<S>) -> Matrix<S>) -> Self {
        for (_, slot) in &mut self.entries {
            if let Slot::States(all) | Slot::Multipliers(all) = slot {
                all.iter_mut().for_each(|matrix| *matrix = rows(matrix));
            }
        }
        self
    }

    fn get<'a, const N: usize>(
        &'a mut self,
        names: [&str; N],
        start: impl Fn() -> Slot<S>,
    ) -> [(&'a str, &'a mut Slot<S>); N] {
        let places = names.map(|name| {
            let known = self.entries.iter().position(|(known, _)| known == name);
            known.unwrap_or_else(|| {
                self.entries.push((name.to_owned(), start()));
                self.entries.len() - 1
            })
        });
        let slots = self.entries.get_disjoint_mut(places);
        let slots = slots.expect("slots that are asked for together have different names");
        slots.map(|(name, slot)| (name.as_str(), slot))
    }

    pub(crate) fn node_counts(&self) -> NodeCounts {
        let counts = self.entries.iter().filter_map(|(name, slot)| match slot {
            Slot::NodeCounter(count) => Some((name.clone(), *count)),
            _ => None,
        });
        counts.collect()
    }

    /// What an update on these nodes needs: their rows, and all that belongs to no node. The weights'
    /// part is moved out; nodes have been counted up to `counts`.
    pub(crate) fn take(&mut self, nodes: &[usize], counts: &NodeCounts) -> Self {
        let counted = |name: &str| counts.iter().find(|(known, _)| known == name);
        let entries = self.entries.iter_mut().map(|(name, slot)| {
            let part = match slot {
                Slot::Weights(weights) => Slot::Weights(std::mem::take(weights)),
                Slot::States(states) => Slot::States(gather(states, nodes)),
                Slot::Multipliers(all) => Slot::Multipliers(gather(all, nodes)),
                Slot::Number(number) => Slot::Number(*number),
                Slot::Counter(count) => Slot::Counter(*count),
                Slot::NodeCounter(_) => Slot::NodeCounter(counted(name).map_or(0, |(_, n)| *n)),
            };
            (name.clone(), part)
        });
        Self { entries: entries.collect() }
    }

    /// The way back, into what is remembered of `all`. Where an update asked for a slot for the first
    /// time, the other nodes get it too.
    pub(crate) fn put(&mut self, part: Self, nodes: &[usize], all: &Variables<S>) {
        for (name, slot) in part.entries {
            match slot {
                Slot::States(rows) => scatter(&rows, nodes, self.states([&name], &all.states)[0]),
                Slot::Multipliers(rows) => {
                    scatter(&rows, nodes, self.multipliers([&name], &all.multipliers)[0]);
                }
                other => self.insert(&name, other),
            }
        }
    }
}

impl<S> Slot<S> {
    /// Two solvers, or two parts of one, mean different things by the same name.
    fn is_not(&self, name: &str, wanted: &str) -> ! {
        let found = match self {
            Self::Weights(_) => "one number per weight",
            Self::States(_) => "one row per node, like states",
            Self::Multipliers(_) => "one row per node, like multipliers",
            Self::Number(_) => "a number",
            Self::Counter(_) => "a count",
            Self::NodeCounter(_) => "a count of nodes",
        };
        panic!("the solver asks for {wanted} in the slot {name}, which holds {found}")
    }
}

/// Zeros of the same shape.
pub(crate) fn zeros_like<S: Scalar>(like: &[Matrix<S>]) -> Vec<Matrix<S>> {
    like.iter().map(|matrix| Matrix::zeros(matrix.rows(), matrix.cols())).collect()
}

/// The rows of `nodes` of every matrix.
pub(crate) fn gather<S: Scalar>(matrices: &[Matrix<S>], nodes: &[usize]) -> Vec<Matrix<S>> {
    let mut rows = vec![];
    gather_into(matrices, nodes, &mut rows);
    rows
}

/// The same, into matrices that may be there already.
pub(crate) fn gather_into<S: Scalar>(
    matrices: &[Matrix<S>],
    nodes: &[usize],
    to: &mut Vec<Matrix<S>>,
) {
    to.resize_with(matrices.len(), Matrix::default);
    let mut pairs: Vec<_> = matrices.iter().zip(to).collect();
    for_each_group(&mut pairs, |(from, to)| {
        let width = from.cols();
        to.reshape(nodes.len(), width);
        let mut rows = to.as_mut_slice();
        for run in runs(nodes) {
            let (own, rest) = std::mem::take(&mut rows).split_at_mut(run.len() * width);
            own.copy_from_slice(&from.as_slice()[run.start * width..run.end * width]);
            rows = rest;
        }
    });
}

/// Writes the rows back to where [`gather`] found them.
pub(crate) fn scatter<S: Scalar>(from: &[Matrix<S>], nodes: &[usize], to: &mut [Matrix<S>]) {
    let mut pairs: Vec<_> = from.iter().zip(to).collect();
    for_each_group(&mut pairs, |(from, to)| {
        let width = from.cols();
        let mut rows = from.as_slice();
        for run in runs(nodes) {
            let (own, rest) = rows.split_at(run.len() * width);
            to.as_mut_slice()[run.start * width..run.end * width].copy_from_slice(own);
            rows = rest;
        }
    });
}

/// Nodes that follow each other, as those of a graph do.
fn runs(nodes: &[usize]) -> impl Iterator<Item = Range<usize>> {
    nodes.chunk_by(|node, next| node + 1 == *next).map(|run| run[0]..run[0] + run.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(nodes: usize) -> Variables<f64> {
        Variables {
            weights: vec![0.0; 3],
            states: vec![Matrix::zeros(nodes, 2)],
            multipliers: vec![Matrix::zeros(nodes, 1)],
        }
    }

    #[test]
    fn rows_move_along_with_their_nodes() {
        let all = variables(4);
        let mut slots = Slots::default();
        for (i, batch) in [[0, 2], [1, 3]].into_iter().enumerate() {
            let mut part = slots.take(&batch, &vec![]);
            let some = variables(2);
            part.weights(["w"], 3)[0][0] += 1.0;
            part.states(["x"], &some.states)[0][0].row_mut(1)[0] = 5.0 + i as f64;
            part.multipliers(["l"], &some.multipliers)[0][0].row_mut(0)[0] = 7.0;
            *part.number("rho", 0.5) += 1.0;
            *part.counter("updates") += 1;
            *part.node_counter("turns") += 1;
            slots.put(part, &batch, &all);
        }
        slots.check(&all).unwrap();
        assert!(slots.check(&variables(5)).is_err());
        let x: Vec<f64> = (0..4).map(|v| slots.states(["x"], &[])[0][0].row(v)[0]).collect();
        assert_eq!(x, [0.0, 0.0, 5.0, 6.0]);
        let l = slots.multipliers(["l"], &[])[0][0].as_slice().to_vec();
        assert_eq!(l, [7.0, 7.0, 0.0, 0.0]);
        assert_eq!(slots.weights(["w"], 3)[0], [2.0, 0.0, 0.0]);
        // Two updates, and one turn of every node.
        assert_eq!((*slots.counter("updates"), *slots.node_counter("turns")), (2, 1));
        assert!((*slots.number("rho", 9.0) - 2.5).abs() < 1e-15);
    }

    #[test]
    fn later_turns_go_on_from_the_counts_of_the_epoch_before() {
        let mut slots = Slots::<f32>::default();
        *slots.node_counter("turns") = 6;
        let counts = slots.node_counts();
        for node in 0..3 {
            let mut part = slots.take(&[node], &counts);
            *part.node_counter("turns") += 2;
            slots.put(part, &[node], &Variables::default());
        }
        assert_eq!(*slots.node_counter("turns"), 8);
    }

    #[test]
    #[should_panic(expected = "asks for a number in the slot rho, which holds a count")]
    fn a_name_means_one_thing() {
        let mut slots = Slots::<f32>::default();
        *slots.counter("rho") += 1;
        slots.number("rho", 0.0);
    }
}
