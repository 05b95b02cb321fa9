//! Checkpoints of a graph in parts: every process writes the rows of its nodes.
//!
//! A folder `checkpoint.EPOCH` has a file per part, with states, multipliers and what the optimiser remembers of nodes. All else is in
//! `checkpoint.safetensors`, which is written when they are all there and names the folder. So there always is a whole checkpoint, and
//! it can be read by another number of processes.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::bundle::Bundle;
use super::checkpoint::{AboutSlot, SlotKind, insert_slot, take_matrices, take_slot};
use super::{Checkpoint, CheckpointFile, TrainingOrigin};
use crate::graph::Share;
use crate::lagrangian::{Model, Variables};
use crate::saddle::{OptimizerState, Slot, Slots};
use crate::train::TrainerState;
use crate::{Error, Matrix, Place};

/// Where the rows of nodes are.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct AboutParts {
    /// The folder beside the checkpoint.
    folder: String,
    /// How many parts it has.
    count: usize,
}

impl Checkpoint {
    /// Writes the checkpoint of a graph in parts; all ranks do so together, each with the state of the nodes that it owns.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] on those ranks that could not write, [`Error::Elsewhere`] on the others; an earlier checkpoint is then still
    /// there.
    pub(crate) fn write_parts(
        path: &Path,
        origin: &TrainingOrigin,
        seconds: f64,
        state: &TrainerState<f32>,
        share: &Share,
    ) -> Result<(), Error> {
        let name = format!("checkpoint.{}", state.epoch);
        let folder = path.with_file_name(&name);
        let parts = share.own_parts();
        let written = parts.iter().try_for_each(|(part, rows)| {
            std::fs::create_dir_all(&folder).map_err(|source| Error::Io {
                action: "create",
                path: folder.clone(),
                source,
            })?;
            part_bundle(state, rows).write(&file_of(&folder, *part))
        });
        share.agree(written)?;
        let first = share.communicator().rank() == 0;
        let about = AboutParts { folder: name.clone(), count: share.parts() };
        let whole = || {
            Self::bundle(origin, seconds, &without_rows(state), Some(about))
                .map_err(|problem| Place::file(path).error(problem))?
                .write(path)
        };
        share.agree(if first { whole() } else { Ok(()) })?;
        if first {
            remove_parts(path, Some(&name));
        }
        Ok(())
    }
}

impl CheckpointFile {
    /// Reads the checkpoint of a graph in parts, with the rows of the nodes that this rank owns.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when its arrays are those of another model or of other parts.
    pub(crate) fn read_parts(self, model: &Model<f32>, share: &Share) -> Result<Checkpoint, Error> {
        let Self { path, about, bundle } = self;
        let problem = |problem: &str| Place::file(&path).error(problem);
        let Some(parts) = &about.parts else {
            return Err(problem("is not of a graph in parts, but the data are"));
        };
        if parts.count != share.parts() || parts.folder.contains(['/', '\\']) {
            return Err(problem(&format!(
                "is of a graph in {} parts, but the data have {}",
                parts.count,
                share.parts()
            )));
        }
        let folder = path.with_file_name(&parts.folder);
        let mut read = vec![];
        for (part, rows) in share.own_parts() {
            let path = file_of(&folder, part);
            let taken = take_part(Bundle::read(&path)?, &about.slots, model, rows.len());
            read.push(taken.map_err(|problem| Place::file(&path).error(problem))?);
        }
        let mut checkpoint =
            Checkpoint::of_arrays(about, bundle, model, 0).map_err(|text| problem(&text))?;
        let state = &mut checkpoint.state;
        let of_parts = |of: fn(&Variables<f32>) -> &[Matrix<f32>]| {
            joined(&read.iter().map(|(variables, _)| of(variables)).collect::<Vec<_>>())
        };
        let weights = std::mem::take(&mut state.variables.weights);
        let states = of_parts(|variables| &variables.states);
        let multipliers = of_parts(|variables| &variables.multipliers);
        state.variables = Variables { weights, states, multipliers };
        let mut slots = state.optimizer.slots.clone();
        for (name, slot) in state.optimizer.slots.iter() {
            let rows: Vec<&[Matrix<f32>]> = read
                .iter()
                .filter_map(|(_, slots)| slots.iter().find(|(own, _)| *own == name))
                .filter_map(|(_, slot)| match slot {
                    Slot::States(rows) | Slot::Multipliers(rows) => Some(&rows[..]),
                    _ => None,
                })
                .collect();
            match slot {
                Slot::States(_) => slots.insert(name, Slot::States(joined(&rows))),
                Slot::Multipliers(_) => slots.insert(name, Slot::Multipliers(joined(&rows))),
                _ => {}
            }
        }
        state.optimizer = OptimizerState::with_slots(&state.variables, slots);
        Ok(checkpoint)
    }
}

/// Removes the folders of checkpoints beside a file, but for the one that it names.
pub(crate) fn remove_parts(path: &Path, kept: Option<&str>) {
    let folder = path.parent().unwrap_or(Path::new("."));
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let epoch = name.strip_prefix("checkpoint.").filter(|_| kept != Some(&name));
        if epoch.is_some_and(|epoch| epoch.parse::<usize>().is_ok()) {
            // What cannot be removed is in nobody's way.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn file_of(folder: &Path, part: usize) -> PathBuf {
    folder.join(format!("part-{part:05}.safetensors"))
}

fn rows_of(matrices: &[Matrix<f32>], rows: &Range<usize>) -> Vec<Matrix<f32>> {
    matrices.iter().map(|matrix| matrix.select(rows.clone())).collect()
}

/// What belongs to some nodes.
fn part_bundle(state: &TrainerState<f32>, rows: &Range<usize>) -> Bundle {
    let about = serde_json::json!({ "kind": "checkpoint part", "epoch": state.epoch });
    let mut bundle = Bundle::new(about);
    let variables = &state.variables;
    for (name, matrices) in [("states", &variables.states), ("multipliers", &variables.multipliers)]
    {
        for (k, matrix) in rows_of(matrices, rows).iter().enumerate() {
            bundle.insert_matrix(format!("{name}.{k}"), matrix);
        }
    }
    for (name, slot) in state.optimizer.slots.iter() {
        match slot {
            Slot::States(all) => insert_slot(&mut bundle, name, &Slot::States(rows_of(all, rows))),
            Slot::Multipliers(all) => {
                insert_slot(&mut bundle, name, &Slot::Multipliers(rows_of(all, rows)));
            }
            _ => {}
        }
    }
    bundle
}

/// The opposite.
fn take_part(
    mut bundle: Bundle,
    slots: &[AboutSlot],
    model: &Model<f32>,
    rows: usize,
) -> Result<(Variables<f32>, Slots<f32>), String> {
    let shape = model.zeros(rows, vec![]);
    let variables = Variables {
        weights: vec![],
        states: take_matrices(&mut bundle, "states", &shape.states)?,
        multipliers: take_matrices(&mut bundle, "multipliers", &shape.multipliers)?,
    };
    let mut taken = Slots::default();
    for slot in
        slots.iter().filter(|of| matches!(of.kind, SlotKind::States | SlotKind::Multipliers))
    {
        taken.insert(&slot.name, take_slot(&mut bundle, slot, &shape)?);
    }
    Ok((variables, taken))
}

/// The state without what belongs to nodes.
fn without_rows(state: &TrainerState<f32>) -> TrainerState<f32> {
    let none = |matrices: &[Matrix<f32>]| rows_of(matrices, &(0..0));
    let variables = Variables {
        weights: state.variables.weights.clone(),
        states: none(&state.variables.states),
        multipliers: none(&state.variables.multipliers),
    };
    let mut slots = Slots::default();
    for (name, slot) in state.optimizer.slots.iter() {
        slots.insert(
            name,
            match slot {
                Slot::States(rows) => Slot::States(none(rows)),
                Slot::Multipliers(rows) => Slot::Multipliers(none(rows)),
                other => other.clone(),
            },
        );
    }
    TrainerState {
        optimizer: OptimizerState::with_slots(&variables, slots),
        variables,
        norms: state.norms.clone(),
        best: state.best.clone(),
        ..*state
    }
}

/// The rows of all parts, one after the other, of every layer.
fn joined(parts: &[&[Matrix<f32>]]) -> Vec<Matrix<f32>> {
    let layers = parts.first().map_or(0, |layers| layers.len());
    let layer = |k: usize| {
        let cols = parts[0][k].cols();
        let entries: Vec<f32> =
            parts.iter().flat_map(|layers| layers[k].as_slice()).copied().collect();
        let rows = parts.iter().map(|layers| layers[k].rows()).sum();
        Matrix::from_entries(rows, cols, entries).expect("rows of one width")
    };
    (0..layers).map(layer).collect()
}
