use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::data::{Categories, Dataset, FeatureColumns, Split, TargetColumn};

/// The SHA-256 of all arrays of a data set: the same for the same graphs, features and targets,
/// whatever file they came from. The name is not included, and the split has a fingerprint of its
/// own: [`Split::fingerprint`].
pub fn fingerprint(dataset: &Dataset) -> String {
    if let Some(graph) = dataset.in_parts() {
        return graph.info().fingerprint.clone();
    }
    let mut hash = Hash(Sha256::new());
    hash.numbers("starts", dataset.node_starts().iter().map(|&start| start as u64));
    let ends = |&(u, v): &(u32, u32)| [u64::from(u), u64::from(v)];
    hash.numbers("edges", dataset.edges().iter().flat_map(ends));
    hash.features("nodes", dataset.node_features());
    hash.features("edges", dataset.edge_features());
    for (level, targets) in [("node", dataset.node_targets()), ("graph", dataset.graph_targets())] {
        match targets {
            None => hash.text(level),
            Some(TargetColumn::Classes(classes)) => hash.categories(level, classes),
            Some(TargetColumn::Values { names, values }) => {
                hash.values(level, names.iter(), values.as_slice());
            }
        }
    }
    if let Some(weights) = dataset.weights() {
        let bits = weights.as_slice().iter().map(|weight| u64::from(weight.to_bits()));
        hash.numbers(weights.level().as_str(), bits);
    }
    hex(&hash.0.finalize())
}

impl Split {
    /// The SHA-256 of who is in which split, in their order: the states of a training are in that of
    /// its training split.
    pub fn fingerprint(&self) -> String {
        let mut hash = Hash(Sha256::new());
        hash.text(self.level.as_str());
        for (name, members) in [("train", &self.train), ("val", &self.val), ("test", &self.test)] {
            hash.numbers(name, members.iter().map(|&member| member as u64));
        }
        hex(&hash.0.finalize())
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

struct Hash(Sha256);

impl Hash {
    /// Lengths go before contents, so that no two different inputs are the same bytes.
    fn text(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    fn numbers(&mut self, name: &str, numbers: impl Iterator<Item = u64>) {
        self.text(name);
        let mut count = 0_u64;
        for number in numbers {
            self.0.update(number.to_le_bytes());
            count += 1;
        }
        self.0.update(count.to_le_bytes());
    }

    fn categories(&mut self, level: &str, categories: &Categories) {
        self.text(level);
        self.text(categories.name());
        categories.values().iter().for_each(|value| self.text(value));
        self.numbers("codes", categories.codes().iter().map(|&code| u64::from(code)));
    }

    fn values(
        &mut self,
        level: &str,
        names: impl Iterator<Item = impl AsRef<str>>,
        values: &[f32],
    ) {
        self.text(level);
        names.for_each(|name| self.text(name.as_ref()));
        self.numbers("values", values.iter().map(|x| u64::from(x.to_bits())));
    }

    fn features(&mut self, level: &str, features: &FeatureColumns) {
        features.categories().iter().for_each(|column| self.categories(level, column));
        self.values(level, features.value_names().iter(), features.values().as_slice());
        if let Some(sparse) = features.sparse() {
            self.numbers("sparse", std::iter::once(sparse.width() as u64));
            for row in 0..sparse.rows() {
                let (columns, values) = sparse.row(row);
                let pairs = columns.iter().zip(values);
                self.numbers(
                    "row",
                    pairs.flat_map(|(&c, x)| [u64::from(c), u64::from(x.to_bits())]),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::CliqueConfig;
    use crate::data::{Level, SampleWeights};

    #[test]
    fn it_is_a_function_of_the_arrays() {
        let set = |seed| CliqueConfig::default().generate(seed).unwrap();
        assert_eq!(fingerprint(&set(1)), fingerprint(&set(1).with_split(None).unwrap()));
        assert_ne!(fingerprint(&set(1)), fingerprint(&set(2)));
        assert_eq!(fingerprint(&set(1)).len(), 64);
        let weights = |weight| {
            let weights = vec![weight; set(1).graphs()];
            let weights = SampleWeights::new(Level::Graph, weights).unwrap();
            fingerprint(&set(1).with_weights(Some(weights)).unwrap())
        };
        assert!(weights(1.0) != fingerprint(&set(1)) && weights(1.0) != weights(2.0));
    }

    #[test]
    fn that_of_a_split_tells_who_is_where() {
        let split = CliqueConfig::default().generate(1).unwrap().split().unwrap().clone();
        let Split { level, train, val, test } = split.clone();
        let swapped = Split { level, train: test.clone(), val: val.clone(), test: train.clone() };
        let merged = Split { level, train: [train, val].concat(), val: vec![], test };
        let prints = [&split, &swapped, &merged].map(Split::fingerprint);
        assert_eq!(prints[0], split.fingerprint());
        assert!(prints[0] != prints[1] && prints[0] != prints[2] && prints[1] != prints[2]);
    }
}
