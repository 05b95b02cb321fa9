use std::path::Path;

use lpgnn::Error;
use lpgnn::data::generate::{
    ChainsConfig, CliqueConfig, CommunitiesConfig, GridsConfig, SubgraphConfig, TreesConfig,
};
use lpgnn::data::{Builtin, Cache, Dataset, ReadOptions, Source};
use serde::de::DeserializeOwned;

/// The data of a row or a study.
pub(super) struct Wanted<'a> {
    /// The row or study.
    pub(super) by: &'a str,
    pub(super) source: &'a str,
    /// Seed of a generated data set.
    pub(super) seed: u64,
    /// Options of a generated data set, if not the defaults.
    pub(super) generate: Option<&'a toml::Table>,
}

impl Wanted<'_> {
    /// The data: generated, or from a folder of data sets, or from the cache.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownSet`] when they cannot be found.
    pub(super) fn load(&self, folder: Option<&Path>) -> Result<Dataset, Error> {
        let name = self.source;
        if let Ok(builtin) = name.parse() {
            return self.generate(builtin);
        }
        if self.generate.is_some() {
            return Err(self.wrong(format!("{name} is not a data set that can be generated")));
        }
        let given = folder.into_iter().flat_map(|folder| {
            [
                folder.join(name),
                folder.join(format!("{name}.zip")),
                folder.join("tu").join(name),
                folder.join("planetoid").join(name),
            ]
        });
        let source = match given.into_iter().find(|path| path.exists()) {
            Some(path) => Source::Path(path),
            None => Source::find(name, &Cache::of_user()?)?,
        };
        source.load(&ReadOptions::default())
    }

    fn generate(&self, builtin: Builtin) -> Result<Dataset, Error> {
        let Some(options) = self.generate else { return builtin.generate(self.seed) };
        match builtin {
            Builtin::Subgraph => self.options::<SubgraphConfig>(options)?.generate(self.seed),
            Builtin::Clique => self.options::<CliqueConfig>(options)?.generate(self.seed),
            Builtin::Chains => self.options::<ChainsConfig>(options)?.generate(self.seed),
            Builtin::Grids => self.options::<GridsConfig>(options)?.generate(self.seed),
            Builtin::Trees => self.options::<TreesConfig>(options)?.generate(self.seed),
            Builtin::Communities => self.options::<CommunitiesConfig>(options)?.generate(self.seed),
            Builtin::Karate => Err(self.wrong("karate has no options".into())),
        }
    }

    fn options<T: DeserializeOwned>(&self, options: &toml::Table) -> Result<T, Error> {
        let error = |error: toml::de::Error| format!("generate: {}", error.message().trim_end());
        options.clone().try_into().map_err(|problem| self.wrong(error(problem)))
    }

    fn wrong(&self, problem: String) -> Error {
        Error::Config { origin: self.by.into(), problem }
    }
}
