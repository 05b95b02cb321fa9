//! The file of a model: a description in JSON, and its weights as arrays.

use std::path::Path;
use std::sync::Arc;

use super::bundle::Bundle;
use super::saved_model::Functions;
use super::{DataOrigin, EnsembleMember, SavedModel, SplitConfig};
use crate::data::{Encoding, Split};
use crate::graph::Level;
use crate::registry::Registry;
use crate::train::{ModelConfig, ModelDims, TrainingConfig};
use crate::{Error, Place};

/// The description beside the weights.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    format: u32,
    kind: String,
    version: String,
    task: Level,
    outputs: usize,
    value_names: Vec<String>,
    model: ModelConfig,
    training: TrainingConfig,
    encoding: Encoding,
    data: DataOrigin,
    #[serde(default)]
    split: SplitConfig,
    /// What is split, if the split is there: as arrays of indices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<Level>,
    epoch: usize,
    /// The other members of an ensemble.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ensemble: Vec<AboutMember>,
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    notes: serde_json::Value,
}

/// The description of another member of an ensemble.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct AboutMember {
    seed: u64,
    epoch: usize,
}

/// Changes when an older program could not read the file any more.
const FORMAT: u32 = 1;
/// That of a file with several members, which programs that only know the other cannot read.
const ENSEMBLE_FORMAT: u32 = 2;

/// The arrays of the split.
const TRAIN: &str = "split.train";
const VAL: &str = "split.val";
const TEST: &str = "split.test";

/// No width of anything is larger: so no product of sizes overflows.
const LARGEST_WIDTH: usize = 1 << 26;
const MOST_LAYERS: usize = 1 << 10;

impl SavedModel {
    /// # Errors
    ///
    /// [`Error::Io`]
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        self.bundle().write(path)
    }

    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when the file is not a model, or is damaged.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::read_with(&Registry::default(), path)
    }

    /// The same with custom functions.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    pub fn read_with(registry: &Registry<f32>, path: &Path) -> Result<Self, Error> {
        let bundle = Bundle::read(path)?;
        Self::of_bundle(bundle, registry).map_err(|problem| Place::file(path).error(problem))
    }

    /// The file as bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it cannot be written in this format.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        self.bundle().to_bytes().map_err(Error::Mismatch)
    }

    /// The model of such bytes. Whatever they are, they lead to a model that can be used or to an
    /// error.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when they are not a model.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Self::from_bytes_with(&Registry::default(), bytes)
    }

    /// The same with custom functions.
    ///
    /// # Errors
    ///
    /// Those of [`from_bytes`](Self::from_bytes).
    pub fn from_bytes_with(registry: &Registry<f32>, bytes: &[u8]) -> Result<Self, Error> {
        Bundle::from_bytes(bytes)
            .and_then(|bundle| Self::of_bundle(bundle, registry))
            .map_err(|problem| Error::Mismatch(format!("the model {problem}")))
    }

    fn bundle(&self) -> Bundle {
        let about = About {
            format: if self.ensemble.is_empty() { FORMAT } else { ENSEMBLE_FORMAT },
            kind: "model".into(),
            version: self.version.clone(),
            task: self.task,
            outputs: self.outputs,
            value_names: self.value_names.clone(),
            model: self.model.clone(),
            training: self.training.clone(),
            encoding: self.encoding.clone(),
            data: self.data.clone(),
            split: self.split,
            members: self.members.as_ref().map(|split| split.level),
            epoch: self.epoch,
            ensemble: self
                .ensemble
                .iter()
                .map(|member| AboutMember { seed: member.seed, epoch: member.epoch })
                .collect(),
            notes: self.notes.clone(),
        };
        let about = serde_json::to_value(about).unwrap_or_default();
        let mut bundle = Bundle::new(about);
        for (number, weights) in self.member_weights().enumerate() {
            for (parameter, range) in self.functions().parameters().iter() {
                let name = array_name(number, parameter.name());
                bundle.insert(name, parameter.shape(), &weights[range]);
            }
        }
        if let Some(Split { train, val, test, .. }) = &self.members {
            for (name, members) in [TRAIN, VAL, TEST].into_iter().zip([train, val, test]) {
                bundle.insert_indices(name, members);
            }
        }
        bundle
    }

    fn of_bundle(mut bundle: Bundle, registry: &Registry<f32>) -> Result<Self, String> {
        let about = bundle.about.take();
        match (about["kind"].as_str(), about["format"].as_u64()) {
            (Some("model"), Some(format))
                if (FORMAT..=ENSEMBLE_FORMAT).any(|known| format == u64::from(known)) => {}
            (Some("model"), format) => {
                return Err(format!(
                    "is a model in format {}, but this program reads formats up to {ENSEMBLE_FORMAT}",
                    format.map_or_else(|| "unknown".into(), |format| format.to_string())
                ));
            }
            (kind, _) => return Err(format!("is a {}, not a model", kind.unwrap_or("file"))),
        }
        let about: About = serde_json::from_value(about)
            .map_err(|error| format!("has a broken description: {error}"))?;
        about.check_sizes()?;
        let text = |error: Error| format!("cannot be used: {error}");
        about.training.clone().check().map_err(text)?;
        let functions = about.model.build_with(registry, about.dims()).map_err(text)?;
        let mut take_weights = |member: usize| {
            // It grows by what the file has, not by what its description asks for.
            let mut weights = vec![];
            for (parameter, _) in functions.parameters().iter() {
                let name = array_name(member, parameter.name());
                weights.extend(bundle.take(&name, &parameter.shape())?);
            }
            if weights.iter().all(|weight| weight.is_finite()) {
                Ok(weights)
            } else {
                Err("has weights that are not finite".to_owned())
            }
        };
        let weights = take_weights(0)?;
        let mut ensemble = vec![];
        for (number, AboutMember { seed, epoch }) in (1..).zip(about.ensemble) {
            ensemble.push(EnsembleMember { seed, epoch, weights: take_weights(number)? });
        }
        let members = match about.members {
            None => None,
            Some(level) => {
                let mut take = |name| bundle.take_indices(name);
                let (train, val, test) = (take(TRAIN)?, take(VAL)?, take(TEST)?);
                Some(Split { level, train, val, test })
            }
        };
        let surplus: Vec<&str> = bundle.names().collect();
        if !surplus.is_empty() {
            return Err(format!(
                "has arrays that do not belong to any of its functions: {}",
                surplus.join(", ")
            ));
        }
        Ok(Self {
            version: about.version,
            task: about.task,
            outputs: about.outputs,
            value_names: about.value_names,
            model: about.model,
            training: about.training,
            encoding: about.encoding,
            data: about.data,
            split: about.split,
            members,
            epoch: about.epoch,
            weights,
            ensemble,
            notes: about.notes,
            functions: Functions(Arc::new(functions)),
            max_iter: None,
        })
    }
}

/// The array of a parameter, of a member of an ensemble counted from 0; of the first, and of a model alone, its own name.
fn array_name(member: usize, parameter: &str) -> String {
    if member == 0 { parameter.to_owned() } else { format!("ensemble.{member}.{parameter}") }
}

impl About {
    fn dims(&self) -> ModelDims {
        ModelDims {
            features: self.encoding.node_width(),
            edge_features: self.encoding.edge_width(),
            outputs: self.outputs,
            level: self.task,
        }
    }

    /// That no size is so large that a computation with it would fail.
    fn check_sizes(&self) -> Result<(), String> {
        self.encoding.check(LARGEST_WIDTH).map_err(|error| format!("cannot be used: {error}"))?;
        let config = &self.model;
        let units = config.hidden_dims.iter().chain(&config.readout_hidden_dims);
        if units.chain([&config.state_dim, &self.outputs]).any(|&width| width > LARGEST_WIDTH)
            || config.layers > MOST_LAYERS
            || config.hidden_dims.len() + config.readout_hidden_dims.len() > MOST_LAYERS
        {
            return Err("cannot be used: its functions are too large".into());
        }
        let classes = match self.task {
            Level::Node => self.encoding.node_classes(),
            Level::Graph => self.encoding.graph_classes(),
        };
        let outputs = classes.map_or(self.value_names.len(), <[String]>::len);
        let mut names: Vec<&String> = classes.unwrap_or(&self.value_names).iter().collect();
        names.sort_unstable();
        if let Some([name, _]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("names “{name}” twice among what it predicts"));
        }
        if outputs == self.outputs {
            Ok(())
        } else {
            Err(format!("names {outputs} classes or values, but predicts {}", self.outputs))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::data::generate::CliqueConfig;
    use crate::numeric::uniform;
    use crate::run::{RunConfig, Setup};

    fn bundle() -> (Dataset, RunConfig, Bundle) {
        let dataset = CliqueConfig { graphs: 2, ..CliqueConfig::default() }.generate(1).unwrap();
        let config = RunConfig::for_data("clique", &dataset, &[]);
        let setup = Setup::new(&config, &dataset).unwrap();
        let weights = vec![0.5; setup.model.weights()];
        let bundle = SavedModel::new(&setup, &config, "clique", 1, weights).bundle();
        (dataset, config, bundle)
    }

    #[test]
    fn an_array_too_many_or_too_few_is_named() {
        let read = |bundle: &Bundle| {
            let model = SavedModel::from_bytes(&bundle.to_bytes().unwrap());
            model.map(drop).map_err(|error| error.to_string())
        };
        let (_, _, bundle) = bundle();
        assert_eq!(read(&bundle), Ok(()));
        let mut more = bundle.clone();
        more.insert("transition.1.0.bias", vec![1], &[1.0]);
        assert_eq!(
            read(&more).unwrap_err(),
            "the model has arrays that do not belong to any of its functions: transition.1.0.bias"
        );
        let mut fewer = bundle;
        fewer.take("readout.0.bias", &[20]).unwrap();
        assert_eq!(read(&fewer).unwrap_err(), "the model has no array readout.0.bias");
    }

    /// A checksum keeps accidents away; this is about files that were made to harm.
    #[test]
    fn a_strange_description_with_the_right_checksum_never_panics() {
        let (dataset, config, bundle) = bundle();
        let about = bundle.about.to_string().into_bytes();
        let mut draw = uniform(7);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place")]
        let mut below = |count: usize| (draw() * count as f64) as usize;
        let mut read = 0;
        for variant in 0..5000 {
            let mut strange = about.clone();
            let digits: Vec<usize> =
                (0..strange.len()).filter(|&at| strange[at].is_ascii_digit()).collect();
            for _ in 0..=variant % 3 {
                let at = digits[below(digits.len())];
                match variant % 4 {
                    0 => strange[at] = b'0' + u8::try_from(below(10)).unwrap(),
                    1 => drop(strange.splice(at..at, b"9999999".iter().copied())),
                    2 => drop(strange.splice(at..=at, b"-1".iter().copied())),
                    _ => strange[below(about.len())] = b' ' + u8::try_from(below(90)).unwrap(),
                }
            }
            let Ok(about) = serde_json::from_slice(&strange) else { continue };
            read += 1;
            let mut bundle = bundle.clone();
            bundle.about = about;
            let bytes = bundle.to_bytes().unwrap();
            // Other options of inference may be legal and take for ever.
            if let Ok(model) = SavedModel::from_bytes(&bytes)
                && model.training == config.training
            {
                let _ = model.predict(&dataset, false);
            }
        }
        assert!(read > 1000, "only {read} variants were JSON at all");
    }
}
