use std::collections::HashMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::dataset::{Dataset, TargetColumn};
use crate::Error;
use crate::graph::Level;

impl Level {
    /// The members with a target at this level, with their class; real values count as one class, and
    /// so do graphs whose nodes have the targets.
    fn classes(self, dataset: &Dataset) -> Option<Vec<(u32, usize)>> {
        match (self, dataset.node_targets(), dataset.graph_targets()) {
            (Self::Node, Some(targets), _) | (Self::Graph, _, Some(targets)) => {
                let known = (0..self.count(dataset)).filter(|&row| targets.is_known(row));
                Some(known.map(|row| (class(targets, row), row)).collect())
            }
            (Self::Graph, Some(targets), None) => {
                let known = |&graph: &usize| {
                    let (start, end) =
                        (dataset.node_starts()[graph], dataset.node_starts()[graph + 1]);
                    (start..end).any(|node| targets.is_known(node))
                };
                Some((0..dataset.graphs()).filter(known).map(|graph| (0, graph)).collect())
            }
            _ => None,
        }
    }

    /// The number of nodes or graphs of a data set.
    pub fn count(self, dataset: &Dataset) -> usize {
        match self {
            Self::Node => dataset.nodes(),
            Self::Graph => dataset.graphs(),
        }
    }
}

/// What is to be predicted of a data set.
impl Level {
    /// The level of a task: `choice`, or else that of the targets that there are; of both, the
    /// graphs', unless the data divide their nodes.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when there are no targets for it.
    pub fn of_task(choice: Option<Self>, dataset: &Dataset) -> Result<Self, Error> {
        let divides_nodes = dataset.split().is_some_and(|split| split.level == Self::Node);
        let level = choice.unwrap_or({
            let nodes = dataset.graph_targets().is_none()
                || divides_nodes && dataset.node_targets().is_some();
            if nodes { Self::Node } else { Self::Graph }
        });
        match (level.targets(dataset), choice) {
            (Some(_), _) => Ok(level),
            (None, None) => Err(Error::Mismatch(format!(
                "{} has no targets, so there is nothing to learn; in tables, they are in a column y",
                dataset.name()
            ))),
            (None, Some(_)) => Err(Error::Mismatch(format!(
                "the {} of {} have no targets",
                level.plural(),
                dataset.name()
            ))),
        }
    }

    /// The targets of a data set at this level.
    pub fn targets(self, dataset: &Dataset) -> Option<&TargetColumn> {
        match self {
            Self::Node => dataset.node_targets(),
            Self::Graph => dataset.graph_targets(),
        }
    }

    /// What is divided for a task at this level: whole graphs, unless there is only one. Nodes of
    /// graphs that were never seen are what is to be predicted later, too.
    pub fn of_split(self, dataset: &Dataset) -> Self {
        match self {
            Self::Node if dataset.graphs() == 1 => Self::Node,
            Self::Node | Self::Graph => Self::Graph,
        }
    }
}

/// The nodes or graphs for training, validation and test.
///
/// A split comes with the data ([`Dataset::split`]), is drawn from a seed ([`Split::by_ratio`],
/// [`Split::k_fold`]) or is read from files ([`Split::read_folds`]). Drawn splits are stratified:
/// classes have the same proportions in every split. Nodes and graphs without a target are left
/// out. If nodes have targets and graphs are split, every graph with a known target counts the same.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Split {
    /// Whether nodes or graphs are split.
    pub level: Level,
    /// Indices of the training split, which fits the weights.
    pub train: Vec<usize>,
    /// Indices of the validation split, which chooses the epoch and the hyper-parameters.
    pub val: Vec<usize>,
    /// Indices of the test split, which is evaluated once, at the end.
    pub test: Vec<usize>,
}

/// The proportions of a [`Split`]: non-negative, and 1 in total.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ratio {
    /// Proportion of the training split.
    pub train: f64,
    /// Proportion of the validation split.
    pub val: f64,
    /// Proportion of the test split.
    pub test: f64,
}

impl Default for Ratio {
    fn default() -> Self {
        Self { train: 0.8, val: 0.1, test: 0.1 }
    }
}

impl Ratio {
    pub(crate) fn check(self) -> Result<[f64; 3], Error> {
        let shares = [self.train, self.val, self.test];
        for (option, share) in ["train", "val", "test"].into_iter().zip(shares) {
            if !(0.0..=1.0).contains(&share) {
                return Err(Error::Option {
                    option,
                    value: share.to_string(),
                    expected: "a proportion between 0 and 1 is expected".into(),
                });
            }
        }
        let sum: f64 = shares.iter().sum();
        if (sum - 1.0).abs() > 1e-6 {
            return Err(Error::Option {
                option: "train + val + test",
                value: sum.to_string(),
                expected: "the proportions must sum to 1".into(),
            });
        }
        // Rounding errors would add up over millions of members.
        Ok(shares.map(|share| share / sum))
    }
}

impl Split {
    /// For each of so many nodes: 0 if it is in no split, 1, 2 or 3 for training, validation and test.
    pub(super) fn by_node(&self, nodes: usize) -> Vec<u8> {
        let mut of_nodes = vec![0; nodes];
        for (number, members) in (1..).zip([&self.train, &self.val, &self.test]) {
            members.iter().for_each(|&node| of_nodes[node] = number);
        }
        of_nodes
    }

    /// A random stratified split with these proportions. Indices are in ascending order.
    ///
    /// The size of every split is within one of its proportion of all members, and within two of its
    /// proportion of every class.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] if a proportion is negative or they do not sum to 1, [`Error::Mismatch`] if
    /// there are no targets at this level.
    pub fn by_ratio(
        dataset: &Dataset,
        level: Level,
        ratio: Ratio,
        seed: u64,
    ) -> Result<Self, Error> {
        let shares = ratio.check()?;
        let mut parts = [vec![], vec![], vec![]];
        for member in class_by_class(dataset, level, seed)? {
            let next = next_part(shares, parts.each_ref().map(Vec::len));
            parts[next].push(member);
        }
        for part in &mut parts {
            part.sort_unstable();
        }
        let [train, val, test] = parts;
        Ok(Self { level, train, val, test })
    }

    /// Random stratified folds: `folds` splits whose test splits are disjoint and together contain
    /// everything. There is no validation split. Indices are in ascending order.
    ///
    /// The sizes of any two test splits differ by at most one, in total and for every class.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] unless there are at least two folds and no more folds than members,
    /// [`Error::Mismatch`] if there are no targets at this level.
    pub fn k_fold(
        dataset: &Dataset,
        level: Level,
        folds: usize,
        seed: u64,
    ) -> Result<Vec<Self>, Error> {
        let order = class_by_class(dataset, level, seed)?;
        if !(2..=order.len()).contains(&folds) {
            return Err(Error::Option {
                option: "folds",
                value: folds.to_string(),
                expected: format!(
                    "there must be at least 2 and at most as many as there are {}s: {}",
                    level.as_str(),
                    order.len()
                ),
            });
        }
        let fold = |k| {
            // Members are ordered by class, so dealing them out in turn is even for every class.
            let part = |inside: bool| {
                let members = order.iter().enumerate();
                let mut part: Vec<usize> = members
                    .filter(|(place, _)| (place % folds == k) == inside)
                    .map(|(_, &member)| member)
                    .collect();
                part.sort_unstable();
                part
            };
            Self { level, train: part(false), val: vec![], test: part(true) }
        };
        Ok((0..folds).map(fold).collect())
    }

    /// The same with one in `every` members of the training split held out for validation, stratified
    /// and drawn from a seed.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if there are no targets at this level.
    pub fn with_validation(
        &self,
        dataset: &Dataset,
        every: usize,
        seed: u64,
    ) -> Result<Self, Error> {
        let mut training = vec![false; self.level.count(dataset)];
        for &member in &self.train {
            if let Some(training) = training.get_mut(member) {
                *training = true;
            }
        }
        let order = class_by_class(dataset, self.level, seed)?;
        let (mut train, mut val) = (vec![], vec![]);
        for (place, member) in order.into_iter().filter(|&member| training[member]).enumerate() {
            if place % every.max(2) == 0 { val.push(member) } else { train.push(member) }
        }
        train.sort_unstable();
        val.sort_unstable();
        Ok(Self { level: self.level, train, val, test: self.test.clone() })
    }

    /// The rows of targets that these members have: nodes of a graph, where whole graphs are split and
    /// nodes have the targets.
    pub fn rows(&self, members: &[usize], task: Level, dataset: &Dataset) -> Vec<usize> {
        let starts = dataset.node_starts();
        if (self.level, task) == (Level::Graph, Level::Node) {
            members.iter().flat_map(|&graph| starts[graph]..starts[graph + 1]).collect()
        } else {
            members.to_vec()
        }
    }

    /// How many nodes or graphs are in another split than in `before`, or in none.
    pub(crate) fn moved(&self, before: &Self) -> usize {
        let places = |split: &Self| -> HashMap<(&str, usize), u8> {
            let all = [(0, &split.train), (1, &split.val), (2, &split.test)];
            all.into_iter()
                .flat_map(|(place, members)| members.iter().map(move |&member| (member, place)))
                .map(|(member, place)| ((split.level.as_str(), member), place))
                .collect()
        };
        let (now, before) = (places(self), places(before));
        let gone = before.keys().filter(|member| !now.contains_key(*member)).count();
        gone + now.iter().filter(|&(member, place)| before.get(member) != Some(place)).count()
    }

    /// # Errors
    ///
    /// [`Error::Mismatch`] if a member does not exist or occurs twice.
    pub(crate) fn check(&self, nodes: usize, graphs: usize) -> Result<(), Error> {
        let what = self.level.as_str();
        let count = match self.level {
            Level::Node => nodes,
            Level::Graph => graphs,
        };
        let mut seen = vec![false; count];
        for &member in self.train.iter().chain(&self.val).chain(&self.test) {
            match seen.get_mut(member) {
                None => {
                    return Err(Error::Mismatch(format!(
                        "the split names {what} {member}, but there are {count}"
                    )));
                }
                Some(true) => {
                    return Err(Error::Mismatch(format!("the split names {what} {member} twice")));
                }
                Some(seen) => *seen = true,
            }
        }
        Ok(())
    }
}

/// Everything that has a target, ordered by class and shuffled within each class.
fn class_by_class(dataset: &Dataset, level: Level, seed: u64) -> Result<Vec<usize>, Error> {
    let Some(mut order) = level.classes(dataset) else {
        return Err(Error::Mismatch(format!(
            "{} has no targets for {}s, so they cannot be split",
            dataset.name(),
            level.as_str()
        )));
    };
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    // The sort is stable: members of a class stay shuffled.
    order.sort_by_key(|&(class, _)| class);
    Ok(order.into_iter().map(|(_, member)| member).collect())
}

fn class(targets: &TargetColumn, row: usize) -> u32 {
    match targets {
        TargetColumn::Classes(classes) => classes.codes()[row],
        TargetColumn::Values { .. } => 0,
    }
}

/// The split to which the next member goes, given the current sizes.
///
/// Tijdeman's chairman assignment: of the splits that can take a member without getting more than
/// ¾ ahead of their proportion, the one that would first fall ¾ behind. So every split stays within
/// ¾ of its proportion after every step, and within 1½ over any sequence of steps.
fn next_part(shares: [f64; 3], sizes: [usize; 3]) -> usize {
    const AHEAD: f64 = 0.75;
    let step = (sizes.iter().sum::<usize>() + 1) as f64;
    let behind = |part: usize| shares[part] * step - sizes[part] as f64;
    let deadline = |part: usize| (AHEAD - behind(part)) / shares[part];
    (0..3)
        .filter(|&part| shares[part] > 0.0 && behind(part) >= 1.0 - AHEAD - 1e-9)
        .min_by(|&a, &b| deadline(a).total_cmp(&deadline(b)))
        // The proportions sum to 1, so the three are 1 behind in total, and one of them at least ⅓.
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::{Categories, DatasetParts, FeatureColumns};
    use crate::graph::NO_TARGET;

    /// One-node graphs with these classes; a class of 9 is unknown.
    fn graphs(classes: &[u32]) -> Dataset {
        let codes = classes.iter().map(|&c| if c == 9 { NO_TARGET } else { c }).collect();
        let values = (0..9).map(|c: u32| c.to_string()).collect();
        Dataset::new(DatasetParts {
            name: "graphs".into(),
            node_starts: (0..=classes.len()).collect(),
            edges: vec![],
            node_features: FeatureColumns::none(classes.len()),
            edge_features: FeatureColumns::none(0),
            node_targets: None,
            graph_targets: Some(TargetColumn::Classes(
                Categories::from_codes("class", values, codes).unwrap(),
            )),
            split: None,
        })
        .unwrap()
    }

    fn classes() -> impl Strategy<Value = Vec<u32>> {
        (1_u32..=6, 0_u32..4).prop_flat_map(|(classes, unknown)| {
            let one = prop_oneof![10 => 0..classes, unknown => Just(9)];
            prop::collection::vec(one, 2..150)
        })
    }

    fn count(members: &[usize], classes: &[u32], class: u32) -> usize {
        members.iter().filter(|&&member| classes[member] == class).count()
    }

    fn known(classes: &[u32]) -> Vec<usize> {
        (0..classes.len()).filter(|&row| classes[row] != 9).collect()
    }

    #[test]
    fn graphs_whose_nodes_have_the_targets_can_be_divided() {
        // Two nodes per graph; those of graph 2 are unknown.
        let codes = (0..12).map(|node| if node / 2 == 2 { NO_TARGET } else { node % 2 }).collect();
        let values = vec!["out".to_owned(), "in".to_owned()];
        let dataset = Dataset::new(DatasetParts {
            name: "pairs".into(),
            node_starts: (0..=6).map(|graph| 2 * graph).collect(),
            edges: vec![],
            node_features: FeatureColumns::none(12),
            edge_features: FeatureColumns::none(0),
            node_targets: Some(TargetColumn::Classes(
                Categories::from_codes("class", values, codes).unwrap(),
            )),
            graph_targets: None,
            split: None,
        })
        .unwrap();
        let folds = Split::k_fold(&dataset, Level::Graph, 5, 0).unwrap();
        let mut tested: Vec<usize> = folds.iter().flat_map(|fold| fold.test.clone()).collect();
        tested.sort_unstable();
        assert_eq!(tested, [0, 1, 3, 4, 5]);
        let inner = folds[0].with_validation(&dataset, 2, 0).unwrap();
        assert_eq!((inner.train.len(), inner.val.len()), (2, 2));
    }

    proptest! {
        #[test]
        fn folds_are_disjoint_complete_and_balanced(classes in classes(), k in 2_usize..12, seed: u64) {
            let dataset = graphs(&classes);
            let known = known(&classes);
            prop_assume!(k <= known.len());
            let folds = Split::k_fold(&dataset, Level::Graph, k, seed).unwrap();
            prop_assert_eq!(folds.len(), k);
            let mut all: Vec<usize> = folds.iter().flat_map(|fold| fold.test.clone()).collect();
            all.sort_unstable();
            prop_assert_eq!(&all, &known);
            for fold in &folds {
                let mut both = [fold.train.clone(), fold.test.clone()].concat();
                both.sort_unstable();
                prop_assert_eq!(&both, &known);
            }
            for class in 0..6 {
                let counts: Vec<usize> =
                    folds.iter().map(|fold| count(&fold.test, &classes, class)).collect();
                let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
                prop_assert!(most - least <= 1, "class {} in folds: {:?}", class, counts);
            }
            let sizes: Vec<usize> = folds.iter().map(|fold| fold.test.len()).collect();
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }

        #[test]
        fn parts_have_their_share_of_every_class(
            classes in classes(), a in 0.0..1.0_f64, b in 0.0..1.0_f64, seed: u64,
        ) {
            let (low, high) = (a.min(b), a.max(b));
            let ratio = Ratio { train: low, val: high - low, test: 1.0 - high };
            let dataset = graphs(&classes);
            let split = Split::by_ratio(&dataset, Level::Graph, ratio, seed).unwrap();
            let known = known(&classes);
            let mut all = [split.train.clone(), split.val.clone(), split.test.clone()].concat();
            all.sort_unstable();
            prop_assert_eq!(&all, &known);
            for (part, share) in
                [(&split.train, ratio.train), (&split.val, ratio.val), (&split.test, ratio.test)]
            {
                let off = part.len() as f64 - share * known.len() as f64;
                prop_assert!(off.abs() < 1.0, "{} of {} for {}", part.len(), known.len(), share);
                for class in 0..6 {
                    let of_class = count(&known, &classes, class) as f64;
                    let off = count(part, &classes, class) as f64 - share * of_class;
                    prop_assert!(off.abs() < 2.0, "class {}: off by {}", class, off);
                }
            }
        }

        #[test]
        fn same_seed_same_split(classes in classes(), seed: u64) {
            let dataset = graphs(&classes);
            let draw = || Split::by_ratio(&dataset, Level::Graph, Ratio::default(), seed).unwrap();
            prop_assert_eq!(draw(), draw());
        }
    }

    #[test]
    fn shares_that_are_rounded_do() {
        let dataset = graphs(&vec![0; 100_000]);
        let ratio = Ratio { train: 0.0, val: 0.333_333, test: 0.666_666_5 };
        let split = Split::by_ratio(&dataset, Level::Graph, ratio, 0).unwrap();
        assert_eq!((split.train.len(), split.val.len()), (0, 33_333));
    }

    #[test]
    fn another_seed_is_another_split() {
        let dataset = graphs(&[0; 100]);
        let draw = |seed| Split::k_fold(&dataset, Level::Graph, 10, seed).unwrap();
        assert_ne!(draw(0), draw(1));
    }

    #[test]
    fn impossible_wishes_are_refused() {
        let dataset = graphs(&[0, 1, 9]);
        let said = |result: Result<_, Error>| result.map(|_: Split| ()).unwrap_err().to_string();
        assert_eq!(
            Split::k_fold(&dataset, Level::Graph, 3, 0).unwrap_err().to_string(),
            "folds is 3, but there must be at least 2 and at most as many as there are graphs: 2"
        );
        assert_eq!(
            said(Split::by_ratio(&dataset, Level::Node, Ratio::default(), 0)),
            "graphs has no targets for nodes, so they cannot be split"
        );
        let ratio = Ratio { train: 0.5, val: 0.5, test: 0.5 };
        assert_eq!(
            said(Split::by_ratio(&dataset, Level::Graph, ratio, 0)),
            "train + val + test is 1.5, but the proportions must sum to 1"
        );
        let ratio = Ratio { train: f64::NAN, ..ratio };
        assert_eq!(
            said(Split::by_ratio(&dataset, Level::Graph, ratio, 0)),
            "train is NaN, but a proportion between 0 and 1 is expected"
        );
    }
}
