//! Events on live graphs: what can be read is applied or refused, and predictions stay numbers.

use lpgnn::data::generate::CliqueConfig;
use lpgnn::live::{LiveData, LiveOptions, NamedEvent};
use lpgnn::run::{RunConfig, SavedModel, Setting, Setup};
use lpgnn::train::Trainer;

use super::mutate::damage;
use super::{Target, sentence};

const EVENTS: &str = r#"{"op": "add-edge", "graph": 0, "source": 0, "target": 2, "undirected": true}
{"op": "remove-edge", "graph": 1, "source": "1", "target": 0}
{"op": "add-node", "graph": 0, "node": "new", "features": [0.5]}
{"op": "add-edge", "graph": 0, "source": "new", "target": 3}
{"op": "update-node", "graph": 1, "node": 2, "features": [-1.5]}
{"op": "update-node", "graph": 2, "node": 4, "features": [[0, 2e3]]}
{"op": "remove-node", "graph": 0, "node": 1}
"#;

#[test]
fn events_of_live_graphs() {
    let data = CliqueConfig { graphs: 1, ..CliqueConfig::default() }.generate(3).unwrap();
    let settings = ["training.epochs=2", "training.lipschitz=0.8", "model.state-dim=3"];
    let settings = settings.map(|text| Setting::parse("test", text).unwrap());
    let config = RunConfig::for_data("x", &data, &settings).with(&settings).unwrap();
    let setup = Setup::new(&config, &data).unwrap();
    let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
    let weights = trainer.run(&mut ()).unwrap().weights;
    let model = SavedModel::new(&setup, &config, "x", 2, weights);
    let options = LiveOptions::default();
    let saved = LiveData::new(&model, &data, &options).unwrap().save();
    let valid = vec![("events.jsonl", EVENTS.as_bytes().to_vec())];
    Target { name: "events", valid: &valid, writes: false }.fuzz(
        |random, files| damage(random, &mut files[0].1, EVENTS.as_bytes()),
        |folder| {
            let mut live = LiveData::load(&model, &saved, &options)?;
            let bytes = std::fs::read(folder.join("events.jsonl")).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let read = |line: &str| serde_json::from_str::<NamedEvent>(line).ok();
            let events: Vec<NamedEvent> = text.lines().filter_map(read).collect();
            let report = live.apply(&events);
            assert!(report.bound <= options.tol, "{report:?}");
            for change in &report.changed {
                let outputs = &change.prediction.outputs;
                assert!(outputs.iter().all(|y| y.is_finite()), "{change:?}");
            }
            report.errors.iter().for_each(|(at, error)| sentence(&format!("event {at}"), error));
            Ok(())
        },
    );
}
