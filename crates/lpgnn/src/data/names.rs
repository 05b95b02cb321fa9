use std::borrow::Cow;

/// The names of graphs and nodes in the data.
///
/// There are none if they are just numbered, nodes within their graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Names {
    graphs: Option<Vec<String>>,
    nodes: Option<Vec<String>>,
}

impl Names {
    /// One name per graph and per node, if there are any; graphs start at these nodes.
    pub(super) fn new(
        graphs: Option<Vec<String>>,
        nodes: Option<Vec<String>>,
        node_starts: &[usize],
    ) -> Self {
        let plain = |names: &[String], numbers: &mut dyn Iterator<Item = usize>| {
            names.iter().zip(numbers).all(|(name, number)| *name == number.to_string())
        };
        let within = || node_starts.windows(2).flat_map(|ends| 0..ends[1] - ends[0]);
        Self {
            graphs: graphs.filter(|names| !plain(names, &mut (0..))),
            nodes: nodes.filter(|names| !plain(names, &mut within())),
        }
    }

    pub(super) fn graph(&self, graph: usize) -> Option<&str> {
        self.graphs.as_ref().map(|names| &names[graph][..])
    }

    pub(super) fn node(&self, node: usize) -> Option<&str> {
        self.nodes.as_ref().map(|names| &names[node][..])
    }

    pub(super) fn are_there(&self) -> bool {
        self.graphs.is_some() || self.nodes.is_some()
    }
}

/// A name or, without one, a number.
pub(super) fn name_or(name: Option<&str>, number: usize) -> Cow<'_, str> {
    name.map_or_else(|| Cow::Owned(number.to_string()), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_no_names() {
        let own = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        let starts = [0, 2, 3];
        let names = Names::new(own(&["0", "1"]), own(&["0", "1", "0"]), &starts);
        assert_eq!(names, Names::default());
        let names = Names::new(own(&["1", "0"]), own(&["0", "1", "2"]), &starts);
        assert_eq!((names.graph(0), names.node(2)), (Some("1"), Some("2")));
    }
}
