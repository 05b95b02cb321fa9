//! Parts are written node by node, so that nobody has to have the whole graph.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::array::{ArrayWriter, Mapped};
use super::fingerprint::{PartHash, whole};
use super::{
    FEATURE_COLUMNS, FEATURE_STARTS, FEATURE_VALUES, FEATURES, FORMAT, FeatureForm, NAMES,
    NEIGHBOURS, ORIGINAL, PARTS, PartsInfo, SPLIT, STARTS, TargetForm, Y,
};
use crate::data::write::{Overwrite, fill_folder};
use crate::data::{Dataset, Encoding, FeatureOptions, TargetColumn};
use crate::graph::{Features, GraphBatch, Level, NO_TARGET, Targets};
use crate::readout::{Supervision, TargetScale};
use crate::run::{Neighbours, RunConfig, SplitConfig};
use crate::{Error, Place};

/// A node, as it is written.
#[derive(Clone, Copy, Debug)]
pub struct NodeRow<'a> {
    /// Its neighbours, parents and children, in order; numbered as nodes are written.
    pub neighbours: &'a [u32],
    /// Its features.
    pub features: RowFeatures<'a>,
    /// Its class, or [`NO_TARGET`].
    pub class: u32,
    /// Its real values, in place of a class.
    pub values: &'a [f32],
    /// 0: in no split, 1: train, 2: val, 3: test.
    pub split: u8,
    /// Which node of the data set it is.
    pub original: u32,
}

/// The features of a node.
#[derive(Clone, Copy, Debug)]
pub enum RowFeatures<'a> {
    /// All of them.
    Dense(&'a [f32]),
    /// The column that is 1.
    OneHot(u32),
    /// Columns and their values.
    Sparse(&'a [u32], &'a [f32]),
}

/// Writes the arrays of a graph in parts.
pub struct PartsWriter {
    folder: PathBuf,
    info: PartsInfo,
    starts: ArrayWriter<u64>,
    neighbours: ArrayWriter<u32>,
    features: FeatureArrays,
    classes: Option<ArrayWriter<u32>>,
    values: Option<ArrayWriter<f32>>,
    split: ArrayWriter<u8>,
    original: ArrayWriter<u32>,
    /// Nodes and neighbours so far.
    written: (usize, usize),
    hash: PartHash,
}

enum FeatureArrays {
    Dense(ArrayWriter<f32>),
    OneHot(ArrayWriter<u32>),
    Sparse {
        starts: ArrayWriter<u64>,
        columns: ArrayWriter<u32>,
        values: ArrayWriter<f32>,
        end: u64,
    },
}

impl PartsWriter {
    /// In an empty folder. What is counted on the way need not be set in `info`.
    pub(crate) fn create(folder: &Path, info: PartsInfo) -> Result<Self, Error> {
        let at = |name: &str| folder.join(name);
        let features = match info.form {
            FeatureForm::Dense { .. } => FeatureArrays::Dense(ArrayWriter::create(at(FEATURES))?),
            FeatureForm::OneHot { .. } => {
                FeatureArrays::OneHot(ArrayWriter::create(at(FEATURE_COLUMNS))?)
            }
            FeatureForm::Sparse { .. } => {
                let mut starts = ArrayWriter::create(at(FEATURE_STARTS))?;
                starts.push(&[0])?;
                let columns = ArrayWriter::create(at(FEATURE_COLUMNS))?;
                let values = ArrayWriter::create(at(FEATURE_VALUES))?;
                FeatureArrays::Sparse { starts, columns, values, end: 0 }
            }
        };
        let classes = matches!(info.targets, TargetForm::Classes { .. });
        let values = matches!(info.targets, TargetForm::Values { .. });
        let mut starts = ArrayWriter::create(at(STARTS))?;
        starts.push(&[0])?;
        Ok(Self {
            starts,
            neighbours: ArrayWriter::create(at(NEIGHBOURS))?,
            features,
            classes: classes.then(|| ArrayWriter::create(at(Y))).transpose()?,
            values: values.then(|| ArrayWriter::create(at(Y))).transpose()?,
            split: ArrayWriter::create(at(SPLIT))?,
            original: ArrayWriter::create(at(ORIGINAL))?,
            written: (0, 0),
            hash: PartHash::default(),
            folder: folder.to_owned(),
            info: PartsInfo {
                part_starts: vec![0],
                part_neighbours: vec![],
                largest_degree: 0,
                split_sizes: [0; 3],
                ..info
            },
        })
    }

    /// Appends a node.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]
    pub fn node(&mut self, row: &NodeRow<'_>) -> Result<(), Error> {
        let NodeRow { neighbours, features, class, values, split, original } = *row;
        self.written.0 += 1;
        self.written.1 += neighbours.len();
        // A node without neighbours becomes its own.
        self.info.largest_degree = self.info.largest_degree.max(neighbours.len()).max(1);
        self.starts.push(&[self.written.1 as u64])?;
        self.neighbours.push(neighbours)?;
        self.hash.add(row);
        match (&mut self.features, features) {
            (FeatureArrays::Dense(all), RowFeatures::Dense(row)) => {
                all.push(row)?;
            }
            (FeatureArrays::OneHot(all), RowFeatures::OneHot(column)) => {
                all.push(&[column])?;
            }
            (FeatureArrays::Sparse { starts, columns, values, end }, RowFeatures::Sparse(c, x)) => {
                *end += c.len() as u64;
                starts.push(&[*end])?;
                columns.push(c)?;
                values.push(x)?;
            }
            _ => return Err(Error::Mismatch("the features of a node have another form".into())),
        }
        if let Some(classes) = &mut self.classes {
            classes.push(&[class])?;
        }
        if let Some(all) = &mut self.values {
            all.push(values)?;
        }
        if let Some(size) = usize::from(split).checked_sub(1) {
            self.info.split_sizes[size.min(2)] += 1;
        }
        self.split.push(&[split])?;
        self.original.push(&[original])
    }

    /// Ends a part; one without nodes is none.
    pub fn end_part(&mut self) {
        let before: usize = self.info.part_neighbours.iter().sum();
        if self.info.part_starts.last() != Some(&self.written.0) {
            self.info.part_starts.push(self.written.0);
            self.info.part_neighbours.push(self.written.1 - before);
            self.info.part_fingerprints.push(self.hash.end());
        }
    }

    /// Ends the last part, and writes the description: `scale` is the unit of real targets.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::TooLarge`]
    pub(crate) fn finish(mut self) -> Result<PartsInfo, Error> {
        self.end_part();
        if self.written.0 >= u32::MAX as usize {
            return Err(Error::TooLarge);
        }
        self.starts.finish(None)?;
        self.neighbours.finish(None)?;
        match self.features {
            FeatureArrays::Dense(all) => {
                let FeatureForm::Dense { width } = self.info.form else {
                    unreachable!("as created")
                };
                all.finish(Some(width))?;
            }
            FeatureArrays::OneHot(all) => all.finish(None)?,
            FeatureArrays::Sparse { starts, columns, values, .. } => {
                starts.finish(None)?;
                columns.finish(None)?;
                values.finish(None)?;
            }
        }
        if let (Some(values), TargetForm::Values { names }) = (self.values, &self.info.targets) {
            values.finish(Some(names.len()))?;
        }
        self.classes.map_or(Ok(()), |classes| classes.finish(None))?;
        self.split.finish(None)?;
        self.original.finish(None)?;
        [self.info.fingerprint, self.info.split_fingerprint] = whole(&self.info);
        let path = self.folder.join(PARTS);
        let text = serde_json::to_string_pretty(&self.info)
            .map_err(|error| Place::file(&path).error(error.to_string()))?;
        crate::run::write_file(&path, (text + "\n").as_bytes())?;
        Ok(self.info)
    }
}

/// A description of what has not been counted yet.
pub(crate) fn info_of(
    name: &str,
    (encoding, form): (Encoding, FeatureForm),
    (features, split): (FeatureOptions, SplitConfig),
    targets: TargetForm,
) -> PartsInfo {
    PartsInfo {
        format: FORMAT,
        name: name.to_owned(),
        part_starts: vec![],
        part_neighbours: vec![],
        largest_degree: 0,
        form,
        encoding,
        features,
        split,
        split_sizes: [0; 3],
        targets,
        target_scale: None,
        neighbours: Neighbours::Unknown,
        names: false,
        part_fingerprints: vec![],
        fingerprint: String::new(),
        split_fingerprint: String::new(),
    }
}

/// Writes one graph in parts: node `order[i]` of `dataset` is the `i`-th that is written, and the `k`-th part starts with the
/// `starts[k]`-th. Features are encoded and nodes are split as `config` says; or features are the rows of a file of `NumPy`, in single
/// precision and in the order of `dataset`, which may be larger than memory.
///
/// # Errors
///
/// [`Error::Mismatch`] when there are several graphs, features of edges or sample weights, or no targets of nodes, or when the
/// folder is not to be replaced; [`Error::Io`].
pub fn write_parts(
    dataset: &Dataset,
    (order, starts): (&[usize], &[usize]),
    (config, features): (&RunConfig, Option<&Path>),
    folder: &Path,
    overwrite: Overwrite,
) -> Result<PartsInfo, Error> {
    check(dataset)?;
    let values = features.map(Values::open).transpose()?;
    let split = config.split.divide(dataset, Level::Node)?;
    let mut encoding = Encoding::for_split(dataset, &config.features, &split)?;
    if encoding.edge_width() > 0 {
        return Err(Error::Mismatch(
            "parts cannot hold edge features: features.structure.edges is to be false".into(),
        ));
    }
    let ordered = dataset.reordered(order)?;
    let batch = encoding.batch::<f32>(&ordered)?;
    if let Some(values) = &values {
        values.check(dataset.nodes())?;
        encoding = encoding.with_values(values.names());
    }
    let targets = match dataset.node_targets() {
        None => TargetForm::None,
        Some(TargetColumn::Classes(classes)) => TargetForm::Classes {
            name: classes.name().to_owned(),
            classes: classes.values().to_vec(),
        },
        Some(TargetColumn::Values { names, .. }) => TargetForm::Values { names: names.clone() },
    };
    let form = match batch.node_features() {
        _ if values.is_some() => FeatureForm::Dense { width: encoding.node_width() },
        Features::Dense(matrix) => FeatureForm::Dense { width: matrix.cols() },
        Features::OneHot(_) => FeatureForm::OneHot { width: batch.node_features().width() },
        Features::Sparse(rows) => FeatureForm::Sparse { width: rows.width() },
    };
    let settings = (config.features.clone(), config.split);
    let mut info = info_of(dataset.name(), (encoding, form), settings, targets);
    let of_all = dataset.nodes();
    let mut places = vec![0; of_all];
    order.iter().enumerate().for_each(|(place, &node)| places[node] = place);
    let train: Vec<usize> = split.train.iter().map(|&node| places[node]).collect();
    info.target_scale = TargetScale::of(&Supervision::of(batch.node_targets().clone(), &train)?);
    info.neighbours = Neighbours::of(dataset, config.split);
    info.names = (0..of_all).any(|node| dataset.node_name(node).is_some());
    fill_folder(folder, overwrite, |new| {
        if info.names {
            write_names(dataset, &new.join(NAMES))?;
        }
        let mut writer = PartsWriter::create(new, info)?;
        let members = split.by_node(of_all);
        write_rows(&mut writer, (&batch, values.as_ref()), (order, starts), &members)?;
        writer.finish()
    })
}

/// Features in a file.
struct Values {
    path: PathBuf,
    rows: usize,
    width: usize,
    mapped: Mapped<f32>,
}

impl Values {
    fn open(path: &Path) -> Result<Self, Error> {
        let (mapped, [rows, width]) = Mapped::open_all(path)?;
        Ok(Self { path: path.to_owned(), rows, width, mapped })
    }

    /// # Errors
    ///
    /// [`Error::Input`] unless there is a row of finite numbers per node.
    fn check(&self, nodes: usize) -> Result<(), Error> {
        let problem = |problem: String| Err(Place::file(&self.path).error(problem));
        if self.rows != nodes || self.width == 0 {
            let (rows, width) = (self.rows, self.width);
            return problem(format!("has {rows} rows of {width} numbers for {nodes} nodes"));
        }
        match self.mapped.as_slice().iter().position(|x| !x.is_finite()) {
            None => Ok(()),
            Some(place) => problem(format!(
                "has a number in row {} that is not finite, counted from 0",
                place / self.width
            )),
        }
    }

    fn row(&self, node: usize) -> &[f32] {
        &self.mapped.as_slice()[node * self.width..(node + 1) * self.width]
    }

    fn names(&self) -> Vec<String> {
        (1..=self.width).map(|column| format!("feature {column}")).collect()
    }
}

/// # Errors
///
/// [`Error::Mismatch`] for what parts cannot hold.
fn check(dataset: &Dataset) -> Result<(), Error> {
    let name = dataset.name();
    let problem = if dataset.graphs() != 1 {
        format!(
            "{name} has {} graphs, but only a single graph can be written in parts; without parts, processes \
             share whole graphs",
            dataset.graphs()
        )
    } else if !dataset.edge_features().is_empty() {
        format!("{name} has edge features, which parts cannot hold")
    } else if dataset.weights().is_some() {
        format!("{name} has sample weights, which parts cannot hold")
    } else if dataset.nodes() == 0 {
        format!("{name} has no nodes")
    } else {
        return Ok(());
    };
    Err(Error::Mismatch(problem))
}

#[allow(clippy::cast_possible_truncation, reason = "nodes are numbered with 32 bits")]
fn write_rows(
    writer: &mut PartsWriter,
    (batch, given): (&GraphBatch<f32>, Option<&Values>),
    (order, starts): (&[usize], &[usize]),
    split: &[u8],
) -> Result<(), Error> {
    for (v, &node) in order.iter().enumerate() {
        if starts.binary_search(&v).is_ok() {
            writer.end_part();
        }
        let isolated = batch.neighbours().is_isolated(v);
        let (class, values) = match batch.node_targets() {
            Targets::None(_) => (NO_TARGET, &[][..]),
            Targets::Classes { class, .. } => (class[v], &[][..]),
            Targets::Values(values) => (NO_TARGET, values.row(v)),
        };
        writer.node(&NodeRow {
            neighbours: if isolated { &[] } else { batch.neighbours().of(v) },
            features: match batch.node_features() {
                _ if given.is_some() => RowFeatures::Dense(given.map_or(&[], |all| all.row(node))),
                features => RowFeatures::of(features, v),
            },
            class,
            values,
            split: split[node],
            original: node as u32,
        })?;
    }
    Ok(())
}

fn write_names(dataset: &Dataset, path: &Path) -> Result<(), Error> {
    let mut text = vec![];
    for node in 0..dataset.nodes() {
        let name = dataset.node_name(node).map_or_else(|| node.to_string(), str::to_owned);
        if name.contains('\n') {
            return Err(Error::Mismatch(format!("the name of node {node} has several lines")));
        }
        // Writing to memory cannot fail.
        let _ = writeln!(text, "{name}");
    }
    crate::run::write_file(path, &text)
}
