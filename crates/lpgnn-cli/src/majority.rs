use lpgnn::data::{Dataset, TargetColumn};
use lpgnn::graph::{Level, NO_TARGET};
use lpgnn::run::Setup;

/// The accuracy on the test part of the most frequent class of the training part.
pub(crate) fn majority(dataset: &Dataset, setup: &Setup) -> Option<f64> {
    let Some(TargetColumn::Classes(classes)) = setup.task.targets(dataset) else { return None };
    // Members of the split are nodes or graphs; only the former have to be looked up by graph.
    let targets = |members: &[usize]| -> Vec<u32> {
        let starts = dataset.node_starts();
        let whole = (setup.split.level, setup.task) == (Level::Graph, Level::Node);
        let rows = members.iter().flat_map(|&member| {
            if whole { starts[member]..starts[member + 1] } else { member..member + 1 }
        });
        let codes = rows.map(|row| classes.codes()[row]);
        codes.filter(|&code| code != NO_TARGET).collect()
    };
    let mut counts = vec![0_usize; classes.values().len()];
    for class in targets(&setup.split.train) {
        counts[class as usize] += 1;
    }
    let most = counts.iter().max()?;
    let favourite = counts.iter().position(|count| count == most)?;
    let test = targets(&setup.split.test);
    let right = test.iter().filter(|&&class| class as usize == favourite).count();
    (!test.is_empty()).then(|| right as f64 / test.len() as f64)
}
