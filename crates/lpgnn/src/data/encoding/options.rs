use crate::data::StructureOptions;

/// Which columns are used as node features.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureSource {
    /// Categories if there are any, otherwise real values, otherwise the degree.
    #[default]
    Auto,
    /// Categories, one-hot.
    Categories,
    /// Real values, dense or sparse.
    Values,
    /// Categories and real values.
    All,
    /// The degree of the node, one-hot.
    Degree,
    /// The constant 1.
    Constant,
}

/// What becomes of a category that the encoding does not have.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum UnseenCategories {
    /// An error, which names the category.
    #[default]
    Error,
    /// All columns of its feature are 0.
    Ignore,
    /// Encoded in a column shared by all such categories and those that occur in only one training row.
    Other,
}

/// Options for an [`Encoding`](super::Encoding).
#[derive(
    Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FeatureOptions {
    /// Which node columns are used.
    #[schemars(extend("x-data-default" = "all if the data name both categories and values, otherwise auto"))]
    pub source: FeatureSource,
    /// Largest degree with a column of its own; larger ones share that column.
    pub largest_degree: usize,
    /// Whether real values are scaled to mean 0 and standard deviation 1.
    #[schemars(extend(
        "x-data-default" = "false for homophilous graphs with values of one unit, otherwise true"
    ))]
    pub standardize: bool,
    /// Whether every sparse row is divided by its sum.
    ///
    /// A bag of words becomes word frequencies, so long texts do not outweigh short ones.
    #[schemars(extend("x-data-default" = "true for homophilous graphs with sparse features, otherwise false"))]
    pub row_normalize: bool,
    /// Whether edge columns are used.
    pub edges: bool,
    /// How categories that are not in the training data are handled.
    pub unseen: UnseenCategories,
    /// Rings, cliques and random walks around a node.
    pub structure: StructureOptions,
}

impl Default for FeatureOptions {
    fn default() -> Self {
        Self {
            source: FeatureSource::Auto,
            largest_degree: 255,
            standardize: true,
            row_normalize: false,
            edges: true,
            unseen: UnseenCategories::Error,
            structure: StructureOptions::default(),
        }
    }
}
