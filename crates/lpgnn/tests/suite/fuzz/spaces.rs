//! Search spaces: what is read has trials, or says why not.

use lpgnn::experiment::search::Space;
use lpgnn::run::RunConfig;
use rand::seq::IndexedRandom;

use super::Target;
use super::mutate::damage;

const RANDOM: &str = r#"
method = "random"
set = { "training.epochs" = 20 }

[values]
"training.solver.weights.lr" = { low = 1e-4, high = 0.1, log = true }
"model.state-dim" = { low = 4, high = 40, integer = true }
"model.hidden-dims, model.readout-hidden-dims" = [[10], [20, 20]]
"model.transition" = ["gnn-sum", "gcn"]
"#;

#[test]
fn search_spaces() {
    let grid = include_str!("../../../spaces/paper-nodes.toml");
    let spaces = [RANDOM, grid].map(|text| text.as_bytes().to_vec());
    let valid = vec![("space.toml", spaces[0].clone())];
    Target { name: "space", valid: &valid, writes: false }.fuzz(
        |random, files| {
            files[0].1.clone_from(spaces.choose(random).unwrap());
            let other = spaces.choose(random).unwrap();
            damage(random, &mut files[0].1, other);
        },
        |folder| {
            let space = Space::find(folder.join("space.toml").to_str().unwrap())?;
            let base = RunConfig::default().with(&space.settings())?;
            let trials = space.trials(&base, Some(20), 0)?;
            assert!(trials.len() <= 20);
            Ok(())
        },
    );
}
