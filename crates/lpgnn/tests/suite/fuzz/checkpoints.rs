//! Checkpoints: what is read can be resumed.

use std::ops::ControlFlow;

use lpgnn::data::generate::CliqueConfig;
use lpgnn::run::{Checkpoint, RunConfig, Setting, Setup, TrainingOrigin};
use lpgnn::train::{EpochReport, Trainer, TrainerState};
use rand::seq::IndexedRandom;

use super::Target;
use super::mutate::damage_signed;

#[test]
fn checkpoint_files() {
    let dataset = CliqueConfig { graphs: 3, ..CliqueConfig::default() }.generate(3).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let solvers = ["one-shot", "bdmm", "implicit"];
    let trainings = solvers.map(|solver| {
        let solver = format!("training.solver.kind={solver}");
        let settings = ["training.epochs=9", &solver, "training.eval-every=2", "model.state-dim=3"];
        let settings = settings.map(|text| Setting::parse("test", text).unwrap());
        let config = RunConfig::for_data("clique", &dataset, &settings).with(&settings).unwrap();
        let setup = Setup::new(&config, &dataset).unwrap();
        let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
        let mut stop = |report: &EpochReport, state: &TrainerState| {
            if report.epoch < 3 {
                return ControlFlow::Continue(());
            }
            Checkpoint::write(&path, &TrainingOrigin::new(config.clone(), &setup), 1.5, state)
                .unwrap();
            ControlFlow::Break(())
        };
        trainer.run(&mut stop).unwrap();
        (setup, std::fs::read(&path).unwrap())
    });
    let valid = vec![("checkpoint.safetensors", trainings[0].1.clone())];
    Target { name: "checkpoint", valid: &valid, writes: false }.fuzz(
        |random, files| {
            files[0].1.clone_from(&trainings.choose(random).unwrap().1);
            damage_signed(random, &mut files[0].1);
        },
        |folder| {
            let path = folder.join("checkpoint.safetensors");
            let resume = |(setup, _): &(Setup, Vec<u8>)| {
                let nodes = setup.data.training_graphs().nodes();
                let checkpoint = Checkpoint::read(&path, &setup.model, nodes)?;
                let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?;
                let mut twice = 0;
                let mut stop = |_: &EpochReport, _: &TrainerState| {
                    twice += 1;
                    if twice < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                };
                trainer.resume(checkpoint.state)?.run(&mut stop).map(drop)
            };
            // One of them it was, and the others are to refuse it or to go on.
            let [first, second, third] = &trainings;
            resume(first).or_else(|_| resume(second)).or_else(|_| resume(third))
        },
    );
}
