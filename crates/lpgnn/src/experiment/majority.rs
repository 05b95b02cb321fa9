use crate::data::{Dataset, TargetColumn};
use crate::graph::NO_TARGET;
use crate::run::Setup;

/// The accuracy on the test split of the majority class of the training split; none of real values, and
/// without a test split.
pub fn majority_accuracy(dataset: &Dataset, setup: &Setup) -> Option<f64> {
    let Some(TargetColumn::Classes(classes)) = setup.task.targets(dataset) else { return None };
    let share = setup.data.training_graphs().across();
    let targets = |members: &[usize]| -> Vec<u32> {
        let rows = setup.split.rows(members, setup.task, dataset);
        let codes = rows.into_iter().map(|row| classes.codes()[row]);
        codes.filter(|&code| code != NO_TARGET).collect()
    };
    // How often every class occurs, on all ranks that share the nodes.
    let counts = |members: &[usize]| -> Vec<f64> {
        let mut counts = vec![0.0; classes.values().len()];
        targets(members).into_iter().for_each(|class| counts[class as usize] += 1.0);
        let all = share.map_or_else(|| counts.clone(), |share| share.concatenate(&counts));
        let of_all = |class: usize| all.iter().skip(class).step_by(counts.len()).sum();
        (0..counts.len()).map(of_all).collect()
    };
    let (train, test) = (counts(&setup.split.train), counts(&setup.split.test));
    let most = train.iter().copied().max_by(f64::total_cmp)?;
    let majority = train.iter().position(|&count| count >= most)?;
    let total: f64 = test.iter().sum();
    (total > 0.0).then(|| test[majority] / total)
}
