//! Events: what changes in the graph, and what that can do to residuals. An event that is refused changes nothing.

use super::adjacency::MOST_NODES;
use super::bound::{ABOVE_FLOOR, Contraction, UP, errors, together};
use super::features::Row;
use super::undo::Change;
use super::{Event, EventError, GONE, LiveGraph};
use crate::graph::Features;
use crate::transition::{Sizes, Weighing};

impl LiveGraph {
    /// The number of the node that was added, if any.
    pub(super) fn change(&mut self, event: &Event) -> Result<Option<usize>, EventError> {
        match event {
            Event::AddEdge { source, target, features } => {
                self.add_edge(*source, *target, features).map(|()| None)
            }
            Event::RemoveEdge { source, target } => {
                self.remove_edge(*source, *target).map(|()| None)
            }
            Event::UpdateEdge { source, target, features } => {
                self.update_edge(*source, *target, features).map(|()| None)
            }
            Event::AddNode { graph, features } => self.add_node(*graph, features).map(Some),
            Event::RemoveNode { node } => self.remove_node(*node).map(|()| None),
            Event::UpdateNode { node, features } => {
                self.update_node(*node, features).map(|()| None)
            }
        }
    }

    fn add_edge(
        &mut self,
        source: usize,
        target: usize,
        features: &Features<f32>,
    ) -> Result<(), EventError> {
        let (source_graph, target_graph) = (self.graph_at(source)?, self.graph_at(target)?);
        if source_graph != target_graph {
            let source_node = source;
            return Err(EventError::BetweenGraphs {
                source_node,
                source_graph,
                target,
                target_graph,
            });
        }
        if self.adjacency.edge(source, target).is_some() {
            return Err(EventError::DuplicateEdge { source_node: source, target });
        }
        if self.adjacency.is_full(source, target) || self.edge_rows >= MOST_NODES {
            return Err(EventError::TooLarge);
        }
        let row = self.edge_features.check("the edge", features.view())?;
        self.check_rounding(&row, Who::Edge)?;
        let before = [source, target].map(|v| (v, self.adjacency.degree(v)));
        let number = self.free_edges.first().copied();
        #[allow(clippy::cast_possible_truncation, reason = "edges have 30 bits")]
        let edge = number.unwrap_or(self.edge_rows as u32);
        self.adjacency.add(source, target, edge);
        if let Err(error) = self.admit(&before) {
            self.adjacency.remove(source, target);
            return Err(error);
        }
        if self.edge_features.width() > 0 {
            if number.is_some() {
                self.free_edges.remove(&edge);
            } else {
                self.edge_rows += 1;
            }
            self.set_edge_features(edge as usize, &row);
        }
        self.edges += 1;
        self.note(Change::EdgeAdded { source, target, edge });
        self.join(&row, Who::Edge);
        self.join_levels(source, target);
        self.neighbourhoods_changed(&before);
        Ok(())
    }

    fn remove_edge(&mut self, source: usize, target: usize) -> Result<(), EventError> {
        let edge = self.edge_at(source, target)?;
        let before = [source, target].map(|v| (v, self.adjacency.degree(v)));
        self.adjacency.remove(source, target);
        if let Err(error) = self.admit(&before) {
            self.adjacency.add(source, target, edge);
            return Err(error);
        }
        self.drop_edge(edge);
        self.note(Change::EdgeRemoved { source, target, edge });
        self.neighbourhoods_changed(&before);
        Ok(())
    }

    fn set_edge_features(&mut self, edge: usize, row: &Row) {
        if edge < self.edge_features.rows() {
            let before = self.edge_features.entries(edge).into();
            self.note(Change::EdgeFeatures { edge, before });
        }
        self.edge_features.set(edge, row);
    }

    fn set_node_features(&mut self, node: usize, row: &Row) {
        let before = self.node_features.entries(node).into();
        self.note(Change::NodeFeatures { node, before });
        self.node_features.set(node, row);
    }

    pub(super) fn drop_edge(&mut self, edge: u32) {
        self.edges -= 1;
        if self.edge_features.width() > 0 {
            self.free_edges.insert(edge);
        }
    }

    fn update_edge(
        &mut self,
        source: usize,
        target: usize,
        features: &Features<f32>,
    ) -> Result<(), EventError> {
        let edge = self.edge_at(source, target)? as usize;
        let row = self.edge_features.check("the edge", features.view())?;
        self.check_rounding(&row, Who::Edge)?;
        if self.edge_features.width() > 0 && self.edge_features.distance(edge, &row) > 0.0 {
            self.set_edge_features(edge, &row);
            self.join(&row, Who::Edge);
            self.forget_layers(source);
            self.forget_layers(target);
        }
        Ok(())
    }

    fn add_node(&mut self, graph: usize, features: &Features<f32>) -> Result<usize, EventError> {
        if graph >= self.graph_count {
            return Err(EventError::UnknownGraph { graph, graphs: self.graph_count });
        }
        let row = self.node_features.check("the node", features.view())?;
        self.check_rounding(&row, Who::Node)?;
        let node = match self.free_nodes.first() {
            Some(&free) => free as usize,
            None if self.graphs.len() + 1 >= MOST_NODES => return Err(EventError::TooLarge),
            None => {
                self.push_node();
                self.graphs.len() - 1
            }
        };
        #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
        let (number, graph_number) = (node as u32, graph as u32);
        self.graphs[node] = graph_number;
        if let Err(error) = self.admit(&[(node, 0)]) {
            self.graphs[node] = GONE;
            self.free_nodes.insert(number);
            return Err(error);
        }
        self.enter(node, graph_number);
        self.set_node_features(node, &row);
        self.join(&row, Who::Node);
        self.clear_rows(node);
        self.pool_node(node, true);
        if self.levels.most > 0 {
            let row = if self.members.is_some() { graph } else { node };
            if self.members.is_none() {
                self.note_need(node, 0);
            }
            self.move_to_level(node, self.levels.needs[row]);
        }
        let told = self.outputs.forget(node);
        self.note(Change::NodeAdded { node, told });
        self.forget_layers(node);
        Ok(node)
    }

    fn clear_rows(&mut self, node: usize) {
        for layer in 0..self.layers.len() {
            self.keep_state(layer, node);
            self.keep_message(layer, node);
        }
        for layer in 0..self.layers.len() {
            let (width, message) = (self.state_width(layer), self.message_width(layer));
            self.states[layer][node * width..][..width].fill(0.0);
            self.messages[layer][node * message..][..message].fill(0.0);
        }
    }

    /// Room for one more node.
    fn push_node(&mut self) {
        self.adjacency.push_node();
        self.graphs.push(GONE);
        if self.levels.most > 0 {
            self.levels.of.push(0);
            if self.members.is_none() {
                self.levels.needs.push(0);
            }
        }
        for layer in 0..self.layers.len() {
            let (width, message) = (self.state_width(layer), self.message_width(layer));
            self.states[layer].resize(self.graphs.len() * width, 0.0);
            self.messages[layer].resize(self.graphs.len() * message, 0.0);
            self.residuals[layer].push(0.0);
            self.queues[layer].push_node();
        }
        self.node_features.set(self.graphs.len() - 1, &Row::default());
        if self.members.is_none() {
            self.outputs.push_row();
        }
    }

    fn remove_node(&mut self, node: usize) -> Result<(), EventError> {
        let graph = self.graph_at(node)?;
        let mut edges = vec![];
        for link in self.adjacency.of(node) {
            let u = link.node();
            if link.is_outgoing() {
                edges.push((node, u));
            }
            if link.is_incoming() && u != node {
                edges.push((u, node));
            }
        }
        let number = |&(u, v): &(usize, usize)| (u, v, self.adjacency.edge(u, v).unwrap_or(0));
        let edges: Vec<(usize, usize, u32)> = edges.iter().map(number).collect();
        let others = self.adjacency.of(node).iter().map(|link| link.node()).filter(|&u| u != node);
        let before: Vec<_> = others.map(|u| (u, self.adjacency.degree(u))).collect();
        let weight = self.weight(node);
        edges.iter().for_each(|&(u, v, _)| self.adjacency.remove(u, v));
        if let Err(error) = self.admit(&before) {
            edges.iter().for_each(|&(u, v, edge)| self.adjacency.add(u, v, edge));
            return Err(error);
        }
        for &(source, target, edge) in &edges {
            self.drop_edge(edge);
            self.note(Change::EdgeRemoved { source, target, edge });
        }
        self.pool_node(node, false);
        let alone = self.weight(node);
        #[allow(clippy::cast_possible_truncation, reason = "graphs have 32 bits")]
        if let Some(pools) = &mut self.pools {
            pools.weigh(graph as u32, weight, alone);
        }
        #[allow(clippy::cast_possible_truncation, reason = "graphs have 32 bits")]
        let graph = graph as u32;
        if self.members.is_some() {
            self.outputs.ask_for(graph);
        }
        self.clear_rows(node);
        for layer in 0..self.layers.len() {
            self.keep_residual(layer, node);
            self.residuals[layer][node] = 0.0;
        }
        self.leave(node);
        self.note(Change::NodeRemoved { node, graph });
        self.neighbourhoods_changed(&before);
        Ok(())
    }

    fn update_node(&mut self, node: usize, features: &Features<f32>) -> Result<(), EventError> {
        self.graph_at(node)?;
        let row = self.node_features.check("the node", features.view())?;
        self.check_rounding(&row, Who::Node)?;
        let distance = self.node_features.distance(node, &row);
        if distance > 0.0 {
            let old = self.node_features.dense(node);
            self.set_node_features(node, &row);
            self.pool_features(node, &old);
            self.join(&row, Who::Node);
            // Its message follows when it is computed.
            self.forget(0, node);
        }
        Ok(())
    }

    fn graph_at(&self, node: usize) -> Result<usize, EventError> {
        self.graph_of(node).ok_or(EventError::UnknownNode { node })
    }

    fn edge_at(&self, source: usize, target: usize) -> Result<u32, EventError> {
        self.graph_at(source)?;
        self.graph_at(target)?;
        let unknown = EventError::UnknownEdge { source_node: source, target };
        self.adjacency.edge(source, target).ok_or(unknown)
    }

    /// Whether `f_a` still contracts enough at nodes whose neighbours have changed, and if need be, what the new bound
    /// takes of all residuals. `before` are these nodes, with the degrees they had.
    fn admit(&mut self, before: &[(usize, usize)]) -> Result<(), EventError> {
        let mut affected: Vec<usize> = before.iter().map(|(v, _)| *v).collect();
        if self.layers[0].sensitivity.weighing.reads_normalized() {
            let of = |&(v, _): &(usize, usize)| self.adjacency.of(v).iter().map(|link| link.node());
            affected.extend(before.iter().flat_map(of));
        }
        let mut grown = vec![];
        for (number, layer) in self.layers.iter().enumerate() {
            let mut all = layer.contraction;
            for &v in &affected {
                let found = self.contraction(number, v);
                let (node, degree) = (v, self.adjacency.degree(v));
                if found.states > self.limit {
                    let (lipschitz, limit) = (found.states, self.limit);
                    return Err(EventError::Lipschitz { node, degree, lipschitz, limit });
                }
                let weight = layer.sensitivity.weighing.weight(degree);
                let floor = layer.rounding(degree).error / weight;
                if floor > layer.floor && !self.is_certain(number, floor) {
                    let bound = self.bound_with(number, floor);
                    return Err(EventError::Rounding { what: "the degree of a node", bound });
                }
                all = all.and(found);
            }
            grown.push(all);
        }
        if grown.iter().zip(&self.layers).any(|(grown, layer)| *grown != layer.contraction) {
            self.grow(&grown)?;
        }
        Ok(())
    }

    /// A larger bound, some way ahead of what it has to be, so that it seldom has to grow again; just as large as it has to
    /// be where rounding allows no more.
    fn grow(&mut self, grown: &[Contraction]) -> Result<(), EventError> {
        let thresholds: Vec<f64> = self.layers.iter().map(|layer| layer.threshold).collect();
        let before: Vec<Contraction> = self.layers.iter().map(|layer| layer.contraction).collect();
        for ahead in [0.1, 0.0] {
            for ((layer, grown), now) in self.layers.iter_mut().zip(grown).zip(&before) {
                layer.contraction = *now;
                if grown.states > now.states {
                    let states = grown.states + ahead * (1.0 - grown.states);
                    layer.contraction.states = states.min(self.limit).max(grown.states);
                }
                if grown.features > now.features {
                    layer.contraction.features = (1.0 + ahead) * grown.features;
                }
            }
            self.set_thresholds();
            if self.bound() <= self.options.tol {
                self.queue_again();
                return Ok(());
            }
        }
        let bound = together(&self.errors()[self.read.clone()]);
        for ((layer, now), threshold) in self.layers.iter_mut().zip(before).zip(thresholds) {
            (layer.contraction, layer.threshold) = (now, threshold);
        }
        Err(EventError::Rounding { what: "the degree of a node", bound })
    }

    /// Whether residuals of `floor`, which are there by rounding alone, are no more than is allowed.
    fn is_certain(&self, number: usize, floor: f64) -> bool {
        ABOVE_FLOOR * floor <= self.layers[number].residual(1.0) * UP
    }

    fn bound_with(&self, number: usize, floor: f64) -> f64 {
        let residuals = self.layers.iter().enumerate().map(|(i, layer)| {
            let residual = layer.residual(1.0);
            if i == number { residual.max(ABOVE_FLOOR * floor) } else { residual }
        });
        together(&errors(&self.layers, residuals)[self.read.clone()])
    }

    /// Refuses features so large that rounding would hide what is to be guaranteed.
    fn check_rounding(&self, row: &Row, who: Who) -> Result<(), EventError> {
        for (number, layer) in self.layers.iter().enumerate() {
            let mut sizes = who.join(number, layer.sizes, row);
            if sizes != layer.sizes {
                if who == Who::Node && number == 0 {
                    let new = Sizes { feature: row.size(), ..sizes };
                    sizes.message = sizes.message.max(layer.message_size(new));
                }
                // The nodes of the largest degree for which the bound was made have the largest error.
                let now = layer.rounding(1).error;
                let then = layer.rounding_of(sizes, 1).error;
                let floor = layer.floor.max(now) * (then / now.max(f64::MIN_POSITIVE));
                if !self.is_certain(number, floor) {
                    let bound = self.bound_with(number, floor);
                    let what = match who {
                        Who::Node => "a feature of the node",
                        Who::Edge => "a feature of the edge",
                    };
                    return Err(EventError::Rounding { what, bound });
                }
            }
        }
        Ok(())
    }

    /// Features that are there now count in what rounding can do.
    fn join(&mut self, row: &Row, who: Who) {
        for (number, layer) in self.layers.iter_mut().enumerate() {
            let sizes = who.join(number, layer.sizes, row);
            // Messages are as large as they are once they are computed.
            layer.set_sizes(Sizes { message: layer.sizes.message, ..sizes });
        }
    }

    /// Nothing is known of nodes whose neighbours have changed; and where it counts how many neighbours a neighbour has,
    /// all of theirs have changed too, by a known amount.
    fn neighbourhoods_changed(&mut self, before: &[(usize, usize)]) {
        let weighing = self.layers[0].sensitivity.weighing;
        for &(v, then) in before {
            self.forget_layers(v);
            let (old, new) = (weighing.weight(then), self.weight(v));
            if let Some(pools) = &mut self.pools {
                pools.weigh(self.graphs[v], old, new);
            }
        }
        if !weighing.reads_source_degree() {
            return;
        }
        for &(v, then) in before {
            let now = self.adjacency.degree(v);
            if now == then {
                continue;
            }
            for layer in 0..self.layers.len() {
                // What a pair, or the state of a neighbour, counts at most.
                let size = match weighing {
                    Weighing::Pairs(_) => self.layers[layer].rounding(1).size,
                    Weighing::Nodes(_) => {
                        let state = self.layers[layer].precision.size(self.row(layer, v));
                        self.layers[layer].sensitivity.message * state
                    }
                };
                for at in 0..now {
                    let u = self.adjacency.of(v)[at].node();
                    let degree = self.adjacency.degree(u);
                    let change = (weighing.pair(degree, now) - weighing.pair(degree, then)).abs();
                    self.raise(layer, u, change * size * UP);
                }
            }
        }
    }

    fn forget_layers(&mut self, v: usize) {
        (0..self.layers.len()).for_each(|layer| self.forget(layer, v));
    }
}

/// Whose features change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Node,
    Edge,
}

impl Who {
    /// What a layer reads, with a row that it may read.
    fn join(self, layer: usize, sizes: Sizes, row: &Row) -> Sizes {
        let terms = sizes.terms.max(row.terms());
        match self {
            Self::Node if layer > 0 => sizes,
            Self::Node => Sizes { feature: sizes.feature.max(row.size()), terms, ..sizes },
            Self::Edge => {
                Sizes { edge_feature: sizes.edge_feature.max(row.size()), terms, ..sizes }
            }
        }
    }
}
