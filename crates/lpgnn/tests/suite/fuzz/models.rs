//! Model files: what is read can be used, within the limits that the user sets.

use lpgnn::data::generate::CliqueConfig;
use lpgnn::data::{Dataset, Format, ReadOptions, read};
use lpgnn::inference::{Inference, RelaxOptions};
use lpgnn::run::{RunConfig, SavedModel, Setting, Setup};
use lpgnn::train::Trainer;
use rand::seq::IndexedRandom;

use super::cost::measure;
use super::mutate::damage_signed;
use super::signed::Contents;
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

/// A description that asks for many weights takes no memory for them: the file has to have them.
#[test]
fn weights_take_the_memory_of_their_bytes_not_of_their_claim() {
    let (_, model) = models().remove(0);
    let file = model.to_bytes().unwrap();
    let mut contents = Contents::read(&file).unwrap();
    let mut about: serde_json::Value = serde_json::from_str(&contents.about).unwrap();
    // 400 million weights, 1.6 GB.
    about["model"]["hidden-dims"] = serde_json::json!([20_000, 20_000]);
    contents.about = about.to_string();
    let claims = contents.write().unwrap();
    let (read, cost) =
        measure(|| SavedModel::from_bytes(&claims).map_err(|error| error.to_string()));
    let said = read.unwrap().unwrap_err();
    let refused = said.contains("transition.") || said.contains("memory limit");
    assert!(refused, "{said}");
    assert!(cost.memory < (4 << 20) + 200 * claims.len(), "{cost:?} for {} bytes", claims.len());
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
