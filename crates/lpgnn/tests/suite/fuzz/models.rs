//! Model files: what is read can be used, within the limits that the user sets.

use lpgnn::data::generate::CliqueConfig;
use lpgnn::data::{Dataset, Format, ReadOptions, read};
use lpgnn::inference::{Inference, RelaxOptions};
use lpgnn::run::{RunConfig, SavedModel, Setting, Setup};
use lpgnn::train::Trainer;
use rand::seq::IndexedRandom;

use super::mutate::damage_signed;
use super::{Target, files, readers};

/// A model of cliques, one of tables with categories and real targets, and one of relaxation.
fn models() -> Vec<(Dataset, SavedModel)> {
    let cliques = CliqueConfig { graphs: 2, ..CliqueConfig::default() }.generate(3).unwrap();
    let folder = tempfile::tempdir().unwrap();
    files::write(folder.path(), &readers::table_files());
    let tables = read(folder.path(), &ReadOptions { format: Some(Format::Tables) }).unwrap();
    [
        (&cliques, "training.inference.window=3"),
        (&tables, "data.task=graph"),
        (&cliques, "training.inference.method=relax"),
    ]
    .map(|(dataset, setting)| {
        let settings = ["training.epochs=2", setting, "split.source=ratio", "model.state-dim=3"];
        let settings = settings.map(|text| Setting::parse("test", text).unwrap());
        let config = RunConfig::for_data("x", dataset, &settings).with(&settings).unwrap();
        let setup = Setup::new(&config, dataset).unwrap();
        let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
        let weights = trainer.run(&mut ()).unwrap().weights;
        (dataset.clone(), SavedModel::new(&setup, &config, "x", 2, weights))
    })
    .into()
}

#[test]
fn model_files() {
    let models = models();
    let bytes: Vec<Vec<u8>> = models.iter().map(|(_, model)| model.to_bytes().unwrap()).collect();
    let valid = vec![("model.safetensors", bytes[0].clone())];
    Target { name: "model", valid: &valid, writes: false }.fuzz(
        |random, files| {
            files[0].1.clone_from(bytes.choose(random).unwrap());
            damage_signed(random, &mut files[0].1);
        },
        |folder| {
            let mut model = SavedModel::read(&folder.join("model.safetensors"))?;
            limit(&mut model.training.inference);
            for (dataset, _) in &models {
                // It may not fit the data any more.
                let _ = model.predict(dataset, false);
            }
            // What is read can be written, and is read again.
            let again = SavedModel::from_bytes(&model.to_bytes()?)?;
            assert_eq!(again.to_bytes()?, model.to_bytes()?);
            Ok(())
        },
    );
}

/// What a user's own limit on iterations does to a model of a stranger.
fn limit(inference: &mut Inference) {
    let limit_relaxation = |relax: &mut RelaxOptions| relax.max_iter = relax.max_iter.min(50);
    match inference {
        Inference::FixedPoint(options) => {
            options.max_iter = options.max_iter.min(50);
            options.window = options.window.min(20);
            options.fall_back.as_mut().map(limit_relaxation);
        }
        Inference::Relax(relax) => limit_relaxation(relax),
    }
}
