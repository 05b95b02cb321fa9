//! What was asked for and does not happen is not passed over in silence: it is an error where results would be
//! taken for something else, and a note otherwise.

use serde_json::Value;

use super::{RunConfig, Schema, Setting, SplitSource};
use crate::Error;
use crate::data::{Dataset, FeatureSource, Split, TargetColumn};
use crate::graph::{Level, NO_TARGET};

/// Whole numbers of no more distinct values than this may be classes.
const FEW_VALUES: usize = 20;

/// The settings that draw a split.
const DRAWING: [&str; 4] = ["split.train", "split.val", "split.test", "split.seed"];

impl RunConfig {
    /// The [defaults](Self::for_data) for these data [`with`](Self::with) these settings.
    ///
    /// # Errors
    ///
    /// Those of [`with`](Self::with), and [`Error::Config`] for a setting of the random split when the data come
    /// with a split that is used instead.
    pub fn choose(source: &str, dataset: &Dataset, settings: &[Setting]) -> Result<Self, Error> {
        let mut config = Self::for_data(source, dataset, settings).with(settings)?;
        source.clone_into(&mut config.data.source);
        let task = Level::of_task(config.data.task, dataset);
        let comes_with_data = config.split.source != SplitSource::Given
            && task.is_ok_and(|task| config.split.of_data(dataset, task).is_some());
        if comes_with_data {
            let why = format!(
                "{} comes with a split, which is used; split.source=ratio draws one instead",
                dataset.name()
            );
            refuse(settings, &DRAWING, &why)?;
        }
        Ok(config)
    }
}

/// That none of the settings at these paths, or in these sections, was made on purpose, because they would have no
/// effect.
///
/// A file may have them, as long as their values are the defaults: complete files have all settings.
///
/// # Errors
///
/// [`Error::Config`], which names the first one and says why.
pub fn refuse(settings: &[Setting], paths: &[&str], why: &str) -> Result<(), Error> {
    for setting in settings {
        let in_file = setting.origin().position().is_some();
        for (path, value) in leaves(setting.path(), setting.value()) {
            let within = |of: &&str| {
                path.strip_prefix(*of).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let info = Schema::of_runs().setting(&path);
            let is_default = info.is_some_and(|info| info.default.as_ref() == Some(value));
            if paths.iter().any(within) && !(in_file && is_default) {
                let problem = format!("{path} has no effect: {why}");
                return Err(Error::Config { origin: setting.origin().clone(), problem });
            }
        }
    }
    Ok(())
}

/// The single settings of a value that may be a table.
fn leaves<'v>(path: &str, value: &'v Value) -> Vec<(String, &'v Value)> {
    match value {
        Value::Object(entries) => {
            let within = |(key, value)| leaves(&format!("{path}.{key}"), value);
            entries.iter().flat_map(within).collect()
        }
        value => vec![(path.to_owned(), value)],
    }
}

/// What whoever trains should know before: classes that cannot be learnt, and settings that have no effect. A
/// sentence each.
///
/// # Errors
///
/// [`Error::Mismatch`] when there are no targets.
pub fn notes(
    config: &RunConfig,
    settings: &[Setting],
    dataset: &Dataset,
    split: &Split,
) -> Result<Vec<String>, Error> {
    let task = Level::of_task(config.data.task, dataset)?;
    let mut notes: Vec<String> = class_note(dataset, task, split).into_iter().collect();
    notes.extend(target_note(dataset, task));
    notes.extend(conflict_note(dataset));
    let is_known = |row: usize| task.targets(dataset).is_some_and(|targets| targets.is_known(row));
    for (name, members) in [("validation", &split.val), ("test", &split.test)] {
        let rows = split.rows(members, task, dataset);
        if !rows.is_empty() && !rows.into_iter().any(is_known) {
            let member = task.as_str();
            notes
                .push(format!("no {member} of the {name} split has a target: it is not evaluated"));
        }
    }
    let features = dataset.node_features();
    let reads_degree = match config.features.source {
        FeatureSource::Auto => features.is_empty(),
        source => source == FeatureSource::Degree,
    };
    let graphs = if split.level == Level::Graph { split.train.len() } else { dataset.graphs() };
    let whole = config.training.batch_size.is_none_or(|size| size >= graphs);
    let counts_nothing =
        [config.features.structure.rings, config.features.structure.cliques] == [0, 0];
    // Trainings may be compared by it on test data, too.
    let monitors = !split.val.is_empty()
        || (!split.test.is_empty() && config.training.monitor.compares_trainings());
    let idle = [
        ("training.patience", split.val.is_empty(), "there is no validation split"),
        ("training.monitor", !monitors, "there is no validation split"),
        ("training.batch-size", graphs == 1, "there is only one training graph"),
        ("training.updates-per-epoch", whole, "every update sees all training graphs"),
        ("features.row-normalize", features.sparse().is_none(), "there are no sparse features"),
        ("features.largest-degree", !reads_degree, "the degree is not a feature"),
        ("features.structure.edges", counts_nothing, "neither rings nor cliques are counted"),
    ];
    for (path, idle, why) in idle {
        let made = |setting: &&Setting| {
            let off = matches!(setting.value(), Value::Null | Value::Bool(false));
            setting.path() == path && !off && *setting.value() != "none"
        };
        let alone = |setting: &Setting| setting.origin().position().is_none();
        if idle && settings.iter().rfind(made).is_some_and(alone) {
            notes.push(format!("{path} has no effect, because {why}"));
        }
    }
    Ok(notes)
}

/// That features of edges are not used, because there is another edge between the same nodes.
fn conflict_note(dataset: &Dataset) -> Option<String> {
    let conflicts = dataset.conflicts();
    (conflicts > 0).then(|| {
        format!(
            "{conflicts} duplicate edges have other features than the first between the same nodes, which alone \
             counts; in tables, a row is both directions unless dataset.toml says directed = true"
        )
    })
}

/// That targets may be something else than what they are taken for.
fn target_note(dataset: &Dataset, task: Level) -> Option<String> {
    /// How programs write that a value is missing.
    const MISSING: [&str; 9] = ["NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?"];
    match task.targets(dataset)? {
        TargetColumn::Classes(classes) => {
            let values = classes.values();
            let counted = values.iter().any(|class| class == "0");
            let is_missing =
                |class: &&String| MISSING.contains(&&class[..]) || (counted && *class == "-1");
            let class = values.iter().find(is_missing)?;
            Some(format!(
                "“{class}” is a class like the others; an empty cell is an unknown target"
            ))
        }
        TargetColumn::Values { values, .. } => {
            if values.cols() != 1 {
                return None;
            }
            let mut known: Vec<f32> =
                values.as_slice().iter().copied().filter(|x| x.is_finite()).collect();
            let count = known.len();
            known.sort_unstable_by(f32::total_cmp);
            known.dedup();
            let whole = known.iter().all(|x| x.fract() == 0.0);
            if known.is_empty() || known.len() > FEW_VALUES || known.len() == count || !whole {
                return None;
            }
            let few: Vec<String> = known.iter().take(4).map(f32::to_string).collect();
            let more = if known.len() > 4 { ", …" } else { "" };
            Some(format!(
                "the target has only the values {}{more} and is treated as a number (regression); classes are \
                 integers or words",
                few.join(", ")
            ))
        }
    }
}

/// That not all classes can be learnt from this training split.
fn class_note(dataset: &Dataset, task: Level, split: &Split) -> Option<String> {
    /// Classes that are named.
    const NAMED: usize = 5;
    let classes = match task.targets(dataset)? {
        TargetColumn::Classes(classes) => classes,
        TargetColumn::Values { values, .. } => {
            let rows = split.rows(&split.train, task, dataset);
            let mut rows = rows.into_iter().map(|row| values.row(row));
            let first = rows.next()?;
            let constant = rows.all(|row| row == first);
            return constant.then(|| {
                let members = task.plural();
                format!("all training {members} have the same target: there is nothing to learn")
            });
        }
    };
    let mut present = vec![false; classes.values().len()];
    for row in split.rows(&split.train, task, dataset) {
        let class = classes.codes()[row];
        if class != NO_TARGET {
            present[class as usize] = true;
        }
    }
    let is = |wanted: bool| {
        let of = classes.values().iter().zip(&present);
        of.filter(move |(_, present)| **present == wanted).map(|(class, _)| format!("“{class}”"))
    };
    let missing: Vec<String> = is(false).collect();
    match (is(true).count(), missing.len()) {
        (1, _) => {
            let only: String = is(true).collect();
            let members = task.plural();
            Some(format!("all training {members} are of class {only}: there is nothing to learn"))
        }
        (0, _) | (_, 0) => None,
        (_, 1) => Some(format!(
            "class {} is not in the training split, so it is never predicted",
            missing[0]
        )),
        (_, count) => {
            let more =
                if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
            Some(format!(
                "classes {}{more} are not in the training split, so they are never predicted",
                missing[..count.min(NAMED)].join(", ")
            ))
        }
    }
}
