//! What tells whether a graph in parts is still the one that was written.

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use sha2::{Digest, Sha256};

use super::array::Entry;
use super::{NodeRow, PARTS, Parts, PartsInfo, RowFeatures};
use crate::data::TargetColumn;
use crate::graph::{Features, NO_TARGET};
use crate::run::hex;
use crate::{Error, Place};

/// The hash of the rows of a part, and that of their split.
#[derive(Default)]
pub(super) struct PartHash {
    rows: Sha256,
    split: Sha256,
}

impl PartHash {
    pub(super) fn add(&mut self, row: &NodeRow<'_>) {
        let NodeRow { neighbours, features, class, values, split, original } = *row;
        update(&mut self.rows, &[neighbours.len() as u64]);
        update(&mut self.rows, neighbours);
        match features {
            RowFeatures::Dense(row) => update(&mut self.rows, row),
            RowFeatures::OneHot(column) => update(&mut self.rows, &[column]),
            RowFeatures::Sparse(columns, values) => {
                update(&mut self.rows, &[columns.len() as u64]);
                update(&mut self.rows, columns);
                update(&mut self.rows, values);
            }
        }
        update(&mut self.rows, &[class]);
        update(&mut self.rows, values);
        update(&mut self.rows, &[original]);
        update(&mut self.split, &[split]);
    }

    /// Ends a part, and begins the next.
    pub(super) fn end(&mut self) -> [String; 2] {
        [&mut self.rows, &mut self.split].map(|hash| hex(&hash.finalize_reset()))
    }
}

/// The fingerprints of all parts and of what is stated of them: that of the data, and that of the split.
pub(super) fn whole(info: &PartsInfo) -> [String; 2] {
    let data = (&info.form, &info.targets, &info.encoding, info.largest_degree);
    let parts = (&info.part_starts, &info.part_neighbours);
    let split = (info.split_sizes, &info.target_scale, info.neighbours);
    let texts = [serde_json::to_vec(&(data, parts)), serde_json::to_vec(&split)];
    let mut place = 0..;
    texts.map(|text| {
        let which = place.next().unwrap_or(0);
        let mut hash = Sha256::new_with_prefix(text.unwrap_or_default());
        info.part_fingerprints.iter().for_each(|part| hash.update(&part[which]));
        hex(&hash.finalize())
    })
}

impl Parts {
    /// Checks that the description and the parts of this process are those that were written. It reads all of them.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] when one of them was changed.
    pub fn unchanged(self) -> Result<Self, Error> {
        let changed = |what: &str| {
            let problem = format!("{what} changed since the parts were written; write them again");
            Err(Place::file(&self.folder.join(PARTS)).error(problem))
        };
        let info = &self.info;
        let [data, split] = whole(info);
        if info.part_fingerprints.len() != info.parts() || data != info.fingerprint {
            return changed("the description of the parts has");
        }
        if split != info.split_fingerprint {
            return changed("the description of the split has");
        }
        let splits = self.split.by_node(self.nodes.len());
        let parts = self.rank_starts[self.rank]..self.rank_starts[self.rank + 1];
        let differs = |part: &usize| self.hash(*part, &splits) != info.part_fingerprints[*part];
        let Some(part) = parts.into_par_iter().filter(differs).min() else { return Ok(self) };
        let [rows, _] = self.hash(part, &splits);
        let number = part + 1;
        if rows == info.part_fingerprints[part][0] {
            changed(&format!("the split of part {number} has"))
        } else {
            changed(&format!("the arrays of part {number} have"))
        }
    }

    /// The hashes of one of the own parts.
    fn hash(&self, part: usize, splits: &[u8]) -> [String; 2] {
        let first = self.nodes.start;
        let rows = self.info.part_starts[part] - first..self.info.part_starts[part + 1] - first;
        let mut hash = PartHash::default();
        for v in rows {
            let (class, values) = match &self.targets {
                None => (NO_TARGET, &[][..]),
                Some(TargetColumn::Classes(classes)) => (classes.codes()[v], &[][..]),
                Some(TargetColumn::Values { values, .. }) => (NO_TARGET, values.row(v)),
            };
            hash.add(&NodeRow {
                neighbours: self.rows().list(v),
                features: RowFeatures::of(&self.features, v),
                class,
                values,
                split: splits[v],
                original: self.original.as_slice()[v],
            });
        }
        hash.end()
    }
}

impl<'a> RowFeatures<'a> {
    pub(super) fn of(features: &'a Features<f32>, v: usize) -> Self {
        match features {
            Features::Dense(matrix) => Self::Dense(matrix.row(v)),
            Features::OneHot(one_hot) => Self::OneHot(one_hot.columns()[v]),
            Features::Sparse(rows) => Self::Sparse(rows.row(v).0, rows.row(v).1),
        }
    }
}

/// Adds the bytes of entries.
fn update<T: Entry>(hash: &mut Sha256, entries: &[T]) {
    // SAFETY: entries have no padding, and the length is that of the same memory.
    let bytes =
        unsafe { std::slice::from_raw_parts(entries.as_ptr().cast(), size_of_val(entries)) };
    hash.update(bytes);
}
