//! The order of the nodes of a data set.

use super::{Dataset, DatasetParts, SampleWeights, Split, TargetColumn};
use crate::Error;
use crate::graph::Level;

impl Dataset {
    /// The same graphs with their nodes in another order: node `i` is what was node `order[i]`. Nodes keep their names; those
    /// without one are called by the number that they had in their graph.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] unless every node occurs once, among the nodes of its graph.
    pub fn reordered(&self, order: &[usize]) -> Result<Self, Error> {
        let places = self.places(order)?;
        #[allow(clippy::cast_possible_truncation, reason = "nodes are numbered with 32 bits")]
        let moved = |v: u32| places[v as usize] as u32;
        let rows = |targets: Option<&TargetColumn>| targets.map(|targets| targets.select(order));
        let in_graph = |v: usize| {
            let starts = self.node_starts();
            v - starts[starts.partition_point(|&start| start <= v) - 1]
        };
        let name =
            |&v: &usize| self.node_name(v).map_or_else(|| in_graph(v).to_string(), Into::into);
        let graphs = (0..self.graphs()).map(|graph| self.graph_name(graph).map(str::to_owned));
        let weights = self.weights().map(|weights| match weights.level() {
            Level::Node => weights.select(order),
            Level::Graph => SampleWeights::clone(weights),
        });
        let sorted = Self::new(DatasetParts {
            name: self.name().to_owned(),
            node_starts: self.node_starts().to_vec(),
            edges: self.edges().iter().map(|&(u, v)| (moved(u), moved(v))).collect(),
            node_features: self.node_features().select(order),
            edge_features: self.edge_features().clone(),
            node_targets: rows(self.node_targets()),
            graph_targets: self.graph_targets().cloned(),
            split: self.split().map(|split| renumbered(split, &places)),
        })?
        .with_names(graphs.collect(), Some(order.iter().map(name).collect()))?
        .with_weights(weights)?;
        Ok(if self.reads_all() { sorted.with_chosen_features() } else { sorted })
    }

    /// Where every node goes.
    fn places(&self, order: &[usize]) -> Result<Vec<usize>, Error> {
        let problem = || {
            Error::Mismatch(
                "an order of nodes has to have every node once, within its graph".into(),
            )
        };
        let mut places = vec![usize::MAX; self.nodes()];
        if order.len() != self.nodes() {
            return Err(problem());
        }
        for graph in self.node_starts().windows(2) {
            for place in graph[0]..graph[1] {
                let node = order[place];
                if !(graph[0]..graph[1]).contains(&node) || places[node] != usize::MAX {
                    return Err(problem());
                }
                places[node] = place;
            }
        }
        Ok(places)
    }
}

/// The split of nodes that are in other places now.
fn renumbered(split: &Split, places: &[usize]) -> Split {
    if split.level == Level::Graph {
        return split.clone();
    }
    let moved = |nodes: &[usize]| {
        let mut moved: Vec<usize> = nodes.iter().map(|&v| places[v]).collect();
        moved.sort_unstable();
        moved
    };
    let (train, val, test) = (moved(&split.train), moved(&split.val), moved(&split.test));
    Split { level: Level::Node, train, val, test }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::CommunitiesConfig;

    #[test]
    fn nodes_take_along_all_that_is_theirs() {
        let config = CommunitiesConfig { nodes: 30, degree: 3.0, ..CommunitiesConfig::default() };
        let before = config.generate(1).unwrap();
        let order: Vec<usize> = (0..30).map(|i| i * 7 % 30).collect();
        let after = before.reordered(&order).unwrap();
        let back = |v: u32| order[v as usize];
        let mut edges: Vec<(usize, usize)> =
            after.edges().iter().map(|&(u, v)| (back(u), back(v))).collect();
        edges.sort_unstable();
        let expected: Vec<(usize, usize)> =
            before.edges().iter().map(|&(u, v)| (u as usize, v as usize)).collect();
        assert_eq!(edges, expected);
        assert_eq!(after.node_name(1), Some("7"));
        assert_eq!(*after.node_features(), before.node_features().select(&order));
        assert_eq!(after.node_targets(), before.node_targets().map(|y| y.select(&order)).as_ref());
        let train = |data: &Dataset| data.split().unwrap().train.clone();
        let mut trained: Vec<usize> = train(&after).iter().map(|&v| order[v]).collect();
        trained.sort_unstable();
        assert_eq!(trained, train(&before));
        // Back again.
        let places = before.places(&order).unwrap();
        assert_eq!(after.reordered(&places).unwrap().edges(), before.edges());
        assert!(before.reordered(&vec![0; 30]).is_err() && before.reordered(&order[1..]).is_err());
    }
}
