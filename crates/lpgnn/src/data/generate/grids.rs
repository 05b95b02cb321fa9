use super::check;
use super::spread::{Spread, both_ways, check_copies};
use crate::Error;
use crate::data::{Dataset, Ratio};

/// Grids whose class is a feature of one corner only, and has to be predicted at every node.
///
/// Like [`ChainsConfig`](super::ChainsConfig), but with many paths from the corner to a node: a
/// grid has `rows × columns` nodes, each joined to up to four adjacent ones, and the opposite corner
/// is `rows + columns − 2` edges away.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GridsConfig {
    /// Number of classes.
    pub classes: usize,
    /// Grids per class.
    pub grids: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// The split of the nodes, stratified by class.
    pub split: Ratio,
}

impl Default for GridsConfig {
    fn default() -> Self {
        let split = super::ChainsConfig::default().split;
        Self { classes: 2, grids: 20, rows: 5, columns: 6, split }
    }
}

impl GridsConfig {
    /// The data set for this seed, which only affects the split.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first invalid option.
    pub fn generate(&self, seed: u64) -> Result<Dataset, Error> {
        let Self { classes, grids, rows, columns, split } = *self;
        check("rows", rows, rows > 0, "a grid has at least 1 row")?;
        check("columns", columns, columns > 0, "a grid has at least 1 column")?;
        check_copies(classes, ("grids", grids), ("rows", rows, rows as f64))?;
        let nodes = rows as f64 * columns as f64;
        check_copies(classes, ("grids", grids), ("columns", columns, nodes))?;
        let (width, last) = (small(columns)?, small(rows * columns)?);
        let edges = (0..last).flat_map(|v| {
            let right = (v % width + 1 < width).then_some((v, v + 1));
            let below = (v + width < last).then_some((v, v + width));
            right.into_iter().chain(below)
        });
        let edges = both_ways(edges);
        let copies = ("grids", grids);
        Spread { name: "grids", classes, copies, nodes: rows * columns, edges, split }
            .generate(seed)
    }
}

fn small(count: usize) -> Result<u32, Error> {
    u32::try_from(count).map_err(|_| Error::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Statistics;

    #[test]
    fn a_grid_joins_what_is_side_by_side() {
        let config = GridsConfig { grids: 1, rows: 2, columns: 3, ..GridsConfig::default() };
        let dataset = config.generate(0).unwrap();
        let first: Vec<_> = dataset.edges().iter().filter(|(u, v)| u < v && *v < 6).collect();
        assert_eq!(first, [&(0, 1), &(0, 3), &(1, 2), &(1, 4), &(2, 5), &(3, 4), &(4, 5)]);
        let found = Statistics::of(&dataset);
        assert_eq!((found.graphs, found.nodes, found.edges), (2, 12, 28));
        assert!(found.undirected);
        assert_eq!((found.degree.min, found.degree.max), (2, 3));
        assert_eq!(found.warnings, crate::data::Warnings::default());
    }

    #[test]
    fn unusable_options_are_named() {
        let said = |config: GridsConfig| config.generate(0).unwrap_err().to_string();
        let config = GridsConfig::default;
        assert_eq!(
            said(GridsConfig { rows: 0, ..config() }),
            "rows is 0, but a grid has at least 1 row"
        );
        assert_eq!(
            said(GridsConfig { grids: 0, ..config() }),
            "grids is 0, but there must be at least 1"
        );
        assert_eq!(
            said(GridsConfig { columns: 1 << 40, ..config() }),
            "columns is 1099511627776, but the set would have more than 2e8 features and edges"
        );
    }
}
