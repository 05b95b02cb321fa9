//! Graphs that change: predictions stay within their bound of the fixed point, whatever happens.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers here are tiny"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use crate::common::{
    EDGE_FEATURE, FORMS, Form, LABEL, POOLINGS, Recipe, TRANSITIONS, contract, graph, model,
    networks, point,
};
use lpgnn::graph::{Features, GraphBatch, OneHot, SparseRows};
use lpgnn::inference::{FixedPoint, FixedPointOptions, converge};
use lpgnn::lagrangian::{Model, ReadFrom, ReadLayers, Reads};
use lpgnn::live::{Event, EventError, LiveGraph, LiveOptions};
use lpgnn::{Matrix, Scalar, Scratch, uniform};

type Draw = Box<dyn FnMut() -> f64>;
type Row = Vec<(usize, f32)>;

/// A graph beside the live one, from which everything is computed from scratch in double precision.
struct World {
    form: Form,
    nodes: Vec<Option<Row>>,
    edges: BTreeMap<(u32, u32), Row>,
    model: Model<f64>,
    weights: Vec<f64>,
    live: LiveGraph,
    options: LiveOptions,
    draw: Draw,
    /// Events that were possible: those that were accepted, and those that were refused for the sake of the bound.
    accepted: usize,
    refused: usize,
}

fn features<S: Scalar>(form: Form, width: usize, rows: &[&Row]) -> Features<S> {
    match form {
        Form::Dense => {
            let mut matrix = Matrix::zeros(rows.len(), width);
            for (i, row) in rows.iter().enumerate() {
                row.iter().for_each(|&(column, x)| matrix.row_mut(i)[column] = S::of_f32(x));
            }
            Features::Dense(matrix)
        }
        Form::OneHot => {
            let columns = rows.iter().map(|row| row[0].0 as u32).collect();
            Features::OneHot(OneHot::new(width, columns).unwrap())
        }
        Form::Sparse => {
            let mut starts = vec![0];
            starts.extend(rows.iter().scan(0, |end, row| {
                *end += row.len();
                Some(*end)
            }));
            let columns = rows.iter().flat_map(|row| row.iter().map(|x| x.0 as u32)).collect();
            let values = rows.iter().flat_map(|row| row.iter().map(|x| S::of_f32(x.1))).collect();
            Features::Sparse(SparseRows::new(width, starts, columns, values).unwrap())
        }
    }
}

fn random_row(draw: &mut Draw, form: Form, width: usize) -> Row {
    match form {
        Form::OneHot => vec![((draw() * width as f64) as usize, 1.0)],
        Form::Dense | Form::Sparse => (0..width)
            .filter_map(|column| {
                let (x, kept) = ((2.0 * draw() - 1.0) as f32, draw() < 0.6);
                (form == Form::Dense || kept).then_some((column, x))
            })
            .collect(),
    }
}

fn rows_of(features: &Features<f32>) -> Vec<Row> {
    (0..features.rows()).map(|row| features.entries(row).collect()).collect()
}

impl World {
    /// A random directed graph, and a model that contracts on it and on somewhat larger degrees.
    fn new(seed: u64, recipe: &Recipe, form: Form, options: &LiveOptions, bound: f64) -> Self {
        let batch = graph::<f32>(seed, 24, 0.08, form);
        let mut draw: Draw = Box::new(uniform(seed + 1000));
        // Edges are drawn first, with the same numbers.
        let mut again = uniform(seed);
        let mut edges = vec![];
        for u in 0..24_u32 {
            for v in 0..24_u32 {
                if again() < 0.08 {
                    edges.push((u, v));
                }
            }
        }
        let single = model::<f32>(recipe);
        let mut weights = point(&single, batch.nodes(), seed).weights;
        contract(&single, &batch, &mut weights, bound);
        let live = LiveGraph::new(&single, &weights, &batch, &edges, options);
        let live = live.unwrap_or_else(|e| panic!("transition {}: {e}", recipe.transition));
        draw();
        Self {
            form,
            nodes: rows_of(batch.node_features()).into_iter().map(Some).collect(),
            edges: edges.into_iter().zip(rows_of(batch.edge_features())).collect(),
            model: model::<f64>(recipe),
            weights: weights.iter().map(|&w| f64::from(w)).collect(),
            live,
            options: *options,
            draw,
            accepted: 0,
            refused: 0,
        }
    }

    fn node(&mut self) -> usize {
        ((self.draw)() * self.nodes.len() as f64) as usize
    }

    fn event(&mut self) -> Event {
        let (source, target) = (self.node(), self.node());
        let edge_row = random_row(&mut self.draw, self.form, EDGE_FEATURE);
        let node_row = random_row(&mut self.draw, self.form, LABEL);
        let edge = features(self.form, EDGE_FEATURE, &[&edge_row]);
        let node = features(self.form, LABEL, &[&node_row]);
        let existing = ((self.draw)() * self.edges.len().max(1) as f64) as usize;
        let existing = self.edges.keys().nth(existing).map(|&(u, v)| (u as usize, v as usize));
        let (u, v) = existing.unwrap_or((source, target));
        match ((self.draw)() * 100.0) as usize {
            0..36 => Event::AddEdge { source, target, features: edge },
            36..64 => Event::RemoveEdge { source: u, target: v },
            64..74 => Event::UpdateEdge { source: u, target: v, features: edge },
            74..86 => Event::UpdateNode { node: source, features: node },
            86..94 => Event::AddNode { graph: 0, features: node },
            _ => Event::RemoveNode { node: source },
        }
    }

    /// The same change here, and whether it can be at all.
    fn follow(&mut self, event: &Event, result: &Result<Option<usize>, EventError>) {
        let there = |v: usize| self.nodes.get(v).is_some_and(Option::is_some);
        let row = |features: &Features<f32>| features.entries(0).collect::<Row>();
        let key = |u: usize, v: usize| (u as u32, v as u32);
        let possible = match event {
            Event::AddEdge { source: u, target: v, .. } => {
                there(*u) && there(*v) && !self.edges.contains_key(&key(*u, *v))
            }
            Event::RemoveEdge { source: u, target: v }
            | Event::UpdateEdge { source: u, target: v, .. } => {
                self.edges.contains_key(&key(*u, *v))
            }
            Event::AddNode { .. } => true,
            Event::RemoveNode { node } | Event::UpdateNode { node, .. } => there(*node),
        };
        if let Err(error) = result {
            let bounded =
                matches!(error, EventError::Lipschitz { .. } | EventError::Rounding { .. });
            assert!(!possible || bounded, "{event:?}: {error}");
            self.refused += usize::from(possible);
            return;
        }
        assert!(possible, "{event:?} was accepted");
        self.accepted += 1;
        match event {
            Event::AddEdge { source: u, target: v, features }
            | Event::UpdateEdge { source: u, target: v, features } => {
                self.edges.insert(key(*u, *v), row(features));
            }
            Event::RemoveEdge { source: u, target: v } => {
                self.edges.remove(&key(*u, *v));
            }
            Event::AddNode { features, .. } => {
                let node = result.clone().unwrap().unwrap();
                if node == self.nodes.len() {
                    self.nodes.push(None);
                }
                assert!(self.nodes[node].is_none(), "node {node} is there");
                self.nodes[node] = Some(row(features));
            }
            Event::RemoveNode { node } => {
                self.nodes[*node] = None;
                let gone = *node as u32;
                self.edges.retain(|&(u, v), _| u != gone && v != gone);
            }
            Event::UpdateNode { node, features } => self.nodes[*node] = Some(row(features)),
        }
    }

    fn step(&mut self, events: usize) {
        let mut batch = vec![];
        for _ in 0..events {
            batch.push(self.event());
        }
        let report = self.live.apply(&batch);
        for (event, result) in batch.iter().zip(&report.results) {
            self.follow(event, result);
        }
    }

    /// The fixed point, from scratch, and the node of every row.
    fn reference(&self) -> (FixedPoint<f64>, Matrix<f64>, Vec<usize>) {
        let there: Vec<usize> =
            (0..self.nodes.len()).filter(|&v| self.nodes[v].is_some()).collect();
        let place = |v: u32| there.binary_search(&(v as usize)).unwrap() as u32;
        let edges: Vec<(u32, u32)> =
            self.edges.keys().map(|&(u, v)| (place(u), place(v))).collect();
        let rows: Vec<&Row> = there.iter().map(|&v| self.nodes[v].as_ref().unwrap()).collect();
        let edge_rows: Vec<&Row> = self.edges.values().collect();
        let batch = GraphBatch::of_graph_with_edges(
            features(self.form, LABEL, &rows),
            &edges,
            &features(self.form, EDGE_FEATURE, &edge_rows),
        )
        .unwrap();
        let options = FixedPointOptions {
            tol: 1e-12,
            max_iter: 5000,
            fall_back: None,
            ..FixedPointOptions::default()
        };
        let scratch = Scratch::new();
        let found = converge(&self.model, &self.weights, &batch, &options, &scratch);
        assert_eq!(found.failures(), 0, "{:?}", found.residuals);
        let outputs = found.outputs(&self.model, &self.weights, &batch, &scratch);
        (found, outputs, there)
    }

    /// States and predictions are within their bounds of the fixed point; returns the largest share of a bound.
    fn check(&self, case: &str) -> f64 {
        let (found, outputs, there) = self.reference();
        assert_eq!((self.live.nodes(), self.live.edges()), (there.len(), self.edges.len()));
        let distance = |a: &[f32], b: &[f64]| {
            a.iter().zip(b).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum::<f64>().sqrt()
        };
        let errors = self.live.errors();
        let mut largest = 0.0_f64;
        for (layer, (states, error)) in found.states.iter().zip(&errors).enumerate() {
            for (row, &v) in there.iter().enumerate() {
                let (x, exact) = (self.live.state(layer, v), states.row(row));
                // In the largest entry where that is the norm; it is the smaller one.
                let worst = x.iter().zip(exact).map(|(&x, e)| (f64::from(x) - e).abs());
                let apart = if case.starts_with("max") {
                    worst.fold(0.0, f64::max)
                } else {
                    distance(x, exact)
                };
                // The smaller tolerance of some nodes shows in their predictions.
                let size = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
                let rounded = if layer + 1 < errors.len() { 6e-8 * size } else { 0.0 };
                let bound = error * self.live.weight(v) + rounded;
                assert!(
                    apart <= bound,
                    "{case}: layer {layer}, node {v}: {apart:e} beyond {bound:e}"
                );
                largest = largest.max(apart / bound);
            }
        }
        let graphs = outputs.rows() == 1 && there.len() != 1;
        for (row, exact) in (0..outputs.rows()).map(|row| (row, outputs.row(row))) {
            let prediction = self.live.predict(if graphs { 0 } else { there[row] });
            let Ok(prediction) = prediction else { panic!("{case}: row {row}") };
            let apart = distance(&prediction.outputs, exact);
            assert!(apart <= prediction.bound, "{case}: row {row}: {apart:e}, {prediction:?}");
            let best = (0..exact.len()).max_by(|&a, &b| exact[a].total_cmp(&exact[b]));
            if prediction.is_final {
                assert_eq!(prediction.class, best, "{case}: row {row}: {prediction:?}, {exact:?}");
            }
        }
        largest
    }
}

fn options(layers: usize) -> LiveOptions {
    LiveOptions { tol: if layers == 1 { 1e-4 } else { 1e-3 }, ..LiveOptions::default() }
}

fn recipe(transition: usize, layers: usize, case: usize) -> Recipe {
    let from = if case.is_multiple_of(2) { ReadFrom::State } else { ReadFrom::Transition };
    let all = if case.is_multiple_of(3) { ReadLayers::All } else { ReadLayers::Last };
    Recipe {
        transition,
        layers,
        h: networks()[case % networks().len()].clone(),
        reads: Reads { from, layers: all, features: case % 5 < 3 },
        ..Recipe::default()
    }
}

fn name(transition: usize) -> String {
    let max = matches!(transition, 4 | 9);
    format!("{}transition {transition}", if max { "max: " } else { "" })
}

#[test]
fn after_ten_thousand_events_states_are_within_their_bound_of_the_fixed_point() {
    for layers in [1, 3] {
        for transition in 0..TRANSITIONS {
            let case = transition + 5 * layers;
            let form = FORMS[case % 3];
            let mut largest = 0.0_f64;
            let recipe = recipe(transition, layers, case);
            let mut world = World::new(case as u64, &recipe, form, &options(layers), 0.6);
            for step in 0..500 {
                world.step(20);
                if step % 100 == 99 {
                    largest = largest.max(world.check(&name(transition)));
                }
            }
            // A bound that is far away would be no bound.
            assert!(largest > 1e-3, "transition {transition}, {layers} layers: {largest:e}");
            // Nor would one that hardly lets anything change.
            let (accepted, refused) = (world.accepted, world.refused);
            assert!(
                accepted > 4 * refused && accepted > 3000,
                "transition {transition}, {layers} layers: {accepted} accepted, {refused} refused"
            );
        }
    }
}

#[test]
fn the_bound_holds_after_every_single_event() {
    for (layers, events) in [(1, 60), (3, 40)] {
        for transition in 0..TRANSITIONS {
            let pooling = POOLINGS[(transition + layers / 2) % 4];
            let recipe = Recipe { pooling, ..recipe(transition, layers, transition) };
            let form = FORMS[(transition + 1) % 3];
            let mut world = World::new(transition as u64, &recipe, form, &options(layers), 0.7);
            for _ in 0..events {
                world.step(1);
                world.check(&name(transition));
            }
        }
    }
}

/// A model, its weights, and a graph with its edges.
type Small = (Model<f32>, Vec<f32>, GraphBatch<f32>, Vec<(u32, u32)>);

/// A triangle with a tail, along edges in one direction, and a model of the mean that contracts.
fn small() -> Small {
    let edges = vec![(0, 1), (1, 2), (2, 0), (2, 3)];
    let rows: Vec<Vec<f32>> = (0..4).map(|v| vec![v as f32, 1.0, -0.5]).collect();
    let none = Features::Dense(Matrix::zeros(edges.len(), EDGE_FEATURE));
    let nodes = Features::Dense(Matrix::from_rows(&rows).unwrap());
    let batch = GraphBatch::of_graph_with_edges(nodes, &edges, &none).unwrap();
    let model = model::<f32>(&Recipe::default());
    let mut weights = point(&model, batch.nodes(), 3).weights;
    contract(&model, &batch, &mut weights, 0.8);
    (model, weights, batch, edges)
}

fn edge(values: [f32; EDGE_FEATURE]) -> Features<f32> {
    Features::Dense(Matrix::from_rows(&[values.to_vec()]).unwrap())
}

#[test]
fn an_edge_that_is_removed_and_added_again_leaves_the_predictions_as_they_were() {
    for transition in 0..TRANSITIONS {
        let recipe = recipe(transition, 1, transition);
        let mut world = World::new(7, &recipe, Form::Dense, &options(1), 0.6);
        let nodes: Vec<usize> = (0..world.nodes.len()).collect();
        let all = |live: &LiveGraph| -> Vec<_> {
            nodes.iter().map(|&v| live.predict(v).unwrap()).collect()
        };
        let before = all(&world.live);
        let edges: Vec<((u32, u32), Row)> = world.edges.clone().into_iter().collect();
        for ((u, v), _) in &edges {
            let report = world.live.apply(&[Event::remove_edge(*u as usize, *v as usize)]);
            report.results[0].as_ref().unwrap();
        }
        assert_eq!(world.live.edges(), 0);
        for ((u, v), row) in &edges {
            let features = features(Form::Dense, EDGE_FEATURE, &[row]);
            let (source, target) = (*u as usize, *v as usize);
            let report = world.live.apply(&[Event::AddEdge { source, target, features }]);
            report.results[0].as_ref().unwrap();
        }
        for (v, (a, b)) in before.iter().zip(all(&world.live)).enumerate() {
            let apart = a.outputs.iter().zip(&b.outputs).map(|(a, b)| f64::from(a - b).powi(2));
            let apart = apart.sum::<f64>().sqrt();
            assert!(apart <= a.bound + b.bound, "transition {transition}, node {v}: {apart:e}");
        }
    }
}

#[test]
fn the_same_events_give_the_same_bits_for_any_number_of_threads_and_after_loading() {
    let states = |threads: usize, reload: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let options = LiveOptions { tol: 0.1, final_tol: Some(0.02), ..options(1) };
            let mut world = World::new(5, &recipe(3, 1, 0), Form::Sparse, &options, 0.6);
            for step in 0..40 {
                world.step(7);
                if reload && step % 10 == 3 {
                    let model = model::<f32>(&recipe(3, 1, 0));
                    let weights: Vec<f32> = world.weights.iter().map(|&w| w as f32).collect();
                    let bytes = world.live.save();
                    world.live = LiveGraph::load(&model, &weights, &bytes, &world.options).unwrap();
                    assert_eq!(world.live.save(), bytes);
                }
            }
            (world.live.save(), world.live.changed())
        })
    };
    let first = states(1, false);
    assert!(!first.1.is_empty());
    assert_eq!(first, states(3, false));
    assert_eq!(first, states(2, true));
}

#[test]
fn a_saved_graph_that_is_damaged_is_refused() {
    let (model, weights, batch, edges) = small();
    let options = LiveOptions::default();
    let live = LiveGraph::new(&model, &weights, &batch, &edges, &options).unwrap();
    let bytes = live.save();
    for length in 0..bytes.len() {
        assert!(LiveGraph::load(&model, &weights, &bytes[..length], &options).is_err(), "{length}");
    }
}

#[test]
fn bad_events_are_refused_and_change_nothing() {
    let (model, weights, batch, edges) = small();
    let options = LiveOptions::default();
    let mut live = LiveGraph::new(&model, &weights, &batch, &edges, &options).unwrap();
    let before = live.save();
    let nan = Features::Dense(Matrix::from_rows(&[vec![f32::NAN, 0.0, 0.0]]).unwrap());
    let huge = Features::Dense(Matrix::from_rows(&[vec![1e9, 0.0, 0.0]]).unwrap());
    let narrow = Features::Dense(Matrix::from_rows(&[vec![1.0]]).unwrap());
    let row = || edge([0.0, 0.0]);
    let bad = [
        Event::AddEdge { source: 0, target: 9, features: row() },
        Event::AddEdge { source: 0, target: 1, features: row() },
        Event::AddEdge { source: 1, target: 0, features: narrow.clone() },
        Event::AddEdge { source: 1, target: 0, features: edge([f32::INFINITY, 0.0]) },
        Event::RemoveEdge { source: 1, target: 0 },
        Event::UpdateEdge { source: 3, target: 2, features: row() },
        Event::UpdateNode { node: 0, features: nan },
        Event::UpdateNode { node: 0, features: huge },
        Event::UpdateNode { node: 4, features: narrow.clone() },
        Event::AddNode { graph: 1, features: narrow.clone() },
        Event::AddNode { graph: 0, features: narrow },
        Event::RemoveNode { node: 4 },
    ];
    let report = live.apply(&bad);
    for (event, result) in bad.iter().zip(&report.results) {
        assert!(result.is_err(), "{event:?}");
    }
    assert_eq!((report.touched, live.save()), (0, before));
    let sentences: Vec<String> =
        report.results.iter().map(|result| result.clone().unwrap_err().to_string()).collect();
    assert_eq!(sentences[0], "there is no node 9");
    assert_eq!(sentences[1], "there is an edge from node 0 to node 1 already");
    assert_eq!(sentences[6], "feature 0 of the node is NaN, but a finite number is expected");
}

#[test]
fn a_hub_that_breaks_the_bound_is_refused_and_the_graph_stays_valid() {
    // The original GNN: its bound contains the largest degree.
    let coarse = LiveOptions { tol: 0.02, ..options(1) };
    let mut world = World::new(3, &recipe(0, 1, 0), Form::Dense, &coarse, 0.6);
    let mut refused = None;
    for target in 1..24 {
        let features = edge([0.1, 0.2]);
        let event = Event::AddEdge { source: 0, target, features };
        let report = world.live.apply(std::slice::from_ref(&event));
        world.follow(&event, &report.results[0]);
        if let Err(error @ EventError::Lipschitz { .. }) = &report.results[0] {
            refused = Some(error.to_string());
        }
        assert!(report.bound <= 1.0001 * world.options.tol, "{}", report.bound);
    }
    let refused = refused.unwrap();
    assert!(refused.contains("neighbours and f_a a Lipschitz bound of"), "{refused}");
    assert!(world.live.neighbours(0).count() < 23);
    world.check("hub");
}

#[test]
fn an_isolated_node_appears_and_disappears() {
    let (model, weights, batch, edges) = small();
    let options = LiveOptions::default();
    let mut live = LiveGraph::new(&model, &weights, &batch, &edges, &options).unwrap();
    assert!(live.changed().is_empty());
    let others: Vec<_> = (0..4).map(|v| live.predict(v).unwrap()).collect();
    let features = Features::Dense(Matrix::from_rows(&[vec![0.3, -0.2, 0.9]]).unwrap());
    let report = live.apply(&[Event::AddNode { graph: 0, features }]);
    assert_eq!((report.results, report.touched), (vec![Ok(Some(4))], 1));
    assert_eq!((live.changed(), live.nodes()), (vec![4], 5));
    let alone = live.predict(4).unwrap();
    assert!(alone.outputs.iter().all(|z| z.is_finite()));
    live.apply(&[Event::RemoveNode { node: 4 }]).results[0].as_ref().unwrap();
    assert!(live.changed().is_empty() && live.predict(4).is_err() && live.nodes() == 4);
    assert_eq!(others, (0..4).map(|v| live.predict(v).unwrap()).collect::<Vec<_>>());
}

#[test]
fn the_tolerance_that_a_refusal_names_is_accepted() {
    let (_, _, batch, edges) = small();
    for layers in [1, 2, 3] {
        let model = model::<f32>(&Recipe { layers, ..Recipe::default() });
        let mut weights = point(&model, batch.nodes(), 3).weights;
        contract(&model, &batch, &mut weights, 0.8);
        let new = |tol: f64| {
            let options = LiveOptions { tol, ..LiveOptions::default() };
            LiveGraph::new(&model, &weights, &batch, &edges, &options)
        };
        let message = new(1e-12).unwrap_err().to_string();
        let (_, rest) = message.split_once("less than ").unwrap();
        let least: f64 = rest.split_once(' ').unwrap().0.parse().unwrap();
        let live = new(least).unwrap_or_else(|error| panic!("{layers} layers, {least}: {error}"));
        assert!(live.bound() <= 1.0001 * least, "{layers} layers: {} for {least}", live.bound());
    }
}

/// Features that are larger and larger, until what follows from them is too large for single precision.
#[test]
fn what_rounding_cannot_tell_is_taken_back_to_the_same_bits() {
    let (mut taken_back, mut edges) = (0, 0);
    for transition in 0..TRANSITIONS {
        let recipe = Recipe { pooling: POOLINGS[transition % 4], ..recipe(transition, 1, 3) };
        let final_tol = transition.is_multiple_of(2).then_some(2e-5);
        let options = LiveOptions { tol: 1e-4, final_tol, ..LiveOptions::default() };
        let mut world = World::new(transition as u64, &recipe, Form::Dense, &options, 0.7);
        let tol = world.options.tol;
        for round in 0..400 {
            let (before, nodes) = (world.live.save(), world.live.node_numbers());
            let mut batch: Vec<Event> = (0..=round % 3).map(|_| world.event()).collect();
            let scale = 10.0_f32.powi(round / 40);
            for event in &mut batch {
                if let Event::UpdateNode { features, .. }
                | Event::AddNode { features, .. }
                | Event::UpdateEdge { features, .. }
                | Event::AddEdge { features, .. } = event
                {
                    let large = features.entries(0).map(|(_, x)| scale * x).collect();
                    *features = Features::Dense(Matrix::from_rows(&[large]).unwrap());
                }
            }
            let report = world.live.apply(&batch);
            for (event, result) in batch.iter().zip(&report.results) {
                world.follow(event, result);
            }
            assert!(report.bound <= 1.0001 * tol, "{}: {}", name(transition), report.bound);
            let follows = |error: &EventError| error.to_string().starts_with("a state");
            let refused = report.results.iter().filter(|r| r.as_ref().is_err_and(follows)).count();
            taken_back += refused;
            let added = batch.iter().zip(&report.results).filter(|(event, result)| {
                matches!(event, Event::AddEdge { .. }) && result.as_ref().is_err_and(follows)
            });
            edges += added.count();
            // A number that was given to a node for a while is there to be given again.
            if report.results.iter().all(Result::is_err) && world.live.node_numbers() == nodes {
                let is_same = world.live.save() == before;
                assert!(is_same, "{}, round {round}: {batch:?} {report:?}", name(transition));
            }
            if round % 40 == 0 || refused > 0 {
                world.check(&name(transition));
            }
        }
    }
    assert!(taken_back > 20, "{taken_back} events were taken back");
    assert!(edges > 5, "{edges} of them were new edges");
}

/// An event that is taken back does not take along what the others of its batch have changed.
#[test]
fn what_is_taken_back_leaves_the_rest_of_its_batch() {
    let options = LiveOptions { tol: 1e-4, classes: false, ..LiveOptions::default() };
    let update = |node: usize, size: f32| {
        let features = Features::Dense(Matrix::from_rows(&[vec![size; LABEL]]).unwrap());
        Event::UpdateNode { node, features }
    };
    let mut taken_back = 0;
    for transition in 0..TRANSITIONS {
        let recipe = recipe(transition, 1, 3);
        let new = || World::new(transition as u64, &recipe, Form::Dense, &options, 0.7).live;
        let mut live = new();
        let alone = (live.apply(&[update(0, 3.0)]).touched, live.changed());
        for exponent in 2..24 {
            let mut live = new();
            let report = live.apply(&[update(0, 3.0), update(2, 2.0_f32.powi(exponent))]);
            let follows = |error: &EventError| error.to_string().starts_with("a state");
            if report.results[1].as_ref().is_err_and(follows) {
                taken_back += 1;
                let found = (report.touched, live.changed());
                assert_eq!(found, alone, "{}, 2^{exponent}", name(transition));
            }
        }
    }
    assert!(taken_back > 0);
}

#[test]
fn what_has_no_bound_is_refused_with_a_reason() {
    let (model, mut weights, batch, edges) = small();
    let new = |weights: &[f32], options: &LiveOptions| {
        LiveGraph::new(&model, weights, &batch, &edges, options).unwrap_err().to_string()
    };
    let options = LiveOptions { tol: 1e-9, ..LiveOptions::default() };
    let message = new(&weights, &options);
    assert!(message.contains("single precision cannot guarantee less than"), "{message}");
    let options = LiveOptions { final_tol: Some(1.0), ..LiveOptions::default() };
    assert_eq!(
        new(&weights, &options),
        "final-tol is 1, but a number between 0 and 0.001 is expected"
    );
    weights.iter_mut().for_each(|w| *w *= 30.0);
    let message = new(&weights, &LiveOptions::default());
    assert!(message.contains("train with training.lipschitz below 1"), "{message}");
}

/// A ring of nodes that know little of each other, a read-out, and how often something was computed in some events.
fn ring(options: &LiveOptions) -> (LiveGraph, usize) {
    let nodes = 600_u32;
    let mut edges: Vec<(u32, u32)> =
        (0..nodes).flat_map(|v| [(v, (v + 1) % nodes), ((v + 1) % nodes, v)]).collect();
    edges.sort_unstable();
    let mut draw = uniform(4);
    let rows: Vec<Vec<f32>> =
        (0..nodes).map(|_| (0..LABEL).map(|_| 4.0 * draw() as f32 - 2.0).collect()).collect();
    let none = Features::Dense(Matrix::zeros(edges.len(), EDGE_FEATURE));
    let features = Features::Dense(Matrix::from_rows(&rows).unwrap());
    let batch = GraphBatch::of_graph_with_edges(features, &edges, &none).unwrap();
    let model = model::<f32>(&recipe(1, 1, 0));
    let mut weights = point(&model, batch.nodes(), 3).weights;
    contract(&model, &batch, &mut weights, 0.4);
    let mut live = LiveGraph::new(&model, &weights, &batch, &edges, options).unwrap();
    let mut evaluated = 0;
    for _ in 0..200 {
        let node = (draw() * f64::from(nodes)) as usize;
        let row: Vec<f32> = (0..LABEL).map(|_| 4.0 * draw() as f32 - 2.0).collect();
        let features = Features::Dense(Matrix::from_rows(&[row]).unwrap());
        evaluated += live.apply(&[Event::UpdateNode { node, features }]).evaluated;
    }
    (live, evaluated)
}

#[test]
fn classes_that_are_not_final_get_a_smaller_tolerance_and_others_do_not() {
    let coarse = LiveOptions { tol: 0.5, ..LiveOptions::default() };
    let refined = LiveOptions { final_tol: Some(1e-4), ..coarse };
    let fine = LiveOptions { tol: 1e-4, ..coarse };
    let [(coarse, few), (refined, some), (fine, many)] = [&coarse, &refined, &fine].map(ring);
    let open = |live: &LiveGraph| {
        (0..live.nodes()).filter(|&v| !live.predict(v).unwrap().is_final).count()
    };
    let [before, after, least] = [&coarse, &refined, &fine].map(open);
    assert!(before > 20 && after <= least + 1, "{before}, {after}, {least}");
    assert!(few < some && 3 * some < 2 * many, "{few}, {some}, {many}");
    // What is said of the coarse ones holds.
    for v in 0..refined.nodes() {
        let (a, b) = (refined.predict(v).unwrap(), fine.predict(v).unwrap());
        let apart = a.outputs.iter().zip(&b.outputs).map(|(a, b)| f64::from(a - b).powi(2));
        assert!(apart.sum::<f64>().sqrt() <= a.bound + b.bound, "node {v}");
        assert!(!a.is_final || !b.is_final || a.class == b.class, "node {v}");
    }
}

#[test]
fn bounds_hold_where_tolerances_differ() {
    for transition in 0..TRANSITIONS {
        let recipe =
            Recipe { pooling: POOLINGS[transition % 4], ..recipe(transition, 1, transition) };
        let options = LiveOptions { tol: 0.1, final_tol: Some(1e-3), ..options(1) };
        let mut world = World::new(transition as u64, &recipe, Form::Dense, &options, 0.5);
        for _ in 0..40 {
            world.step(3);
            world.check(&name(transition));
        }
    }
}

#[test]
fn events_in_a_large_graph_do_not_read_all_of_it_to_predict_it() {
    // Predictions of graphs are those of a graph that was read anew, bit for bit, whatever came and went.
    for pooling in POOLINGS {
        let recipe = Recipe { pooling, ..recipe(2, 1, 0) };
        let mut world = World::new(9, &recipe, Form::Dense, &options(1), 0.6);
        let single = model::<f32>(&recipe);
        let weights: Vec<f32> = world.weights.iter().map(|&w| w as f32).collect();
        for _ in 0..30 {
            world.step(5);
            let bytes = world.live.save();
            let again = LiveGraph::load(&single, &weights, &bytes, &world.options).unwrap();
            let rows = if pooling.is_some() { 1 } else { world.live.node_numbers() };
            for row in 0..rows {
                assert_eq!(world.live.predict(row), again.predict(row), "{pooling:?}");
            }
        }
    }
}
