//! What one process reads of a graph in parts.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::array::Mapped;
use super::{
    FEATURE_COLUMNS, FEATURE_STARTS, FEATURE_VALUES, FEATURES, FORMAT, FeatureForm, GraphInParts,
    NEIGHBOURS, ORIGINAL, PARTS, PartsInfo, SPLIT, STARTS, TargetForm, Y,
};
use crate::data::{Categories, Dataset, DatasetParts, FeatureColumns, Split, TargetColumn};
use crate::graph::{
    Communicator, Features, GraphBatch, Level, OneHot, PartRows, SparseRows, Targets, Topology,
};
use crate::{Error, Matrix, Place};

/// The parts that one of several processes owns, before the processes have met.
///
/// ```
/// use std::sync::Arc;
/// use lpgnn::data::generate::CommunitiesConfig;
/// use lpgnn::data::parts::{Parts, write_parts};
/// use lpgnn::data::Overwrite;
/// use lpgnn::graph::Alone;
/// use lpgnn::run::RunConfig;
///
/// let whole = CommunitiesConfig { nodes: 60, degree: 4.0, ..CommunitiesConfig::default() }.generate(1)?;
/// let order: Vec<usize> = (0..60).collect();
/// let folder = tempfile::tempdir()?;
/// let config = RunConfig::for_data("communities", &whole, &[]);
/// write_parts(&whole, (&order, &[0, 20, 40]), (&config, None), folder.path(), Overwrite::Refuse)?;
///
/// // The second of two processes has fewer nodes than there are; one process alone has all.
/// assert!(Parts::read(folder.path(), 1, 2)?.nodes().len() < 60);
/// let dataset = Parts::read(folder.path(), 0, 1)?.shared_by(&(Arc::new(Alone) as _))?;
/// assert_eq!(dataset.nodes(), 60);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Parts {
    pub(super) folder: PathBuf,
    pub(super) info: PartsInfo,
    pub(super) rank_starts: Vec<usize>,
    pub(super) rank: usize,
    pub(super) nodes: Range<usize>,
    starts: Mapped<u64>,
    neighbours: Mapped<u32>,
    pub(super) features: Features<f32>,
    pub(super) targets: Option<TargetColumn>,
    pub(super) split: Split,
    pub(super) original: Mapped<u32>,
}

impl Parts {
    /// Reads the parts of process `rank` of so many. No process needs any other for this.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when there are more processes than parts; [`Error::Io`], [`Error::Input`] when files are missing or
    /// damaged.
    pub fn read(folder: &Path, rank: usize, ranks: usize) -> Result<Self, Error> {
        let info = read_info(&folder.join(PARTS))?;
        if ranks > info.parts() {
            return Err(Error::Mismatch(format!(
                "{} has {} parts, but {ranks} processes are to share it, and each of them needs at least one; \
                 write more with `lpgnn data partition --parts`",
                folder.display(),
                info.parts()
            )));
        }
        let rank_starts = info.rank_starts(ranks);
        let parts = rank_starts[rank]..rank_starts[rank + 1];
        let nodes = info.part_starts[parts.start]..info.part_starts[parts.end];
        let entries: usize = info.part_neighbours[..parts.start].iter().sum();
        let entries = entries..entries + info.part_neighbours[parts].iter().sum::<usize>();
        let (all, total) = (info.nodes(), info.part_neighbours.iter().sum());
        let starts = Mapped::open(&folder.join(STARTS), [all + 1, 1], nodes.start..nodes.end + 1)?;
        let neighbours = Mapped::open(&folder.join(NEIGHBOURS), [total, 1], entries)?;
        let targets = targets(folder, &info, nodes.clone())?;
        let original = original(folder, all, nodes.clone())?;
        let parts = Self {
            features: features(folder, &info, nodes.clone())?,
            split: split(folder, &info, nodes.clone())?,
            folder: folder.to_owned(),
            info,
            rank_starts,
            rank,
            nodes,
            starts,
            neighbours,
            targets,
            original,
        };
        parts.rows().check(parts.nodes.len()).map_err(|error| match error {
            Error::Mismatch(problem) => Place::file(&folder.join(NEIGHBOURS)).error(problem),
            error => error,
        })?;
        Ok(parts)
    }

    /// The nodes that the process owns, in the order of parts.
    pub fn nodes(&self) -> Range<usize> {
        self.nodes.clone()
    }

    pub(super) fn rows(&self) -> PartRows<'_> {
        PartRows {
            part_starts: &self.info.part_starts,
            rank_starts: &self.rank_starts,
            rank: self.rank,
            work: self.info.work(),
            starts: self.starts.as_slice(),
            neighbours: self.neighbours.as_slice(),
        }
    }

    /// The data set of which each of these processes has its own nodes. All of them call it together, each with the parts of its
    /// rank.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on all of them, when their parts do not fit each other.
    ///
    /// # Panics
    ///
    /// When they were read for another number of processes.
    pub fn shared_by(self, communicator: &Arc<dyn Communicator>) -> Result<Dataset, Error> {
        assert_eq!(self.rank_starts.len(), communicator.ranks() + 1, "read for as many");
        let topology = Topology::of_parts(self.rows(), communicator)?;
        let nodes = self.nodes.len();
        let targets = match &self.targets {
            None => Targets::None(nodes),
            Some(TargetColumn::Classes(classes)) => {
                Targets::classes(classes.values().len(), classes.codes().to_vec())?
            }
            Some(TargetColumn::Values { values, .. }) => Targets::Values(values.clone()),
        };
        let batch = GraphBatch::of_parts(topology, self.features, targets)?;
        let dataset = Dataset::new(DatasetParts {
            name: self.info.name.clone(),
            node_starts: vec![0, nodes],
            edges: vec![],
            node_features: FeatureColumns::none(nodes),
            edge_features: FeatureColumns::none(0),
            node_targets: self.targets,
            graph_targets: None,
            split: Some(self.split),
        })?;
        Ok(dataset.with_parts(GraphInParts {
            folder: self.folder,
            info: self.info,
            batch,
            original: Arc::new(self.original),
            communicator: Arc::clone(communicator),
        }))
    }
}

/// More are in no file, so that no sum overflows.
const MOST_NEIGHBOURS: usize = usize::MAX >> 8;

/// # Errors
///
/// [`Error::Io`]; [`Error::Input`] unless parts follow each other.
fn read_info(path: &Path) -> Result<PartsInfo, Error> {
    let text = crate::input::read_text(path)?;
    let problem = |problem: &str| Place::file(path).error(problem);
    let info: PartsInfo = serde_json::from_str(&text)
        .map_err(|error| problem(&format!("is not that of a graph in parts: {error}")))?;
    if info.format != FORMAT {
        return Err(problem(&format!("is in format {}, but {FORMAT} is expected", info.format)));
    }
    let sound = info.part_starts.first() == Some(&0)
        && info.part_starts.is_sorted_by(|a, b| a < b)
        && info.part_starts.len() == info.part_neighbours.len() + 1
        && !info.part_neighbours.is_empty()
        && info.nodes() < u32::MAX as usize
        && info
            .part_neighbours
            .iter()
            .try_fold(0_usize, |sum, &count| sum.checked_add(count))
            .is_some_and(|sum| sum < MOST_NEIGHBOURS);
    if !sound {
        return Err(problem("has parts that do not follow each other"));
    }
    info.encoding.check(1 << 26)?;
    let width = match info.form {
        FeatureForm::Dense { width }
        | FeatureForm::OneHot { width }
        | FeatureForm::Sparse { width } => width,
    };
    if width != info.encoding.node_width() {
        return Err(problem("has features of a different width than described"));
    }
    Ok(info)
}

fn features(folder: &Path, info: &PartsInfo, nodes: Range<usize>) -> Result<Features<f32>, Error> {
    let all = info.nodes();
    Ok(match info.form {
        FeatureForm::Dense { width } => {
            let count = nodes.len();
            let mapped = Mapped::open(&folder.join(FEATURES), [all, width], nodes)?;
            Features::Dense(Matrix::mapped(count, width, Arc::new(mapped)))
        }
        FeatureForm::OneHot { width } => {
            let columns = Mapped::open(&folder.join(FEATURE_COLUMNS), [all, 1], nodes)?;
            Features::OneHot(OneHot::new(width, columns.as_slice().to_vec())?)
        }
        FeatureForm::Sparse { width } => {
            let path = folder.join(FEATURE_STARTS);
            let starts = Mapped::<u64>::open(&path, [all + 1, 1], nodes.start..nodes.end + 1)?;
            let last = Mapped::<u64>::open(&path, [all + 1, 1], all..all + 1)?;
            let number = |x: &u64| usize::try_from(*x).map_err(|_| Error::TooLarge);
            let starts: Vec<usize> =
                starts.as_slice().iter().map(number).collect::<Result<_, _>>()?;
            let stored = last.as_slice().first().map_or(Ok(0), number)?;
            let rows = starts[0]..starts[starts.len() - 1];
            if rows.start > rows.end {
                return Err(Place::file(&path).error("has row starts that decrease"));
            }
            let columns =
                Mapped::<u32>::open(&folder.join(FEATURE_COLUMNS), [stored, 1], rows.clone())?;
            let values = Mapped::<f32>::open(&folder.join(FEATURE_VALUES), [stored, 1], rows)?;
            let starts = starts.iter().map(|start| start.wrapping_sub(starts[0])).collect();
            let (columns, values) = (columns.as_slice().to_vec(), values.as_slice().to_vec());
            Features::Sparse(SparseRows::new(width, starts, columns, values)?)
        }
    })
}

fn targets(
    folder: &Path,
    info: &PartsInfo,
    nodes: Range<usize>,
) -> Result<Option<TargetColumn>, Error> {
    let (path, all) = (folder.join(Y), info.nodes());
    Ok(match &info.targets {
        TargetForm::None => None,
        TargetForm::Classes { name, classes } => {
            let codes = Mapped::<u32>::open(&path, [all, 1], nodes)?.as_slice().to_vec();
            let column = Categories::from_codes(name, classes.clone(), codes)?;
            Some(TargetColumn::Classes(column))
        }
        TargetForm::Values { names } => {
            let count = nodes.len();
            let values = Mapped::<f32>::open(&path, [all, names.len()], nodes)?.as_slice().to_vec();
            let values = Matrix::from_entries(count, names.len(), values)?;
            Some(TargetColumn::Values { names: names.clone(), values })
        }
    })
}

/// The split of own nodes, by their numbers here.
fn split(folder: &Path, info: &PartsInfo, nodes: Range<usize>) -> Result<Split, Error> {
    let path = folder.join(SPLIT);
    let of_nodes = Mapped::<u8>::open(&path, [info.nodes(), 1], nodes)?;
    if of_nodes.as_slice().iter().any(|&split| split > 3) {
        return Err(Place::file(&path).error("has a number other than 0, 1, 2 and 3"));
    }
    let members = |number: u8| {
        let all = of_nodes.as_slice().iter().enumerate();
        all.filter(|(_, of)| **of == number).map(|(node, _)| node).collect()
    };
    Ok(Split { level: Level::Node, train: members(1), val: members(2), test: members(3) })
}

/// Which node of the data set every own node is: each of them is one node, and no two are the same.
fn original(folder: &Path, all: usize, nodes: Range<usize>) -> Result<Mapped<u32>, Error> {
    let path = folder.join(ORIGINAL);
    let original = Mapped::<u32>::open(&path, [all, 1], nodes)?;
    let mut seen = vec![0_u64; all / 64 + 1];
    for &node in original.as_slice() {
        let (place, bit) = (node as usize / 64, 1 << (node % 64));
        if node as usize >= all || seen[place] & bit != 0 {
            return Err(
                Place::file(&path).error(format!("lists node {node} twice, or it is out of range"))
            );
        }
        seen[place] |= bit;
    }
    Ok(original)
}
