"""Data sets from data frames of edges, nodes and graphs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._convert import RESERVED
from ._columns import DataWarning, array_of, frame_of, is_frame, is_missing
from ._dataset import Dataset
from ._graphs import build
from ._native import Error
from ._splits import SPLITS


def from_frames(
    edges: Any, nodes: Any = None, graphs: Any = None, *, directed: bool = True, name: str = "graphs"
) -> Dataset:
    """Makes a data set from data frames of pandas, Polars or Arrow, or from dictionaries of columns.

    ``edges``
        ``source`` and ``target``, the ids of nodes; ``graph`` if there are several; all other columns are features. With
        ``directed=False`` every row is an edge in both directions.
    ``nodes``
        ``id``, unique within a graph; ``graph``; ``y``, the target, or several columns ``y.NAME``; ``split``, which is
        ``train``, ``val`` or ``test``; all other columns are features. Without it, the nodes are those that edges name.
    ``graphs``
        ``graph``, and ``y``, ``y.NAME`` and ``split`` of graphs. Without it, the graphs are those that nodes name.

    These names are not case-sensitive. How columns are read is described in :func:`from_arrays`.
    """
    edge_columns = _columns(edges, "edges", ("source", "target"), ("graph",))
    node_columns = None if nodes is None else _columns(nodes, "nodes", ("id",), ("graph", "y", "split"))
    graph_columns = {} if graphs is None else _columns(graphs, "graphs", ("graph",), ("y", "split"))
    if node_columns is None:
        node_columns = _named_by_edges(edge_columns)
    place = _graph_places(edge_columns, node_columns, graph_columns)

    of_node = _graphs_of(node_columns, place, "nodes", len(_list(node_columns["id"])))
    # Nodes of a graph lie together.
    order = np.argsort(of_node, kind="stable")
    if (order != np.arange(len(order))).any():
        text = "nodes: the rows of a graph are not together, so the nodes of the data set are in another order than the rows; sort by graph"
        warnings.warn(text, DataWarning, stacklevel=2)
    ids = _list(node_columns["id"])
    number: dict[tuple[int, Any], int] = {}
    texts: set[tuple[int, str]] = set()
    for at, row in enumerate(order):
        graph, node = int(of_node[row]), ids[row]
        if (graph, node) in number:
            raise Error(f"nodes: the id {node!r} of row {row} occurs twice in its graph")
        if (graph, str(node)) in texts:
            raise Error(f"nodes: the id {node!r} of row {row} is the same text as another one of its graph")
        number[graph, node] = at
        texts.add((graph, str(node)))
    ends = _ends(edge_columns, place, number)

    features = {key: _take(column, order) for key, column in node_columns.items() if _is_feature(key)}
    edge_attr = {key: column for key, column in edge_columns.items() if _is_feature(key)}
    if not directed:
        once = ends[0] != ends[1]
        ends = np.concatenate([ends, ends[::-1][:, once]], axis=1)
        rows = np.concatenate([np.arange(once.size), np.flatnonzero(once)])
        edge_attr = {key: _take(column, rows) for key, column in edge_attr.items()}
    ignored = [key for key in graph_columns if _is_feature(key)]
    if ignored:
        text = f"graphs: the columns {', '.join(ignored)} are ignored, since graphs have no features"
        warnings.warn(text, DataWarning, stacklevel=2)
    return build(
        ends,
        batch=of_node[order],
        num_graphs=len(place),
        x=features,
        edge_attr=edge_attr,
        y=_targets({key: _take(column, order) for key, column in node_columns.items()}),
        graph_y=_targets(graph_columns),
        split=_one_split(_split(node_columns, order, "node"), _split(graph_columns, np.arange(len(place)), "graph")),
        name=name,
        names=([str(key) for key in place], [str(ids[row]) for row in order]),
    )


#: Those that name nodes and graphs.
NAMES = ("graph", "id", "source", "target")


def _columns(frame: Any, what: str, required: tuple[str, ...], others: tuple[str, ...]) -> dict[str, Any]:
    """The columns by name; those that have a meaning by the name in lower case."""
    frame = frame_of(frame, what)
    if not (is_frame(frame) or isinstance(frame, Mapping)):
        raise Error(f"{what} is a {type(frame).__name__}, but a data frame is expected")
    columns: dict[str, Any] = {}
    known = (*required, *others)
    for given in list(frame) if isinstance(frame, Mapping) else list(frame.columns):
        name = _canonical(given)
        # A target among the features would leak.
        if name in RESERVED and name not in known:
            raise Error(f"{what} has the column {given!r:.100}, but only these have a meaning there: {', '.join(known)}")
        if name in columns:
            raise Error(f"{what} has two columns {name!r}")
        columns[name] = frame[given]
    _check_meant(columns, what, known)
    for name in required:
        if name not in columns:
            raise Error(f"{what} has the columns {', '.join(map(str, columns))}, but {name} is missing")
    for name in NAMES:
        if name in columns:
            _check_names(columns[name], what, name)
    return columns


#: What others call columns that have a meaning; as features they would be misread.
OTHER_NAMES = {
    "graph": ("graphid", "graphname", "graphindex"),
    "split": ("trainmask", "valmask", "validmask", "testmask"),
}


def _check_meant(columns: Mapping[str, Any], what: str, known: tuple[str, ...]) -> None:
    """Raises an error if a column would be a feature under a name that others give to graphs or to a split."""
    for meant, others in OTHER_NAMES.items():
        if meant in known and meant not in columns:
            for name in columns:
                if str(name).lower().replace("_", "").replace("-", "").replace(" ", "") in others:
                    raise Error(f"{what} has the column {name!r}, which would be a feature: call it {meant}, or something else if it is one")
    several = next((name for name in columns if str(name).startswith("y.")), None)
    if several is not None and "y" in columns:
        raise Error(f"{what} has the columns y and {several}: with several targets, each is called y.NAME")


def _check_names(column: Any, what: str, name: str) -> None:
    """Raises an error if a row does not name its node or graph."""
    for row, value in enumerate(array_of(column, f"{what}: {name}").tolist()):
        if is_missing(value) or value == "":
            raise Error(f"{what}: row {row} has no {name}")


def _canonical(name: Any) -> Any:
    lower = name.strip().lower() if isinstance(name, str) else ""
    if lower in RESERVED:
        return lower
    return f"y.{name.strip()[2:]}" if lower.startswith("y.") else name


def _list(column: Any) -> list[Any]:
    return array_of(column, "a column of ids").tolist()


def _take(column: Any, rows: np.ndarray) -> Any:
    """Some rows of a column, whose dtype still says what it is."""
    if hasattr(column, "iloc"):
        return column.iloc[rows]
    if hasattr(column, "gather") or hasattr(column, "take"):
        return column.gather(rows) if hasattr(column, "gather") else column.take(rows)
    return array_of(column, "a column")[rows]


def _is_feature(name: str) -> bool:
    return name not in RESERVED and not str(name).startswith("y.")


def _named_by_edges(edges: dict[str, Any]) -> dict[str, Any]:
    """The nodes that edges name, in the order of their first occurrence."""
    of = _list(edges["graph"]) if "graph" in edges else [None] * len(_list(edges["source"]))
    pairs = zip(of, _list(edges["source"]), _list(edges["target"]))
    found = dict.fromkeys(key for graph, source, target in pairs for key in ((graph, source), (graph, target)))
    nodes = {"id": np.array([node for _, node in found], dtype=object)}
    return nodes | ({"graph": np.array([graph for graph, _ in found], dtype=object)} if "graph" in edges else {})


def _graph_places(edges: dict[str, Any], nodes: dict[str, Any], graphs: dict[str, Any]) -> dict[Any, int]:
    """The number of every graph, by its name."""
    if graphs:
        names = _list(graphs["graph"])
    elif "graph" in nodes:
        names = list(dict.fromkeys(_list(nodes["graph"])))
    elif "graph" in edges:
        raise Error("edges has a column graph, but nodes has none")
    else:
        names = [0]
    place = {name: at for at, name in enumerate(names)}
    if len(place) < len(names):
        raise Error("graphs: a graph occurs twice")
    return place


def _graphs_of(columns: dict[str, Any], place: dict[Any, int], what: str, rows: int) -> np.ndarray:
    """The number of the graph of every row."""
    if "graph" not in columns:
        if len(place) > 1:
            raise Error(f"{what} has no column graph, but there are {len(place)} graphs")
        return np.zeros(rows, dtype=np.int64)
    names = _list(columns["graph"])
    unknown = next((name for name in names if name not in place), None)
    if unknown is not None:
        raise Error(f"{what} names a graph {unknown!r}, which graphs or nodes do not have")
    return np.array([place[name] for name in names], dtype=np.int64)


def _ends(edges: dict[str, Any], place: dict[Any, int], number: dict[tuple[int, Any], int]) -> np.ndarray:
    """Edges by the numbers of their nodes."""
    sources, targets = _list(edges["source"]), _list(edges["target"])
    of = _graphs_of(edges, place, "edges", len(sources)).tolist()
    ends = np.zeros((2, len(of)), dtype=np.int64)
    for row, (graph, *ids) in enumerate(zip(of, sources, targets)):
        for end, node in enumerate(ids):
            at = number.get((graph, node))
            if at is None:
                raise Error(f"edges: row {row} names node {node!r}, which nodes do not have in that graph")
            ends[end, row] = at
    return ends


def _targets(columns: dict[str, Any]) -> Any:
    several = {name.removeprefix("y."): column for name, column in columns.items() if str(name).startswith("y.")}
    return several or columns.get("y")


def _split(columns: dict[str, Any], order: np.ndarray, level: str) -> dict[str, Any] | None:
    if "split" not in columns:
        return None
    names = array_of(columns["split"], "split")[order]
    known = [each for each in names.tolist() if not is_missing(each) and each != ""]
    unknown = next((each for each in known if each not in SPLITS), None)
    if unknown is not None:
        raise Error(f"the column split has {unknown!r:.100}, but train, val or test is expected")
    return {"level": level, **{each: np.flatnonzero(names == each) for each in SPLITS}}


def _one_split(of_nodes: dict[str, Any] | None, of_graphs: dict[str, Any] | None) -> dict[str, Any] | None:
    if of_nodes is not None and of_graphs is not None:
        raise Error("nodes has a column split, and so has graphs: split one or the other")
    return of_nodes or of_graphs
