//! A graph of a file, before its attributes become columns.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::text::quote;

/// A graph.
#[derive(Default)]
pub(super) struct GraphRecord {
    pub(super) directed: bool,
    pub(super) multigraph: bool,
    pub(super) attributes: Record,
    pub(super) nodes: Option<Vec<Record>>,
    pub(super) edges: Vec<Record>,
}

impl GraphRecord {
    /// What else there is in the graph is ignored.
    pub(super) fn read<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut graph = Self::default();
        let mut seen = vec![];
        while let Some(key) = map.next_key::<Box<str>>()? {
            let key = &*key;
            match key {
                "directed" => graph.directed = map.next_value()?,
                "multigraph" => graph.multigraph = map.next_value()?,
                "graph" => graph.attributes = map.next_value::<Loose>()?.0,
                "nodes" => graph.nodes = Some(map.next_value()?),
                "edges" | "links" => graph.edges = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            }
            let key = if key == "links" { "edges" } else { key };
            if seen.contains(&key.to_owned()) {
                return Err(A::Error::custom(format_args!("a graph has two lists of {key}")));
            }
            seen.push(key.to_owned());
        }
        Ok(graph)
    }
}

/// The attributes of a graph, a node or an edge, in the order of the file.
#[derive(Default)]
pub(super) struct Record(Vec<(Box<str>, Cell)>);

impl Record {
    pub(super) fn get(&self, name: &str) -> Option<&Cell> {
        self.0.iter().find(|(own, _)| **own == *name).map(|(_, cell)| cell)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Cell)> {
        self.0.iter().map(|(name, cell)| (&**name, cell))
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Record;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the attributes of a node or an edge")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
                let mut record = vec![];
                while let Some(entry) = map.next_entry()? {
                    record.push(entry);
                }
                Ok(Record(record))
            }
        }
        source.deserialize_map(Entries)
    }
}

/// The attributes of a graph: those of another form than [`Cell`] are ignored, unless they have a
/// meaning.
struct Loose(Record);

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Loose;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the attributes of a graph")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose, A::Error> {
                let mut record = vec![];
                while let Some(name) = map.next_key::<Box<str>>()? {
                    let known = matches!(&*name, "name" | "split") || super::Targets::is_one(&name);
                    let lower = name.to_ascii_lowercase();
                    if known {
                        record.push((name, map.next_value()?));
                    } else if lower == "split" || super::Targets::is_one(&lower) {
                        return Err(serde::de::Error::custom(super::attributes::capital(&name)));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Loose(Record(record)))
            }
        }
        source.deserialize_map(Entries)
    }
}

/// A value.
pub(super) enum Cell {
    Null,
    Boolean(bool),
    Integer(i64),
    Real(f64),
    Text(Box<str>),
    List(Vec<Cell>),
}

impl Cell {
    /// What an id or an end of an edge is called: whether it is a text, and its letters.
    pub(super) fn id(&self) -> Option<(bool, Box<str>)> {
        match self {
            Self::Text(text) => Some((true, text.clone())),
            Self::Integer(_) | Self::Real(_) => Some((false, self.to_string().into())),
            // The nodes of NetworkX's grids are pairs.
            Self::List(list) if list.len() <= MOST && list.iter().all(Self::is_number) => {
                Some((false, self.to_string().into()))
            }
            Self::List(_) | Self::Null | Self::Boolean(_) => None,
        }
    }

    /// Nothing, or a text without letters.
    pub(super) fn is_unknown(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            cell => matches!(cell, Self::Null),
        }
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Integer(_) | Self::Real(_))
    }

    pub(super) fn integer(&self) -> Option<i64> {
        if let Self::Integer(x) = self { Some(*x) } else { None }
    }
}

/// As in JSON, cut short.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(x) => write!(f, "{x}"),
            Self::Integer(x) => write!(f, "{x}"),
            Self::Real(x) => write!(f, "{x:?}"),
            Self::Text(text) => f.write_str(&quote(text.as_bytes())),
            Self::List(cells) => {
                f.write_str("[")?;
                for (place, cell) in cells.iter().enumerate().take(MOST) {
                    write!(f, "{}{cell}", if place > 0 { ", " } else { "" })?;
                }
                f.write_str(if cells.len() > MOST { ", …]" } else { "]" })
            }
        }
    }
}

/// How many entries of a list are shown, and how many a list that is an id has at most.
const MOST: usize = 8;

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Value;
        impl<'de> Visitor<'de> for Value {
            type Value = Cell;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text, true or false, null, or a list of numbers")
            }

            fn visit_unit<E>(self) -> Result<Cell, E> {
                Ok(Cell::Null)
            }

            fn visit_bool<E>(self, x: bool) -> Result<Cell, E> {
                Ok(Cell::Boolean(x))
            }

            fn visit_i64<E>(self, x: i64) -> Result<Cell, E> {
                Ok(Cell::Integer(x))
            }

            fn visit_u64<E>(self, x: u64) -> Result<Cell, E> {
                Ok(i64::try_from(x).map_or(Cell::Real(x as f64), Cell::Integer))
            }

            fn visit_f64<E>(self, x: f64) -> Result<Cell, E> {
                Ok(Cell::Real(x))
            }

            fn visit_str<E>(self, text: &str) -> Result<Cell, E> {
                Ok(Cell::Text(text.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Cell, A::Error> {
                let mut cells = vec![];
                while let Some(cell) = list.next_element()? {
                    cells.push(cell);
                }
                Ok(Cell::List(cells))
            }
        }
        source.deserialize_any(Value)
    }
}
