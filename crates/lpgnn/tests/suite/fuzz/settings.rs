//! Settings: files of them, and single ones.

use lpgnn::graph::Level;
use lpgnn::run::{RunConfig, Setting};
use lpgnn::train::ModelDims;
use rand::seq::IndexedRandom;

use super::Target;
use super::mutate::damage;

/// A whole file for every solver.
fn configs() -> Vec<Vec<u8>> {
    let solvers = ["one-shot", "bdmm", "implicit", "unrolled", "sse", "augmented-lagrangian"];
    let config = |solver: &&str| {
        let settings = [
            Setting::new("test", "training.solver.kind", *solver),
            Setting::new("test", "model.hidden-dims", vec![4, 3]),
            Setting::new("test", "data.source", "a \"strange\"\\name é"),
        ];
        RunConfig::default().with(&settings).unwrap().to_toml().into_bytes()
    };
    solvers.iter().map(config).collect()
}

#[test]
fn settings_files() {
    let configs = configs();
    let valid = vec![("config.toml", configs[0].clone())];
    let dims = ModelDims { features: 3, edge_features: 1, outputs: 2, level: Level::Node };
    Target { name: "settings", valid: &valid, writes: false }.fuzz(
        |random, files| {
            files[0].1.clone_from(configs.choose(random).unwrap());
            let other = configs.choose(random).unwrap();
            damage(random, &mut files[0].1, other);
        },
        |folder| {
            let bytes = std::fs::read(folder.join("config.toml")).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let line = text.lines().nth(text.len() % 100).unwrap_or_default();
            let setting = Setting::parse("--set", line);
            let _ = setting.and_then(|setting| RunConfig::default().with(&[setting]));
            let config = RunConfig::from_toml("config.toml", &text)?;
            assert_eq!(RunConfig::from_toml("again", &config.to_toml())?, config);
            // What its kind and bounds let pass can be built, or is refused by name.
            let _ = config.model.build::<f32>(dims);
            let _ = config.training.check();
            Ok(())
        },
    );
}
