//! A custom gated (GRU) transition: checked, trained, saved, loaded and predicted with.

use lpgnn::data::{FeatureSource, generate::CliqueConfig};
use lpgnn::graph::GraphBatch;
use lpgnn::parameters::{Parameters, Role};
use lpgnn::readout::Supervision;
use lpgnn::registry::Registry;
use lpgnn::run::{RunConfig, SavedModel, Setup};
use lpgnn::train::Trainer;
use lpgnn::transition::{Degrees, Gradients, Input, Transition};
use lpgnn::{Matrix, NormMemory, Scalar, Scratch, check};

/// `[t; c] = tanh(A m_v + B l_v + b)`, with `m_v` the mean of the neighbours' states: a gate
/// `z = (1 + t) / 2` and a candidate `c`; `f_v = z ⊙ c + (1 − z) ⊙ x_v / 4`, by component.
///
/// The gate is bounded: at most a quarter of a state stays. So states lie in `[−1, 1]`, where `f_a`
/// contracts by `√(‖A‖² + 1/16) + 5/8 ‖A‖`. It has so many components.
#[derive(Debug)]
struct Gru(usize, Parameters);

impl Gru {
    fn new(state: usize, features: usize) -> Self {
        let layer = Parameters::new().layer("gates", 2 * state);
        let layer = layer.weight("mean", Role::NeighbourState, state);
        Self(state, layer.weight("features", Role::Input, features).bias())
    }

    /// `[m_v; l_v; 1]`, which the rows of the weights multiply, and `[t; c]`.
    fn units<S: Scalar>(&self, w: &[S], at: Input<'_, S>, v: usize) -> (Vec<S>, Vec<S>) {
        let (neighbours, width) = (at.topology.neighbours().of(v), 2 * self.0);
        let mut read = vec![S::ZERO; w.len() / width];
        read[w.len() / width - 1] = S::ONE;
        for (i, m) in read[..self.0].iter_mut().enumerate() {
            let sum: S = neighbours.iter().map(|&u| at.states.row(u as usize)[i]).sum();
            *m = sum / S::of(neighbours.len().max(1) as f64);
        }
        at.node_features.entries(v).for_each(|(i, value)| read[self.0 + i] = value);
        let sum = |unit: usize| w.chunks(width).zip(&read).map(|(row, &x)| row[unit] * x).sum();
        let units = (0..width).map(|unit| S::tanh(sum(unit))).collect();
        (read, units)
    }
}

impl<S: Scalar> Transition<S> for Gru {
    fn parameters(&self) -> &Parameters {
        &self.1
    }

    fn state_dim(&self) -> usize {
        self.0
    }

    fn forward(&self, w: &[S], at: Input<'_, S>, f_x: &mut Matrix<S>, _: &Scratch<S>) {
        for v in 0..f_x.rows() {
            let (_, units) = self.units(w, at, v);
            for (i, f) in f_x.row_mut(v).iter_mut().enumerate() {
                let z = (S::ONE + units[i]) / S::of(2.0);
                *f = z * units[self.0 + i] + (S::ONE - z) * at.states.row(v)[i] / S::of(4.0);
            }
        }
    }

    #[rustfmt::skip]
    fn backward(&self, w: &[S], at: Input<'_, S>, d_f: &Matrix<S>, mut to: Gradients<'_, S>, _: &Scratch<S>) {
        let (s, half, quarter) = (self.0, S::of(0.5), S::of(0.25));
        for v in 0..d_f.rows() {
            let (read, units) = self.units(w, at, v);
            let mut d_sums: Vec<S> = units.iter().map(|&u| S::ONE - u * u).collect();
            for (i, &d) in d_f.row(v).iter().enumerate() {
                let z = half * (S::ONE + units[i]);
                to.states.row_mut(v)[i] += d * (S::ONE - z) * quarter;
                d_sums[i] *= d * half * (units[s + i] - quarter * at.states.row(v)[i]);
                d_sums[s + i] *= d * z;
            }
            let neighbours = at.topology.neighbours().of(v);
            for (i, (row, &x)) in w.chunks(2 * s).zip(&read).enumerate() {
                let d_x: S = row.iter().zip(&d_sums).map(|(&w, &d)| w * d).sum();
                if i < s {
                    let share = d_x / S::of(neighbours.len().max(1) as f64);
                    neighbours.iter().for_each(|&u| to.states.row_mut(u as usize)[i] += share);
                } else if let Some(features) = to.features.as_mut().filter(|_| i + 1 < read.len()) {
                    features.row_mut(v)[i - s] += d_x;
                }
                let d_w = to.weights.iter_mut().flat_map(|w| &mut w[2 * s * i..]);
                d_w.zip(&d_sums).for_each(|(to, &d)| *to += x * d);
            }
        }
    }

    fn lipschitz(&self, w: &[S], _: Degrees) -> Option<f64> {
        let a = NormMemory::default().spectral_norm(0, self.1.of(0, w), self.0, 2 * self.0);
        Some((a * a + 1.0 / 16.0).sqrt() + 5.0 / 8.0 * a)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = GraphBatch::graph(&[vec![0.3], vec![-1.0], vec![2.0]], &[(0, 1), (1, 2)])?;
    check::transition(&Gru::new(3, 1), &path, 1)?;

    let registry = Registry::default()
        .with_transition("gru", |spec| Ok(Box::new(Gru::new(spec.model.state_dim, spec.features))));
    let cliques = CliqueConfig::default();
    let (seen, unseen) = (cliques.generate(1)?, cliques.generate(2)?);
    let mut config = RunConfig::for_data("clique", &seen, &[]);
    (config.model.transition, config.features.source) = ("gru".into(), FeatureSource::Degree);
    config.training.epochs = 200;
    let setup = Setup::with_registry(&registry, &config, &seen, None)?;
    let trained = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?.run(&mut ())?;
    let model = SavedModel::new(&setup, &config, "clique", trained.epoch, trained.weights);
    let folder = tempfile::tempdir()?;
    model.write(&folder.path().join("gru.safetensors"))?;
    let loaded = SavedModel::read_with(&registry, &folder.path().join("gru.safetensors"))?;
    let predicted = loaded.predict(&unseen, true)?;
    assert_eq!(predicted.outputs, model.predict(&unseen, true)?.outputs);
    let targets = Supervision::all(predicted.batch.node_targets().clone());
    let (right, all) = targets.correct(&predicted.outputs);
    assert!(10 * right > 7 * all, "{right} of {all}, of which 57 % are in a clique");
    Ok(())
}
