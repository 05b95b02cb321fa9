//! scratch
use lpgnn::data::*;
use lpgnn::inference::*;
use lpgnn::lagrangian::*;
use lpgnn::saddle::*;
use lpgnn::train::*;
use std::ops::ControlFlow;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let path = std::path::Path::new(&args[1]);
    let epochs: usize = args[2].parse().unwrap();
    let solver = &args[3];
    let data = read(path, &ReadOptions::default()).unwrap();
    let enc = Encoding::new(&data, &LabelOptions::default()).unwrap();
    let batch = enc.batch::<f32>(&data).unwrap();
    let per_graph = data.graph_targets().is_some();
    let n = data.graphs();
    let split = data.split().cloned().unwrap_or_else(|| Split {
        level: Level::Graph,
        train: (0..n).filter(|i| i % 10 != 0).collect(),
        valid: (0..n).filter(|i| i % 10 == 0).collect(),
        test: vec![],
    });
    let td = TrainingData::new(&batch, &split, per_graph).unwrap();
    let mut mc = ModelConfig {
        reads: Reads { from: ReadFrom::Image, ..Default::default() },
        state: 10,
        hidden: vec![20],
        ..Default::default()
    };
    if args.len() > 4 {
        let t: toml::Table = toml::from_str(&args[4]).unwrap();
        mc = toml::Value::Table({
            let mut b: toml::Table =
                toml::Value::try_from(&mc).unwrap().as_table().unwrap().clone();
            for (k, v) in t {
                b.insert(k, v);
            }
            b
        })
        .try_into()
        .unwrap();
    }
    let mut tc = TrainingConfig { epochs, score_every: epochs.div_ceil(20), ..Default::default() };
    match solver.as_str() {
        "bdmm" => {
            tc.solver = SolverConfig::Bdmm(Bdmm::default());
            mc.constraint = lpgnn::constraint::ConstraintFunction::Squared;
            tc.weighing.loss_weight = 1e-5;
            mc.multipliers = Multipliers::PerNode;
        }
        "implicit" => tc.solver = SolverConfig::Implicit(Implicit::default()),
        "unrolled" => tc.solver = SolverConfig::Unrolled(Unrolled::default()),
        _ => {
            tc.solver = SolverConfig::OneShot(OneShot {
                weights: WeightDescent { rate: 0.005, ..Default::default() },
                ..Default::default()
            })
        }
    }
    let model =
        mc.build::<f32>(enc.node_width(), enc.arc_width(), td.outputs(), per_graph).unwrap();
    let t0 = std::time::Instant::now();
    let trainer = Trainer::new(tc.check().unwrap(), &model, &td).unwrap();
    let out = trainer.run(&mut |r: &EpochReport, _: &TrainerState| { if let Some(s) = &r.scores { println!("{:5} loss {:.4} con {:.2e} res {:.1e}/{:.1e} tr {:.3} parts {:?} rho {:.2} gap {:?} uns {} lam {:.2} {:.1}s", r.epoch, r.loss, r.constraint, r.residual_mean, r.residual_max, r.trained_accuracy.unwrap_or(0.), s.parts.iter().map(|p| (p.1.accuracy.unwrap_or(0.)*1000.).round()/1000.).collect::<Vec<_>>(), s.spectral_radius, s.cheating_gap.map(|g| (g*1000.).round()/1000.), s.unsettled, r.largest_multiplier, t0.elapsed().as_secs_f64()); } ControlFlow::Continue(()) }).unwrap();
    println!("{:?} {} {:?}", out.reason, out.epoch, out.scores.map(|s| s.parts));
    let _ = Inference::default();
}
