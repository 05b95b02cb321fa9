//! Models whose predictions are averaged.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use lpgnn::data::Dataset;
use lpgnn::data::generate::CliqueConfig;
use lpgnn::evaluate::probabilities;
use lpgnn::live::{LiveData, LiveOptions};
use lpgnn::run::{RunConfig, SavedModel, Setup};
use lpgnn::train::Trainer;

fn dataset() -> Dataset {
    CliqueConfig { graphs: 6, ..CliqueConfig::default() }.generate(1).unwrap()
}

fn trained(dataset: &Dataset, settings: impl Fn(&mut RunConfig)) -> SavedModel {
    let mut config = RunConfig::for_data("clique", dataset, &[]);
    config.training.epochs = 8;
    settings(&mut config);
    let setup = Setup::new(&config, dataset).unwrap();
    let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
    let trained = trainer.run(&mut ()).unwrap();
    SavedModel::new(&setup, &config, "clique", trained.epoch, trained.weights)
}

fn with_seed(dataset: &Dataset, seed: u64) -> SavedModel {
    trained(dataset, |config| config.training.seed = seed)
}

#[test]
fn an_ensemble_predicts_the_mean_of_the_probabilities_of_its_members() {
    let dataset = dataset();
    let members = [3, 4, 5].map(|seed| with_seed(&dataset, seed));
    let ensemble = SavedModel::ensemble(members.to_vec()).unwrap();
    assert_eq!(ensemble.members_of_ensemble(), 3);
    let found = ensemble.predict(&dataset, false).unwrap();
    let alone = members.map(|member| member.predict(&dataset, false).unwrap());
    for row in 0..dataset.nodes() {
        let together = probabilities(found.outputs.row(row));
        for (class, p) in together.into_iter().enumerate() {
            let of_members = alone.iter().map(|found| probabilities(found.outputs.row(row))[class]);
            assert!((p - of_members.sum::<f64>() / 3.0).abs() < 1e-6, "row {row}");
        }
    }
    for graph in 0..dataset.graphs() {
        let largest =
            alone.iter().map(|found| found.fixed_point.residuals[graph]).fold(0.0, f64::max);
        assert_eq!(found.fixed_point.residuals[graph].to_bits(), largest.to_bits());
    }
    let distances = ensemble.distances(&found).unwrap();
    assert!(distances.iter().zip(&found.fixed_point.residuals).all(|(d, residual)| d >= residual));
    let briefly = ensemble.predict_without_states(&dataset, false, &mut |_| ()).unwrap();
    assert_eq!(briefly.outputs, found.outputs);
}

#[test]
fn an_ensemble_is_saved_and_joins_others() {
    let dataset = dataset();
    let [a, b, c] = [3, 4, 5].map(|seed| with_seed(&dataset, seed));
    let pair = SavedModel::ensemble(vec![a.clone(), b.clone()]).unwrap();
    let bytes = pair.to_bytes().unwrap();
    assert_eq!(SavedModel::from_bytes(&bytes).unwrap(), pair);
    let all = SavedModel::ensemble(vec![a, b, c.clone()]).unwrap();
    assert_eq!(SavedModel::ensemble(vec![pair, c]).unwrap(), all);
    assert_eq!(all.ensemble.iter().map(|member| member.seed).collect::<Vec<_>>(), [4, 5]);
}

#[test]
fn what_cannot_be_averaged_is_told() {
    let dataset = dataset();
    let first = with_seed(&dataset, 3);
    let problem = |others: &[&SavedModel]| {
        let models = std::iter::once(&first).chain(others.iter().copied()).cloned().collect();
        SavedModel::ensemble(models).unwrap_err().to_string()
    };
    assert_eq!(problem(&[]), "an ensemble has at least two members, but there is 1");
    assert_eq!(
        problem(&[&with_seed(&dataset, 4), &first]),
        "members 1 and 3 of the ensemble have the same seed, 3, but a seed of its own is expected of each"
    );
    let wider = trained(&dataset, |config| config.model.state_dim = 3);
    assert_eq!(
        problem(&[&wider]),
        "model 2 cannot join an ensemble with the first: model.state-dim is 3, that of the first 10"
    );
    let longer = trained(&dataset, |config| {
        (config.training.seed, config.training.epochs) = (4, 9);
    });
    assert_eq!(
        problem(&[&longer]),
        "model 2 cannot join an ensemble with the first: training.epochs is 9, that of the first 8"
    );
    let mut copy = with_seed(&dataset, 4);
    copy.data.name = "a copy".into();
    assert!(
        SavedModel::ensemble(vec![first.clone(), copy]).is_ok(),
        "the same data in another folder"
    );
    let elsewhere = CliqueConfig { graphs: 6, ..CliqueConfig::default() }.generate(2).unwrap();
    assert_eq!(
        problem(&[&with_seed(&elsewhere, 4)]),
        "model 2 cannot join an ensemble with the first: it was trained on clique, whose content is not that of the first's clique"
    );
}

#[test]
fn what_needs_a_single_model_says_so() {
    let dataset = dataset();
    let models = [3, 4].map(|seed| with_seed(&dataset, seed)).to_vec();
    let ensemble = SavedModel::ensemble(models).unwrap();
    let predictions = ensemble.predict(&dataset, true).unwrap();
    let problems = [
        ensemble.explain(&dataset, 0, None, 1).map(drop).unwrap_err().to_string(),
        ensemble.multipliers(&predictions).map(drop).unwrap_err().to_string(),
        LiveData::new(&ensemble, &dataset, &LiveOptions::default())
            .map(drop)
            .unwrap_err()
            .to_string(),
    ];
    for (problem, what) in problems.iter().zip(["an explanation", "a multiplier", "a live graph"]) {
        assert_eq!(
            problem,
            &format!(
                "the model is an ensemble of 2, and {what} needs a single model: use one of those that it was made of"
            )
        );
    }
}
