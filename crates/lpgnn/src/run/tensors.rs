use crate::train::{ModelConfig, TransitionKind};

/// The matrices that the weights of a model consist of, in the order in which they lie in it: the
/// name and the rows and columns of each, or the length of a bias.
///
/// The names follow the layouts that [`EdgeNetwork`](crate::transition::EdgeNetwork),
/// [`NodeNetwork`](crate::transition::NodeNetwork) and [`Output`](crate::output::Output) document.
pub(super) fn shapes(
    config: &ModelConfig,
    feature: usize,
    edge_feature: usize,
    outputs: usize,
) -> Vec<(String, Vec<usize>)> {
    let mut shapes = vec![];
    let inputs = config.inputs;
    let of = |wanted: bool, length: usize| if wanted { length } else { 0 };
    for layer in 0..config.layers {
        let feature = if layer == 0 { feature } else { config.state_dim };
        let edges = of(inputs.edge_features, edge_feature);
        let own_state = inputs.own_state && config.transition != TransitionKind::SageMax;
        let arguments = match config.transition {
            TransitionKind::Gin | TransitionKind::GcnMean | TransitionKind::Gcn => {
                vec![("states", config.state_dim), ("features", feature)]
            }
            _ => vec![
                ("neighbour_state", of(inputs.neighbour_state, config.state_dim)),
                ("neighbour_features", of(inputs.neighbour_features, feature)),
                ("outgoing_edge_feature", edges),
                ("incoming_edge_feature", edges),
                ("own_state", of(own_state, config.state_dim)),
                ("own_features", of(inputs.own_features, feature)),
            ],
        };
        let prefix = format!("transition.{layer}");
        network(&mut shapes, &prefix, &arguments, &config.hidden_dims, config.state_dim);
    }
    let read = match config.reads.layers {
        crate::lagrangian::ReadLayers::Last => config.state_dim,
        crate::lagrangian::ReadLayers::All => config.state_dim * config.layers,
    };
    network(&mut shapes, "output", &[("state", read)], &config.readout_hidden_dims, outputs);
    shapes
}

fn network(
    shapes: &mut Vec<(String, Vec<usize>)>,
    prefix: &str,
    arguments: &[(&str, usize)],
    hidden: &[usize],
    outputs: usize,
) {
    let widths: Vec<usize> = hidden.iter().copied().chain([outputs]).collect();
    for (name, rows) in arguments {
        shapes.push((format!("{prefix}.0.weight.{name}"), vec![*rows, widths[0]]));
    }
    shapes.push((format!("{prefix}.0.bias"), vec![widths[0]]));
    for (k, pair) in widths.windows(2).enumerate() {
        shapes.push((format!("{prefix}.{}.weight", k + 1), vec![pair[0], pair[1]]));
        shapes.push((format!("{prefix}.{}.bias", k + 1), vec![pair[1]]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lagrangian::{ReadLayers, Reads};

    #[test]
    fn they_hold_all_weights_of_every_model() {
        let kinds = [
            TransitionKind::GnnSum,
            TransitionKind::GnnMean,
            TransitionKind::GnnNormalized,
            TransitionKind::Gin,
            TransitionKind::GcnMean,
            TransitionKind::Gcn,
            TransitionKind::SageMax,
        ];
        for transition in kinds {
            for hidden in [vec![], vec![3], vec![3, 4]] {
                for layers in [1, 3] {
                    let config = ModelConfig {
                        transition,
                        layers,
                        hidden_dims: hidden.clone(),
                        readout_hidden_dims: hidden.clone(),
                        reads: Reads { layers: ReadLayers::All, ..Reads::default() },
                        ..ModelConfig::default()
                    };
                    let model = config.build::<f32>(5, 2, 3, false).unwrap();
                    let found: usize = shapes(&config, 5, 2, 3)
                        .iter()
                        .map(|s| s.1.iter().product::<usize>())
                        .sum();
                    assert_eq!(found, model.weights(), "{config:?}");
                }
            }
        }
    }
}
