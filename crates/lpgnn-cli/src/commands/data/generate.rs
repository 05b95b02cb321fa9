use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};
use lpgnn::data::generate::{
    ChainsConfig, CliqueConfig, CommunitiesConfig, GridsConfig, Pattern, PatternChoice,
    SubgraphConfig, TreesConfig, karate_club,
};
use lpgnn::data::{Dataset, Ratio, WriteFormat};

use super::{write, write_format};
use crate::console::Console;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Which nodes belong to a subgraph that is a given pattern?
    Subgraph(SubgraphArguments),
    /// Which nodes belong to a clique of at least a given size?
    Clique(CliqueArguments),
    /// Which class is written at the far end of the chain?
    Chains(ChainsArguments),
    /// Which class is written in the corner of the grid?
    Grids(GridsArguments),
    /// Which class is written at the root of the tree?
    Trees(TreesArguments),
    /// Which community is a node of, where some are hubs?
    Communities(CommunitiesArguments),
    /// Zachary's karate club: which faction does a member side with?
    Karate(KarateArguments),
}

#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// The folder to write.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// The format to write.
    #[arg(long = "as", value_name = "FORMAT", value_parser = write_format(), default_value = "tables")]
    format: WriteFormat,

    /// Replace DIR if it is a data set.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SubgraphArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Where randomness starts: the same seed, the same bits.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Graphs in each of the training, validation and test sets.
    #[arg(long, value_name = "N", default_value_t = SubgraphConfig::default().graphs)]
    graphs: usize,

    /// Nodes of a graph.
    #[arg(long, value_name = "N", default_value_t = SubgraphConfig::default().nodes)]
    nodes: usize,

    /// Nodes of the pattern, which is drawn from the seed.
    #[arg(long, value_name = "N", default_value_t = 3, conflicts_with = "pattern")]
    pattern_nodes: usize,

    /// The pattern itself, features and edges: "1,8 8,4 6,1; 0-1 1-2".
    #[arg(long)]
    pattern: Option<Pattern>,

    /// The probability of an edge, where the pattern does not decide.
    #[arg(long, value_name = "X", default_value_t = SubgraphConfig::default().density, allow_negative_numbers = true)]
    density: f64,

    /// How many integers feature a node.
    #[arg(long, value_name = "N", default_value_t = SubgraphConfig::default().feature_size)]
    feature_size: usize,

    /// The largest such integer; the smallest is 0.
    #[arg(long, value_name = "N", default_value_t = SubgraphConfig::default().largest_feature)]
    largest_feature: u32,

    /// Deviation of the noise on every feature.
    #[arg(long, value_name = "X", default_value_t = SubgraphConfig::default().noise, allow_negative_numbers = true)]
    noise: f64,
}

#[derive(Debug, Args)]
pub(crate) struct CliqueArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Where randomness starts: the same seed, the same bits.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Graphs in each of the training, validation and test sets.
    #[arg(long, value_name = "N", default_value_t = CliqueConfig::default().graphs)]
    graphs: usize,

    /// Nodes of a graph.
    #[arg(long, value_name = "N", default_value_t = CliqueConfig::default().nodes)]
    nodes: usize,

    /// Nodes of the clique.
    #[arg(long, value_name = "N", default_value_t = CliqueConfig::default().clique)]
    clique: usize,

    /// The probability of an edge, outside the clique.
    #[arg(long, value_name = "X", default_value_t = CliqueConfig::default().density, allow_negative_numbers = true)]
    density: f64,

    /// How many integers feature a node.
    #[arg(long, value_name = "N", default_value_t = CliqueConfig::default().feature_size)]
    feature_size: usize,

    /// The largest such integer; the smallest is 0.
    #[arg(long, value_name = "N", default_value_t = CliqueConfig::default().largest_feature)]
    largest_feature: u32,

    /// Deviation of the noise on every feature.
    #[arg(long, value_name = "X", default_value_t = CliqueConfig::default().noise, allow_negative_numbers = true)]
    noise: f64,
}

#[derive(Debug, Args)]
pub(crate) struct ChainsArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Where randomness starts: the same seed, the same split.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of classes.
    #[arg(long, value_name = "N", default_value_t = ChainsConfig::default().classes)]
    classes: usize,

    /// Chains of each class.
    #[arg(long, value_name = "N", default_value_t = ChainsConfig::default().chains)]
    chains: usize,

    /// Nodes of a chain.
    #[arg(long, value_name = "N", default_value_t = ChainsConfig::default().length)]
    length: usize,

    #[command(flatten)]
    shares: ShareArguments,
}

/// How nodes are divided.
#[derive(Debug, Args)]
pub(crate) struct ShareArguments {
    /// Share of the nodes for training.
    #[arg(long, value_name = "SHARE", default_value_t = ChainsConfig::default().split.train)]
    train: f64,

    /// Share of the nodes for validation; the rest is for the test.
    #[arg(long, value_name = "SHARE", default_value_t = ChainsConfig::default().split.val)]
    val: f64,
}

#[derive(Debug, Args)]
pub(crate) struct GridsArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Where randomness starts: the same seed, the same split.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of classes.
    #[arg(long, value_name = "N", default_value_t = GridsConfig::default().classes)]
    classes: usize,

    /// Grids of each class.
    #[arg(long, value_name = "N", default_value_t = GridsConfig::default().grids)]
    grids: usize,

    /// Nodes from one side to the other.
    #[arg(long, value_name = "N", default_value_t = GridsConfig::default().rows)]
    rows: usize,

    /// Nodes along a side.
    #[arg(long, value_name = "N", default_value_t = GridsConfig::default().columns)]
    columns: usize,

    #[command(flatten)]
    shares: ShareArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TreesArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Where randomness starts: the same seed, the same split.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of classes.
    #[arg(long, value_name = "N", default_value_t = TreesConfig::default().classes)]
    classes: usize,

    /// Trees of each class.
    #[arg(long, value_name = "N", default_value_t = TreesConfig::default().trees)]
    trees: usize,

    /// Children of a node.
    #[arg(long, value_name = "N", default_value_t = TreesConfig::default().branching)]
    branching: usize,

    /// Levels below the root.
    #[arg(long, value_name = "N", default_value_t = TreesConfig::default().depth)]
    depth: usize,

    /// Edges from a node to its child.
    #[arg(long, value_name = "N", default_value_t = TreesConfig::default().stretch)]
    stretch: usize,

    #[command(flatten)]
    shares: ShareArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CommunitiesArguments {
    #[command(flatten)]
    output: OutputArguments,

    /// Where randomness starts: the same seed, the same bits.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of communities.
    #[arg(long, value_name = "N", default_value_t = CommunitiesConfig::default().classes)]
    classes: usize,

    /// Nodes, in communities of the same size.
    #[arg(long, value_name = "N", default_value_t = CommunitiesConfig::default().nodes)]
    nodes: usize,

    /// Ties of a node, on average.
    #[arg(long, value_name = "X", default_value_t = CommunitiesConfig::default().degree, allow_negative_numbers = true)]
    degree: f64,

    /// How much degrees vary: 0 hardly, 1 and more makes hubs.
    #[arg(long, value_name = "X", default_value_t = CommunitiesConfig::default().spread, allow_negative_numbers = true)]
    spread: f64,

    /// Share of the ties that leave a community.
    #[arg(long, value_name = "X", default_value_t = CommunitiesConfig::default().mixing, allow_negative_numbers = true)]
    mixing: f64,

    /// Deviation of the noise on every feature.
    #[arg(long, value_name = "X", default_value_t = CommunitiesConfig::default().noise, allow_negative_numbers = true)]
    noise: f64,

    /// Share of the nodes for training.
    #[arg(long, value_name = "SHARE", default_value_t = CommunitiesConfig::default().split.train)]
    train: f64,

    /// Share of the nodes for validation; the rest is for the test.
    #[arg(long, value_name = "SHARE", default_value_t = CommunitiesConfig::default().split.val)]
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

impl ShareArguments {
    fn split(&self) -> anyhow::Result<Ratio> {
        let known = self.train + self.val;
        if known > 1.0 {
            bail!(lpgnn::Error::Option {
                option: "train + val",
                value: known.to_string(),
                expected: "the shares sum to 1 at most".into(),
            });
        }
        Ok(Ratio { train: self.train, val: self.val, test: 1.0 - known })
    }
}
