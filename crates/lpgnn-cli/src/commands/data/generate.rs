use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};
use lpgnn::data::generate::{
    ChainsConfig, CliqueConfig, CommunitiesConfig, GridsConfig, LargeConfig, Pattern,
    PatternChoice, SubgraphConfig, TreesConfig, karate_club,
};
use lpgnn::data::{Dataset, Overwrite, Ratio, WriteFormat};

use super::{write, write_format};
use crate::console::Console;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Subgraph matching: which nodes belong to an occurrence of a given pattern?
    Subgraph(SubgraphArguments),
    /// Clique detection: which nodes belong to a clique of at least a given size?
    Clique(CliqueArguments),
    /// Long-range dependency: which class does the far end of the chain encode?
    Chains(ChainsArguments),
    /// Long-range dependency: which class does the corner of the grid encode?
    Grids(GridsArguments),
    /// Long-range dependency: which class does the root of the tree encode?
    Trees(TreesArguments),
    /// Community detection with hubs: which community does a node belong to?
    Communities(CommunitiesArguments),
    /// Communities in a graph of any size, written directly as parts.
    Large(LargeArguments),
    /// Zachary's karate club: which faction does a member side with?
    Karate(KarateArguments),
}

#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// Output folder.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Output format.
    #[arg(long = "as", value_name = "FORMAT", value_parser = write_format(), default_value = "tables")]
    format: WriteFormat,

    /// Replace DIR if it is already a data set.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SubgraphArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Random seed: the same seed gives the same data.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Graphs in each of the training, validation and test sets.
    #[arg(long, value_name = "N", default_value_t = SubgraphConfig::default().graphs)]
    graphs: usize,

    /// Nodes per graph.
    #[arg(long, value_name = "N", default_value_t = SubgraphConfig::default().nodes)]
    nodes: usize,

    /// Nodes of the pattern, which is drawn at random.
    #[arg(long, value_name = "N", default_value_t = 3, conflicts_with = "pattern")]
    pattern_nodes: usize,

    /// The pattern as features and edges, such as "1,8 8,4 6,1; 0-1 1-2".
    #[arg(long)]
    pattern: Option<Pattern>,

    /// Probability of an edge outside the pattern.
    #[arg(long, value_name = "X", default_value_t = SubgraphConfig::default().density, allow_negative_numbers = true)]
    density: f64,

    /// Number of integer features per node.
    #[arg(long, value_name = "N", default_value_t = SubgraphConfig::default().feature_size)]
    feature_size: usize,

    /// Largest feature value; the smallest is 0.
    #[arg(long, value_name = "N", default_value_t = SubgraphConfig::default().largest_feature)]
    largest_feature: u32,

    /// Standard deviation of the noise added to every feature.
    #[arg(long, value_name = "X", default_value_t = SubgraphConfig::default().noise, allow_negative_numbers = true)]
    noise: f64,
}

#[derive(Debug, Args)]
pub(crate) struct CliqueArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Random seed: the same seed gives the same data.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Graphs in each of the training, validation and test sets.
    #[arg(long, value_name = "N", default_value_t = CliqueConfig::default().graphs)]
    graphs: usize,

    /// Nodes per graph.
    #[arg(long, value_name = "N", default_value_t = CliqueConfig::default().nodes)]
    nodes: usize,

    /// Nodes of the clique.
    #[arg(long, value_name = "N", default_value_t = CliqueConfig::default().clique)]
    clique: usize,

    /// Probability of an edge outside the clique.
    #[arg(long, value_name = "X", default_value_t = CliqueConfig::default().density, allow_negative_numbers = true)]
    density: f64,

    /// Number of integer features per node.
    #[arg(long, value_name = "N", default_value_t = CliqueConfig::default().feature_size)]
    feature_size: usize,

    /// Largest feature value; the smallest is 0.
    #[arg(long, value_name = "N", default_value_t = CliqueConfig::default().largest_feature)]
    largest_feature: u32,

    /// Standard deviation of the noise added to every feature.
    #[arg(long, value_name = "X", default_value_t = CliqueConfig::default().noise, allow_negative_numbers = true)]
    noise: f64,
}

#[derive(Debug, Args)]
pub(crate) struct ChainsArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Random seed of the split.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of classes.
    #[arg(long, value_name = "N", default_value_t = ChainsConfig::default().classes)]
    classes: usize,

    /// Chains per class.
    #[arg(long, value_name = "N", default_value_t = ChainsConfig::default().chains)]
    chains: usize,

    /// Nodes per chain.
    #[arg(long, value_name = "N", default_value_t = ChainsConfig::default().length)]
    length: usize,

    #[command(flatten)]
    shares: ShareArguments,
}

/// How nodes are split.
#[derive(Debug, Args)]
pub(crate) struct ShareArguments {
    /// Fraction of the nodes in the training split.
    #[arg(long, value_name = "SHARE", default_value_t = ChainsConfig::default().split.train)]
    train: f64,

    /// Fraction of the nodes in the validation split; the rest is the test split.
    #[arg(long, value_name = "SHARE", default_value_t = ChainsConfig::default().split.val)]
    val: f64,
}

#[derive(Debug, Args)]
pub(crate) struct GridsArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Random seed of the split.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of classes.
    #[arg(long, value_name = "N", default_value_t = GridsConfig::default().classes)]
    classes: usize,

    /// Grids per class.
    #[arg(long, value_name = "N", default_value_t = GridsConfig::default().grids)]
    grids: usize,

    /// Rows of a grid.
    #[arg(long, value_name = "N", default_value_t = GridsConfig::default().rows)]
    rows: usize,

    /// Columns of a grid.
    #[arg(long, value_name = "N", default_value_t = GridsConfig::default().columns)]
    columns: usize,

    #[command(flatten)]
    shares: ShareArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TreesArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Random seed of the split.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of classes.
    #[arg(long, value_name = "N", default_value_t = TreesConfig::default().classes)]
    classes: usize,

    /// Trees per class.
    #[arg(long, value_name = "N", default_value_t = TreesConfig::default().trees)]
    trees: usize,

    /// Children per node.
    #[arg(long, value_name = "N", default_value_t = TreesConfig::default().branching)]
    branching: usize,

    /// Levels below the root.
    #[arg(long, value_name = "N", default_value_t = TreesConfig::default().depth)]
    depth: usize,

    /// Edges on the path from a node to its child.
    #[arg(long, value_name = "N", default_value_t = TreesConfig::default().stretch)]
    stretch: usize,

    #[command(flatten)]
    shares: ShareArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CommunitiesArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Random seed: the same seed gives the same data.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of communities.
    #[arg(long, value_name = "N", default_value_t = CommunitiesConfig::default().classes)]
    classes: usize,

    /// Total number of nodes, in communities of equal size.
    #[arg(long, value_name = "N", default_value_t = CommunitiesConfig::default().nodes)]
    nodes: usize,

    /// Mean degree.
    #[arg(long, value_name = "X", default_value_t = CommunitiesConfig::default().degree, allow_negative_numbers = true)]
    degree: f64,

    /// Variation of the degrees: 0 for nearly none; 1 and more creates hubs.
    #[arg(long, value_name = "X", default_value_t = CommunitiesConfig::default().spread, allow_negative_numbers = true)]
    spread: f64,

    /// Fraction of the edges that leave a community.
    #[arg(long, value_name = "X", default_value_t = CommunitiesConfig::default().mixing, allow_negative_numbers = true)]
    mixing: f64,

    /// Standard deviation of the noise added to every feature.
    #[arg(long, value_name = "X", default_value_t = CommunitiesConfig::default().noise, allow_negative_numbers = true)]
    noise: f64,

    /// Fraction of the nodes in the training split.
    #[arg(long, value_name = "SHARE", default_value_t = CommunitiesConfig::default().split.train)]
    train: f64,

    /// Fraction of the nodes in the validation split; the rest is the test split.
    #[arg(long, value_name = "SHARE", default_value_t = CommunitiesConfig::default().split.val)]
    val: f64,
}

#[derive(Debug, Args)]
pub(crate) struct LargeArguments {
    /// Output folder.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Replace DIR if it is already a data set.
    #[arg(long)]
    force: bool,

    /// Random seed: the same seed gives the same data.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of parts; the graph is the same for any number.
    #[arg(long, value_name = "N", default_value_t = LargeConfig::default().parts)]
    parts: usize,

    /// Number of nodes.
    #[arg(long, value_name = "N", default_value_t = LargeConfig::default().nodes)]
    nodes: usize,

    /// Number of neighbours of a node.
    #[arg(long, value_name = "N", default_value_t = LargeConfig::default().degree)]
    degree: usize,

    /// Nodes of a community.
    #[arg(long, value_name = "N", default_value_t = LargeConfig::default().community)]
    community: usize,

    /// Fraction of the edges that lead to any node.
    #[arg(long, value_name = "X", default_value_t = LargeConfig::default().mixing, allow_negative_numbers = true)]
    mixing: f64,

    /// Number of classes; every community has one class.
    #[arg(long, value_name = "N", default_value_t = LargeConfig::default().classes)]
    classes: usize,

    /// Number of features per node.
    #[arg(long, value_name = "N", default_value_t = LargeConfig::default().features)]
    features: usize,

    /// Standard deviation of the noise added to every feature.
    #[arg(long, value_name = "X", default_value_t = LargeConfig::default().noise, allow_negative_numbers = true)]
    noise: f64,

    /// Fraction of the nodes in the training split.
    #[arg(long, value_name = "SHARE", default_value_t = LargeConfig::default().split.train)]
    train: f64,

    /// Fraction of the nodes in the validation split; the rest is the test split.
    #[arg(long, value_name = "SHARE", default_value_t = LargeConfig::default().split.val)]
    val: f64,
}

#[derive(Debug, Args)]
pub(crate) struct KarateArguments {
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(task: Task, console: &Console) -> anyhow::Result<()> {
    let (dataset, output) = match task {
        Task::Subgraph(arguments) => arguments.generate(console)?,
        Task::Clique(arguments) => arguments.generate()?,
        Task::Chains(arguments) => arguments.generate()?,
        Task::Grids(arguments) => arguments.generate()?,
        Task::Trees(arguments) => arguments.generate()?,
        Task::Communities(arguments) => arguments.generate()?,
        Task::Large(arguments) => return arguments.write(console),
        Task::Karate(arguments) => (karate_club()?, arguments.output),
    };
    write::run(&dataset, &output.out, output.format, output.force, console)
}

type Generated = anyhow::Result<(Dataset, OutputArguments)>;

impl SubgraphArguments {
    fn generate(self, console: &Console) -> Generated {
        let config = SubgraphConfig {
            graphs: self.graphs,
            nodes: self.nodes,
            pattern: match self.pattern {
                Some(pattern) => PatternChoice::Given(pattern),
                None => PatternChoice::Random(self.pattern_nodes),
            },
            density: self.density,
            feature_size: self.feature_size,
            largest_feature: self.largest_feature,
            noise: self.noise,
        };
        let dataset = config.generate(self.seed)?;
        console.say(format_args!("pattern: {}", config.pattern(self.seed)?));
        Ok((dataset, self.output))
    }
}

impl CliqueArguments {
    fn generate(self) -> Generated {
        let config = CliqueConfig {
            graphs: self.graphs,
            nodes: self.nodes,
            clique: self.clique,
            density: self.density,
            feature_size: self.feature_size,
            largest_feature: self.largest_feature,
            noise: self.noise,
        };
        Ok((config.generate(self.seed)?, self.output))
    }
}

impl ChainsArguments {
    fn generate(self) -> Generated {
        let config = ChainsConfig {
            classes: self.classes,
            chains: self.chains,
            length: self.length,
            split: self.shares.split()?,
        };
        Ok((config.generate(self.seed)?, self.output))
    }
}

impl GridsArguments {
    fn generate(self) -> Generated {
        let config = GridsConfig {
            classes: self.classes,
            grids: self.grids,
            rows: self.rows,
            columns: self.columns,
            split: self.shares.split()?,
        };
        Ok((config.generate(self.seed)?, self.output))
    }
}

impl TreesArguments {
    fn generate(self) -> Generated {
        let config = TreesConfig {
            classes: self.classes,
            trees: self.trees,
            branching: self.branching,
            depth: self.depth,
            stretch: self.stretch,
            split: self.shares.split()?,
        };
        Ok((config.generate(self.seed)?, self.output))
    }
}

impl CommunitiesArguments {
    fn generate(self) -> Generated {
        let config = CommunitiesConfig {
            classes: self.classes,
            nodes: self.nodes,
            degree: self.degree,
            spread: self.spread,
            mixing: self.mixing,
            noise: self.noise,
            split: ShareArguments { train: self.train, val: self.val }.split()?,
        };
        Ok((config.generate(self.seed)?, self.output))
    }
}

impl LargeArguments {
    fn write(self, console: &Console) -> anyhow::Result<()> {
        let config = LargeConfig {
            nodes: self.nodes,
            degree: self.degree,
            community: self.community,
            mixing: self.mixing,
            classes: self.classes,
            features: self.features,
            noise: self.noise,
            split: ShareArguments { train: self.train, val: self.val }.split()?,
            parts: self.parts,
        };
        let overwrite = if self.force { Overwrite::Replace } else { Overwrite::Refuse };
        let info = config.write(self.seed, &self.out, overwrite)?;
        super::partition::tell(&info, &self.out, console);
        Ok(())
    }
}

impl ShareArguments {
    fn split(&self) -> anyhow::Result<Ratio> {
        let known = self.train + self.val;
        if known > 1.0 {
            bail!(lpgnn::Error::Option {
                option: "train + val",
                value: known.to_string(),
                expected: "a sum of at most 1 is expected".into(),
            });
        }
        Ok(Ratio { train: self.train, val: self.val, test: 1.0 - known })
    }
}
