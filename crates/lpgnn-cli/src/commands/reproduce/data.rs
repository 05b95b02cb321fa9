use std::path::Path;

use lpgnn::Error;
use lpgnn::data::generate::{ChainsConfig, CliqueConfig, SubgraphConfig};
use lpgnn::data::{Builtin, Cache, Dataset, ReadOptions, Source};
use serde::de::DeserializeOwned;

use super::row::Row;

/// The data of a row: generated, or from a folder of data sets, or from the cache.
///
/// # Errors
///
/// [`Error::UnknownSet`] when they are nowhere.
pub(super) fn data(row: &Row, folder: Option<&Path>) -> Result<Dataset, Error> {
    let name = row.source();
    if let Ok(builtin) = name.parse() {
        return generate(row, builtin);
    }
    if row.about.generate.is_some() {
        return Err(wrong(row, format!("{name} is no set that can be generated")));
    }
    let given = folder.into_iter().flat_map(|folder| {
        [folder.join(name), folder.join(format!("{name}.zip")), folder.join("tu").join(name)]
    });
    let source = match given.into_iter().find(|path| path.exists()) {
        Some(path) => Source::Path(path),
        None => Source::find(name, &Cache::of_user()?)?,
    };
    source.load(&ReadOptions::default())
}

fn generate(row: &Row, builtin: Builtin) -> Result<Dataset, Error> {
    let seed = row.about.data_seed;
    match (builtin, &row.about.generate) {
        (Builtin::Subgraph, Some(_)) => options::<SubgraphConfig>(row)?.generate(seed),
        (Builtin::Clique, Some(_)) => options::<CliqueConfig>(row)?.generate(seed),
        (Builtin::Chains, Some(_)) => options::<ChainsConfig>(row)?.generate(seed),
        (Builtin::Karate, Some(_)) => Err(wrong(row, "karate has no options".into())),
        (_, None) => builtin.generate(seed),
    }
}

fn options<T: DeserializeOwned>(row: &Row) -> Result<T, Error> {
    let options = row.about.generate.clone().unwrap_or_default();
    let error = |error: toml::de::Error| format!("generate: {}", error.message().trim_end());
    options.try_into().map_err(|problem| wrong(row, error(problem)))
}

fn wrong(row: &Row, problem: String) -> Error {
    Error::Config { origin: row.name.clone(), problem }
}
