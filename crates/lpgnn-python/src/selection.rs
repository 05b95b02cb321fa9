use lpgnn::Error;
use lpgnn::data::{Dataset, DatasetParts, Level, Split, TargetColumn};

/// Some graphs of a data set, in this order, with their part of its split; without a training part there
/// is no split.
pub(crate) fn select(data: &Dataset, graphs: &[usize]) -> Result<Dataset, Error> {
    let (mut node_starts, mut nodes) = (vec![0], vec![]);
    let (mut edges, mut edge_rows) = (vec![], vec![]);
    let before = |node: usize| data.edges().partition_point(|&(u, _)| (u as usize) < node);
    for &graph in graphs {
        let (from, to) = (data.node_starts()[graph], data.node_starts()[graph + 1]);
        let place = |node: u32| u32::try_from(node as usize - from + nodes.len());
        for row in before(from)..before(to) {
            let (u, v) = data.edges()[row];
            let too_large = |_| Error::TooLarge;
            edges.push((place(u).map_err(too_large)?, place(v).map_err(too_large)?));
            edge_rows.push(row);
        }
        nodes.extend(from..to);
        node_starts.push(nodes.len());
    }
    let owned = |name: Option<&str>| name.map(str::to_owned);
    let graph_names = graphs.iter().map(|&graph| owned(data.graph_name(graph))).collect();
    let node_names = nodes.iter().map(|&node| owned(data.node_name(node))).collect();
    let selected = Dataset::new(DatasetParts {
        name: data.name().to_owned(),
        node_starts,
        edges,
        edge_features: data.edge_features().select(&edge_rows),
        node_features: data.node_features().select(&nodes),
        node_targets: data.node_targets().map(|targets| targets.select(&nodes)),
        graph_targets: data.graph_targets().map(|targets| targets.select(graphs)),
        split: data.split().and_then(|split| {
            let rows = if split.level == Level::Node { &nodes[..] } else { graphs };
            part_of_split(split, rows, split.level.count(data))
        }),
    })?;
    let weights = data.weights().map(|weights| {
        weights.select(if weights.level() == Level::Node { &nodes } else { graphs })
    });
    let selected = selected.with_names(graph_names, node_names)?.with_weights(weights)?;
    Ok(if data.reads_all() { selected.with_chosen_features() } else { selected })
}

fn part_of_split(split: &Split, rows: &[usize], count: usize) -> Option<Split> {
    let part = |members: &[usize]| {
        let mut is_member = vec![false; count];
        members.iter().for_each(|&member| is_member[member] = true);
        (0..rows.len()).filter(|&place| is_member[rows[place]]).collect::<Vec<usize>>()
    };
    let Split { level, train, val, test } = split;
    let part = Split { level: *level, train: part(train), val: part(val), test: part(test) };
    (!part.train.is_empty()).then_some(part)
}

/// The graphs of all data sets, one after the other, with names and split if all have them.
pub(crate) fn concat(all: &[&Dataset]) -> Result<Dataset, Error> {
    let joined = match all {
        [] => return Err(Error::NoGraphs),
        [one] => return Ok((*one).clone()),
        // Halves, so that no graph is copied more often than there are halvings.
        _ => {
            let (first, second) = all.split_at(all.len() / 2);
            concat(first)?.join(&concat(second)?)?
        }
    };
    let graph_names = all.iter().flat_map(|data| (0..data.graphs()).map(|g| data.graph_name(g)));
    let node_names = all.iter().flat_map(|data| (0..data.nodes()).map(|v| data.node_name(v)));
    let owned = |name: Option<&str>| name.map(str::to_owned);
    let joined = joined.with_names(
        graph_names.map(owned).collect::<Option<_>>(),
        node_names.map(owned).collect::<Option<_>>(),
    )?;
    let all_chosen = all.iter().all(|data| data.reads_all());
    let joined = if all_chosen { joined.with_chosen_features() } else { joined };
    joined.with_split(joined_split(all))
}

fn joined_split(all: &[&Dataset]) -> Option<Split> {
    let level = all.first()?.split()?.level;
    let mut joined = Split { level, train: vec![], val: vec![], test: vec![] };
    let mut shift = 0;
    for data in all {
        let split = data.split().filter(|split| split.level == level)?;
        let shifted = |members: &[usize]| members.iter().map(|at| at + shift).collect::<Vec<_>>();
        joined.train.extend(shifted(&split.train));
        joined.val.extend(shifted(&split.val));
        joined.test.extend(shifted(&split.test));
        shift += level.count(data);
    }
    Some(joined)
}

/// How many targets are known, of how many.
pub(crate) fn known(targets: &TargetColumn) -> (usize, usize) {
    let rows = targets.rows();
    ((0..rows).filter(|&row| targets.is_known(row)).count(), rows)
}
