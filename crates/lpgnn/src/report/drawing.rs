use std::collections::{HashMap, HashSet};

use crate::Error;
use crate::data::Dataset;
use crate::experiment::record::Items;
use crate::graph::Level;
use crate::run::SavedModel;

/// A graph, or the surroundings of a node, to be drawn.
#[derive(Debug, serde::Serialize)]
pub(super) struct Drawing {
    why: &'static str,
    name: String,
    text: String,
    nodes: usize,
    /// Two entries per edge.
    edges: Vec<usize>,
    /// The colour of every node, from its state.
    values: Vec<f64>,
    /// The nodes that are ringed: those that are predicted wrongly.
    wrong: Vec<usize>,
    /// The node that it is about.
    centre: Option<usize>,
}

/// How many are drawn of each kind, and how large they may be.
const EACH: usize = 3;
const MOST_NODES: usize = 150;
/// Characters of a name below a drawing.
const MOST_OF_A_NAME: usize = 60;

/// What the model is most wrong about, and what it is most uncertain about.
pub(super) fn drawings(
    model: &SavedModel,
    dataset: &Dataset,
    items: &Items,
    classes: &[String],
) -> Result<Vec<Drawing>, Error> {
    let confident = |&k: &usize| items.confidence.get(k).copied().flatten();
    let mistaken = |&k: &usize| items.target[k].is_some() && items.target[k] != items.predicted[k];
    let mut wrong: Vec<usize> = (0..items.target.len()).filter(mistaken).collect();
    let bad: HashSet<usize> = wrong.iter().map(|&k| items.index[k]).collect();
    wrong.sort_by(|a, b| confident(b).partial_cmp(&confident(a)).unwrap_or(a.cmp(b)));
    let mut unsure: Vec<usize> =
        (0..items.target.len()).filter(|k| confident(k).is_some()).collect();
    unsure.sort_by(|a, b| confident(a).partial_cmp(&confident(b)).unwrap_or(a.cmp(b)));
    let chosen = wrong.into_iter().take(EACH).map(|k| ("Most wrong", k));
    let chosen: Vec<_> =
        chosen.chain(unsure.into_iter().take(EACH).map(|k| ("Most uncertain", k))).collect();
    if chosen.is_empty() {
        return Ok(vec![]);
    }
    let states = model.predict(dataset, false)?.fixed_point.states;
    let colour = |v: usize| states.last().map_or(0.0, |x| f64::from(x.row(v).iter().sum::<f32>()));
    let name = |class: Option<usize>| -> String {
        let name = class.and_then(|class| classes.get(class)).map_or("unknown", |name| name);
        name.chars().take(MOST_OF_A_NAME).collect()
    };
    Ok(chosen
        .into_iter()
        .map(|(why, k)| {
            let index = items.index[k];
            let (nodes, centre) = match model.task {
                Level::Graph => {
                    let starts = dataset.node_starts();
                    ((starts[index]..starts[index + 1]).take(MOST_NODES).collect(), None)
                }
                Level::Node => (surroundings(dataset, index), Some(index)),
            };
            let places: HashMap<usize, usize> = nodes.iter().copied().zip(0..).collect();
            let place = |v: usize| places.get(&v).copied();
            let ends = dataset.edges().iter().filter_map(|&(u, v)| {
                Some([place(u as usize)?, place(v as usize)?]).filter(|[u, v]| u != v)
            });
            Drawing {
                why,
                name: format!("{} {index}", model.task.as_str()),
                text: format!(
                    "true {}, predicted {} with probability {:.2}",
                    name(items.target[k]),
                    name(items.predicted[k]),
                    confident(&k).unwrap_or(f64::NAN)
                ),
                edges: ends.flatten().collect(),
                values: nodes.iter().map(|&v| colour(v)).collect(),
                wrong: match centre {
                    Some(_) => {
                        (0..).zip(&nodes).filter(|(_, v)| bad.contains(v)).map(|(i, _)| i).collect()
                    }
                    None => vec![],
                },
                centre: centre.and_then(place),
                nodes: nodes.len(),
            }
        })
        .collect())
}

/// A node and those within two steps, as many as can be drawn.
fn surroundings(dataset: &Dataset, node: usize) -> Vec<usize> {
    let mut found = vec![node];
    let mut seen = HashSet::from([node]);
    for _ in 0..2 {
        let near = seen.clone();
        for &(u, v) in dataset.edges() {
            let (u, v) = (u as usize, v as usize);
            for (from, to) in [(u, v), (v, u)] {
                if near.contains(&from) && found.len() < MOST_NODES && seen.insert(to) {
                    found.push(to);
                }
            }
        }
    }
    found
}
