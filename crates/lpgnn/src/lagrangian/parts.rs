//! The loss of a graph in parts: every part has its own, and they are added up in the order of parts.

use std::ops::Range;

use super::read::ReadGradient;
use super::{Lagrangian, Model, Variables, apart};
use crate::graph::Share;
use crate::readout::{Loss, ReadoutGradients, ReadoutInput, Supervision};
use crate::transition::{for_each_group, split_rows};
use crate::{Error, Matrix, Scalar};

/// How much all supervised nodes count together, whoever owns them.
///
/// # Errors
///
/// [`Error::Mismatch`] for a read-out of anything else than single nodes.
pub(super) fn total<S: Scalar>(
    share: &Share,
    model: &Model<S>,
    supervision: &Supervision<S>,
) -> Result<f64, Error> {
    if model.readout().network().is_none_or(|(pooling, _)| pooling.is_some()) {
        return Err(Error::Mismatch(
            "the read-out pools nodes, but a graph in parts supports only predictions per node"
                .into(),
        ));
    }
    let counts = supervision.counts();
    let sum = |(_, rows): (usize, Range<usize>)| counts[rows].iter().map(|count| count.f64()).sum();
    let own: Vec<f64> = share.own_parts().into_iter().map(sum).collect();
    Ok(share.of_all_parts(&own, 1).into_iter().sum())
}

/// A part that this rank owns.
struct PartLoss<'a, S> {
    number: usize,
    rows: Range<usize>,
    d_rows: &'a mut [S],
    d_weights: Vec<S>,
    loss: f64,
    correct: (usize, usize),
}

impl<S: Scalar> Lagrangian<'_, S> {
    /// As [`loss`](Self::loss), of a graph in parts.
    pub(super) fn loss_of_parts<'s>(
        &'s self,
        share: &Share,
        at: &Variables<S>,
        reads: &[&Matrix<S>],
        d_weights: Option<&mut [S]>,
    ) -> (f64, (usize, usize), Vec<ReadGradient<'s, S>>) {
        let widths: Vec<usize> = reads.iter().map(|part| part.cols()).collect();
        let width = widths.iter().sum();
        let weights = self.model.readout_weights();
        let mut d_rows = self.scratch.matrix(self.batch.nodes(), width);
        let ranges: Vec<_> = share.own_parts();
        let rows: Vec<Range<usize>> = ranges.iter().map(|(_, rows)| rows.clone()).collect();
        let own = ranges.iter().zip(split_rows(d_rows.as_mut_slice(), width, &rows));
        let mut own: Vec<PartLoss<'_, S>> = own
            .map(|((number, rows), d_rows)| PartLoss {
                number: *number,
                rows: rows.clone(),
                d_rows,
                d_weights: vec![S::ZERO; d_weights.as_ref().map_or(0, |_| weights.len())],
                loss: 0.0,
                correct: (0, 0),
            })
            .collect();
        for_each_group(&mut own, |part| {
            self.loss_of_part(part, &at.weights[weights.clone()], reads);
        });
        let totals: Vec<f64> = own
            .iter()
            .flat_map(|part| [part.loss, part.correct.0 as f64, part.correct.1 as f64])
            .collect();
        let sums: Vec<&[S]> = own.iter().map(|part| &part.d_weights[..]).collect();
        if let Some(d_weights) = d_weights {
            let sum = share.sum_of_parts(&sums, weights.len());
            d_weights[weights].iter_mut().zip(sum).for_each(|(d, sum)| *d += sum);
        }
        drop(own);
        let (mut loss, mut right, mut count) = (0.0, 0.0, 0.0);
        for of in share.of_all_parts(&totals, 3).as_chunks::<3>().0 {
            loss += of[0];
            right += of[1];
            count += of[2];
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they are counts"
        )]
        let correct = (right as usize, count as usize);
        let parts = apart(d_rows, &widths, self.scratch);
        (loss, correct, parts.into_iter().map(ReadGradient::Nodes).collect())
    }

    fn loss_of_part(&self, part: &mut PartLoss<'_, S>, weights: &[S], reads: &[&Matrix<S>]) {
        let rows = part.rows.clone();
        if self.supervision.counts()[rows.clone()].iter().all(|&count| count <= S::ZERO) {
            part.d_rows.fill(S::ZERO);
            return;
        }
        let (readout, scratch) = (self.model.readout(), self.scratch);
        let own: Vec<Matrix<S>> = reads.iter().map(|read| read.select(rows.clone())).collect();
        let own: Vec<&Matrix<S>> = own.iter().collect();
        let supervision = self.supervision.select(&rows.clone().collect::<Vec<_>>());
        let mut predictions = scratch.matrix(rows.len(), readout.outputs());
        let mut d_rows = scratch.matrix(rows.len(), own.iter().map(|part| part.cols()).sum());
        // Rows of a part are numbered from 0: other units are left out of another part.
        let dropout = self.dropout.map(|seed| seed ^ (part.number as u64).rotate_right(16));
        let with_features =
            (readout.features() > 0).then(|| self.batch.with_features_of(rows.clone()));
        let batch = with_features.as_ref().unwrap_or(self.batch);
        let d_weights = Some(&mut part.d_weights[..]).filter(|d| !d.is_empty());
        part.loss = readout.pass(
            weights,
            ReadoutInput { batch, parts: &own, dropout },
            Loss { supervision: &supervision, factor: self.factors().0 },
            &mut predictions,
            ReadoutGradients { weights: d_weights, states: Some(&mut d_rows), features: None },
            scratch,
        );
        part.correct = supervision.correct(&predictions);
        part.d_rows.copy_from_slice(d_rows.as_slice());
    }
}
