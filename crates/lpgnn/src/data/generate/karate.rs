use crate::Error;
use crate::data::{Categories, Dataset, DatasetParts, FeatureColumns, Level, Split, TargetColumn};

/// Zachary's karate club: 34 members, 78 undirected edges, and the two factions it split into.
///
/// The feature of a member is its number, one-hot. Two of them are for training, the leaders of the
/// factions: the instructor (member 1, “Mr. Hi”) and the administrator (member 34, “Officer”). The
/// other 32 are for testing.
///
/// W. W. Zachary, *An information flow model for conflict and fission in small groups*, Journal of
/// Anthropological Research 33 (1977).
///
/// # Errors
///
/// None: the data are part of the program.
pub fn karate_club() -> Result<Dataset, Error> {
    let edges: Vec<(u32, u32)> = TIES
        .iter()
        .zip(1_u32..)
        .flat_map(|(others, v)| others.iter().flat_map(move |&u| [(v - 1, u - 1), (u - 1, v - 1)]))
        .collect();
    let members: Vec<i64> = (1..=MEMBERS).collect();
    let factions: Vec<&str> = members
        .iter()
        .map(|member| if MR_HI.contains(member) { "Mr. Hi" } else { "Officer" })
        .collect();
    let nodes = members.len();
    Dataset::new(DatasetParts {
        name: "karate".into(),
        node_starts: vec![0, nodes],
        edge_features: FeatureColumns::none(edges.len()),
        edges,
        node_features: FeatureColumns::none(nodes)
            .with_categories(Categories::from_integers("member", &members))?,
        node_targets: Some(TargetColumn::Classes(Categories::from_text("faction", &factions))),
        graph_targets: None,
        split: Some(Split {
            level: Level::Node,
            train: vec![0, nodes - 1],
            val: vec![],
            test: (1..nodes - 1).collect(),
        }),
    })
}

const MEMBERS: i64 = 34;

/// Members of Mr. Hi's faction after the fission; all others joined the officers.
const MR_HI: [i64; 17] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 17, 18, 20, 22];

/// For members 1, 2, …: their neighbours with a higher number.
const TIES: [&[u32]; 33] = [
    &[2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32],
    &[3, 4, 8, 14, 18, 20, 22, 31],
    &[4, 8, 9, 10, 14, 28, 29, 33],
    &[8, 13, 14],
    &[7, 11],
    &[7, 11, 17],
    &[17],
    &[],
    &[31, 33, 34],
    &[34],
    &[],
    &[],
    &[],
    &[34],
    &[33, 34],
    &[33, 34],
    &[],
    &[],
    &[33, 34],
    &[34],
    &[33, 34],
    &[],
    &[33, 34],
    &[26, 28, 30, 33, 34],
    &[26, 28, 32],
    &[32],
    &[30, 34],
    &[34],
    &[32, 34],
    &[33, 34],
    &[33, 34],
    &[33, 34],
    &[34],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Statistics;

    #[test]
    fn it_is_zachary_s_club() {
        let club = karate_club().unwrap();
        let found = Statistics::of(&club);
        assert_eq!((found.graphs, found.nodes, found.edges), (1, 34, 2 * 78));
        assert!(found.undirected);
        assert_eq!(found.warnings, crate::data::Warnings::default());
        let mut degrees = vec![0; 34];
        club.edges().iter().for_each(|&(u, _)| degrees[u as usize] += 1);
        assert_eq!(
            degrees,
            [
                16, 9, 10, 6, 3, 4, 4, 4, 5, 2, 3, 1, 2, 5, 2, 2, 2, 2, 2, 3, 2, 2, 2, 5, 3, 3, 2,
                4, 3, 4, 4, 6, 12, 17
            ]
        );
    }

    #[test]
    fn the_factions_are_equal_and_their_heads_are_known() {
        let club = karate_club().unwrap();
        let Some(TargetColumn::Classes(factions)) = club.node_targets() else { panic!() };
        assert_eq!(factions.values(), ["Mr. Hi", "Officer"]);
        assert_eq!(factions.counts(), [17, 17]);
        let heads: Vec<_> =
            club.split().unwrap().train.iter().map(|&v| factions.value(v).unwrap()).collect();
        assert_eq!(heads, ["Mr. Hi", "Officer"]);
    }
}
