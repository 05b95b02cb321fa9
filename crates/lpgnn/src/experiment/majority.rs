use crate::data::{Dataset, TargetColumn};
use crate::graph::NO_TARGET;
use crate::run::Setup;

/// The accuracy on the test split of the majority class of the training split; none of real values, and
/// without a test split.
pub fn majority_accuracy(dataset: &Dataset, setup: &Setup) -> Option<f64> {
    let Some(TargetColumn::Classes(classes)) = setup.task.targets(dataset) else { return None };
    let targets = |members: &[usize]| -> Vec<u32> {
        let rows = setup.split.rows(members, setup.task, dataset);
        let codes = rows.into_iter().map(|row| classes.codes()[row]);
        codes.filter(|&code| code != NO_TARGET).collect()
    };
    let mut counts = vec![0_usize; classes.values().len()];
    for class in targets(&setup.split.train) {
        counts[class as usize] += 1;
    }
    let most = counts.iter().max()?;
    let majority = counts.iter().position(|count| count == most)?;
    let test = targets(&setup.split.test);
    let right = test.iter().filter(|&&class| class as usize == majority).count();
    (!test.is_empty()).then(|| right as f64 / test.len() as f64)
}
