"""Data sets from files and from other libraries."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _native
from ._columns import array_of, check_integer, class_values, feature_columns, rows_of, shape_of, target_column
from ._native import Error

#: ``"node"`` or ``"graph"``, and the indices of the train, val and test splits.
SplitTuple = tuple[str, list[int], list[int], list[int]]
SPLITS = ("train", "val", "test")


class Dataset:
    """Graphs with features of their nodes and edges, and targets to predict."""

    __slots__ = ("_native",)

    def __init__(self, native: _native.Dataset) -> None:
        self._native = native

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self._native.name

    @property
    def num_graphs(self) -> int:
        """Number of graphs, also ``len(data)``."""
        return self._native.graphs

    @property
    def num_nodes(self) -> int:
        """Number of nodes, over all graphs."""
        return self._native.nodes

    @property
    def num_edges(self) -> int:
        """Number of directed edges: an undirected edge counts as two."""
        return self._native.edges

    @property
    def duplicates(self) -> tuple[int, int]:
        """How many edges were given more than once and count once, and how many of them had different features."""
        return self._native.duplicates

    @property
    def ptr(self) -> np.ndarray:
        """The first node of every graph, followed by the number of nodes, as in a PyG ``Batch``."""
        return self._native.node_starts.astype(np.int64)

    @property
    def edge_index(self) -> np.ndarray:
        """Every edge once as a column ``(source, target)``, in ascending order; nodes are numbered across all graphs."""
        return self._native.edge_index

    @property
    def split(self) -> dict[str, Any] | None:
        """The split that comes with the data: ``level``, ``train``, ``val`` and ``test``."""
        split = self._native.split
        return None if split is None else _split_dict(split)

    @property
    def graph_names(self) -> list[str] | None:
        """The names of the graphs in the tables they were read from; ``None`` if they are just numbered."""
        return self._native.graph_names

    @property
    def node_names(self) -> list[str] | None:
        """The ids of the nodes in the tables they were read from; ``None`` if they are just numbered."""
        return self._native.node_names

    @property
    def node_classes(self) -> np.ndarray | None:
        """The classes of nodes, if node classes are to be predicted."""
        return class_values(self._native.node_classes)

    @property
    def graph_classes(self) -> np.ndarray | None:
        """The classes of graphs, if graph classes are to be predicted."""
        return class_values(self._native.graph_classes)

    def info(self) -> dict[str, Any]:
        """Statistics and warnings: sizes, degrees, features, targets, split."""
        return json.loads(self._native.info())

    def folds(
        self, n_splits: int = 10, *, seed: int = 0, level: str | None = None, val: int | None = None
    ) -> list[dict[str, Any]]:
        """Stratified folds for cross-validation, to be passed to ``train(split=…)`` and ``evaluate``.

        ``level`` is ``"graph"`` or ``"node"``; the default is to split graphs unless there is only one. ``val=n``, with
        ``n`` of at least 2, holds out one in ``n`` of the training data for validation, that is, to choose the epoch.
        """
        check_integer("n_splits", n_splits, 2)
        check_integer("seed", seed, 0)
        if val is not None:
            check_integer("val", val, 2)
        level = level or self._level()
        return [_split_dict(split) for split in self._native.folds(level, n_splits, seed, val)]

    def write(self, folder: str | os.PathLike[str], format: str = "tables", *, force: bool = False) -> None:
        """Writes the graphs to a folder, as ``"tables"`` or ``"tu"``, for :func:`read` and the command line.

        Whatever the format cannot represent is reported as a warning. ``force`` replaces an existing data set.
        """
        for loss in self._native.write(os.fsdecode(folder), format, force):
            warnings.warn(loss, stacklevel=2)

    def _level(self) -> str:
        return _level(len(self), self._native.has_node_targets)

    def _split_tuple(self, split: Mapping[str, Any]) -> SplitTuple:
        return split_tuple(split, len(self), self.num_nodes, self._level())

    def __len__(self) -> int:
        """Number of graphs."""
        return self._native.graphs

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_parts, (self._native.parts(),)

    def __repr__(self) -> str:
        return f"<lpgnn.Dataset {self.name}: {len(self)} graphs, {self.num_nodes} nodes, {self.num_edges} edges>"


def read(data: str | os.PathLike[str], *, format: str | None = None) -> Dataset:
    """Reads the data set at a path, or the one with that name.

    A path is a folder of the TU collection or its zip file, a folder of tables, a citation graph, a GIN text file or
    a MATLAB file of the method's authors; ``format`` overrides the automatic recognition. A name is that of a built-in
    data set (``clique``, ``subgraph``, ``chains``, ``karate``, …) or of one that ``lpgnn data fetch`` has downloaded.
    """
    return Dataset(_native.Dataset.read(os.fsdecode(data), format))


def from_arrays(
    edge_index: Any,
    *,
    batch: Any = None,
    num_graphs: int | None = None,
    num_nodes: int | None = None,
    x: Any = None,
    edge_attr: Any = None,
    y: Any = None,
    graph_y: Any = None,
    split: Mapping[str, Any] | None = None,
    name: str = "graphs",
) -> Dataset:
    """Makes a data set from arrays, data frames or tensors.

    ``edge_index``
        Edges ``(source, target)`` as an integer array of shape ``[2, edges]``; an undirected edge is two of them. Nodes are
        numbered across all graphs. An edge that is given more than once counts once, with the features of its first
        occurrence. The nodes at both ends are neighbours of each other: a model can tell the direction only from
        ``edge_attr``.
    ``batch``
        The graph of every node, in ascending order from 0; without it, all nodes belong to one graph.
    ``num_graphs``, ``num_nodes``
        How many there are: needed if the last graphs have no nodes, or if the number of nodes does not follow from
        ``batch``, ``x`` or ``y``.
    ``x``, ``edge_attr``
        Features of nodes and edges: an array or a data frame with a row each, or a dictionary of arrays by name. Float
        columns are real values; integers, booleans and strings are categories. SciPy's sparse matrices stay sparse, and so
        does a wide array that is mostly zero. The transitions ``gnn-sum``, ``gnn-mean`` and ``gnn-normalized`` use edge
        features.
    ``y``, ``graph_y``
        Targets of nodes and of graphs; if both are given, graphs are predicted. Integers, booleans and strings are classes,
        floats are real values. ``None``, NaN and masked entries are unknown.
    ``split``
        A dictionary with ``train``, ``val`` and ``test``: indices or masks of graphs or, with ``level="node"``, of nodes.
    """
    edges = array_of(edge_index, "edge_index")
    if edges.size == 0:
        edges = np.zeros((2, 0), dtype=np.int64)
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise Error(f"edge_index is {shape_of(edges)}, but integers of shape [2, edges] are expected")
    nodes = _node_count(edges, {"num_nodes": num_nodes, "batch": rows_of(batch, "batch"), "x": rows_of(x, "x"), "y": rows_of(y, "y")})
    starts = _node_starts(batch, nodes, num_graphs)
    if edges.size and (edges.min() < 0 or edges.max() >= nodes):
        edge = int(np.argmax(((edges < 0) | (edges >= nodes)).any(axis=0)))
        raise Error(f"edge {edge} joins nodes {edges[:, edge].tolist()}, but there are {nodes} nodes")
    graphs = len(starts) - 1
    native = _native.Dataset.of_parts(
        name,
        starts.tolist(),
        np.ascontiguousarray(edges, dtype=np.uint32),
        feature_columns(x, "x", nodes),
        feature_columns(edge_attr, "edge_attr", edges.shape[1]),
        target_column(y, "y", nodes),
        target_column(graph_y, "graph_y", graphs),
        None if split is None else split_tuple(split, graphs, nodes, _level(graphs, y is not None)),
        (None, None),
        True,
    )
    return Dataset(native)


def _node_count(edges: np.ndarray, told: dict[str, int | None]) -> int:
    """The number of nodes that the arguments agree on, or else that the edges need."""
    told = {what: count for what, count in told.items() if count is not None}
    if len(set(told.values())) > 1:
        given = ", ".join(f"{what} has {count}" for what, count in told.items())
        raise Error(f"the number of nodes is ambiguous: {given}")
    count = next(iter(told.values()), int(edges.max()) + 1 if edges.size else 0)
    check_integer("num_nodes", count, 0)
    return count


def _node_starts(batch: Any, nodes: int, num_graphs: int | None) -> np.ndarray:
    """The first node of every graph, and the number of nodes."""
    if num_graphs is not None:
        check_integer("num_graphs", num_graphs, 0)
    if batch is None:
        if num_graphs not in (None, 1):
            raise Error(f"num_graphs is {num_graphs}, but batch, the graph of every node, is missing")
        return np.array([0, nodes])
    of = array_of(batch, "batch")
    if of.size == 0:
        of = of.astype(np.int64)
    if of.ndim != 1 or of.dtype.kind not in "iu" or (of[1:] < of[:-1]).any() or (of < 0).any():
        raise Error("batch has to be one integer per node, in ascending order from 0")
    last = int(of[-1]) + 1 if of.size else 0
    count = last if num_graphs is None else num_graphs
    if count < last:
        raise Error(f"num_graphs is {count}, but batch has a graph {last - 1}")
    return np.searchsorted(of, np.arange(count + 1))


def from_networkx(
    graphs: Any,
    *,
    x: str | Sequence[str] | None = None,
    edge_attr: str | Sequence[str] | None = None,
    y: str | None = None,
    graph_y: str | Iterable[Any] | None = None,
    split: Mapping[str, Any] | None = None,
    name: str = "graphs",
) -> Dataset:
    """Makes a data set from one NetworkX graph or several.

    ``x`` and ``edge_attr`` are the names of the node and edge attributes to use as features, ``y`` is that of the node
    attribute to predict. ``graph_y`` is the target of graphs: one value each, or the name of a graph attribute. Nodes keep
    NetworkX's order, graph after graph. An undirected edge becomes two directed ones; of parallel edges only the first
    counts. Everything else is as in :func:`from_arrays`.
    """
    graphs = [graphs] if hasattr(graphs, "nodes") else list(graphs)
    batch: list[int] = []
    edges: list[tuple[int, int]] = []
    node_data: list[Mapping[str, Any]] = []
    edge_data: list[Mapping[str, Any]] = []
    for number, graph in enumerate(graphs):
        place = {node: len(batch) + at for at, node in enumerate(graph.nodes)}
        batch += [number] * len(place)
        node_data += [graph.nodes[node] for node in graph.nodes]
        for u, v, data in graph.edges(data=True):
            both = [(place[u], place[v])]
            if not graph.is_directed() and u != v:
                both.append((place[v], place[u]))
            edges += both
            edge_data += [data] * len(both)
    if isinstance(graph_y, str):
        graph_y = _attribute([graph.graph for graph in graphs], graph_y, "graph")
    elif graph_y is not None and not isinstance(graph_y, Iterable):
        raise Error(f"graph_y is {graph_y!r}, but the name of an attribute or one value per graph is expected")

    def columns(names: str | Sequence[str] | None, rows: list[Mapping[str, Any]], what: str) -> dict[str, Any]:
        names = [names] if isinstance(names, str) else names or []
        return {each: _attribute(rows, each, what) for each in names}

    return from_arrays(
        np.array(edges, dtype=np.int64).reshape(-1, 2).T,
        batch=np.array(batch, dtype=np.int64),
        num_graphs=len(graphs),
        x=columns(x, node_data, "node"),
        edge_attr=columns(edge_attr, edge_data, "edge"),
        y=None if y is None else _attribute(node_data, y, "node"),
        graph_y=None if graph_y is None else list(graph_y),
        split=split,
        name=name,
    )


def from_pyg(data: Any, *, split: Mapping[str, Any] | None = None, name: str = "graphs") -> Dataset:
    """Makes a data set from a PyTorch Geometric ``Data`` or ``Batch``, or from several ``Data``, such as a ``Dataset``.

    If ``y`` has a row per node of every graph, nodes are predicted, otherwise graphs. ``train_mask``, ``val_mask`` and
    ``test_mask`` become the split. Everything else is as in :func:`from_arrays`.
    """
    single = hasattr(data, "edge_index") or hasattr(data, "num_nodes")
    graphs = [
        graph
        for each in ([data] if single else data)
        for graph in (each.to_data_list() if hasattr(each, "to_data_list") else [each])
    ]
    if not graphs:
        raise Error("there are no graphs")
    if any(hasattr(graph, "node_types") for graph in graphs):
        raise Error("heterogeneous graphs are not supported; `to_homogeneous()` converts them")
    counts = [int(graph.num_nodes) for graph in graphs]
    starts = np.concatenate([[0], np.cumsum(counts)])

    def edges_of(graph: Any) -> np.ndarray:
        edges = getattr(graph, "edge_index", None)
        edges = np.zeros((2, 0)) if edges is None else array_of(edges, "edge_index")
        return edges if edges.size else np.zeros((2, 0), dtype=np.int64)

    def per_graph(what: str) -> list[np.ndarray] | None:
        found = [getattr(graph, what, None) for graph in graphs]
        if all(each is None for each in found):
            return None
        if any(each is None for each in found):
            raise Error(f"graph {[each is None for each in found].index(True)} has no {what}, but others have one")
        return [np.atleast_1d(array_of(each, what)) for each in found]

    def together(what: str) -> np.ndarray | None:
        found = per_graph(what)
        if found is not None and len({each.shape[1:] for each in found}) > 1:
            raise Error(f"{what} does not have the same number of columns in every graph")
        return None if found is None else np.concatenate(found)

    y, graph_y = per_graph("y"), None
    if y is not None:
        per_node = all(each.shape[0] == count for each, count in zip(y, counts))
        if not per_node or (len(graphs) > 1 and set(counts) == {1}):
            # One value, or a row of them.
            y, graph_y = None, [each.reshape(1, -1) for each in y]
            if len({each.shape for each in graph_y}) > 1:
                raise Error("y has neither a row per node nor the same number of values for every graph")
    if split is None and (masks := _masks(per_graph)):
        split = {**masks, "level": "node"}
    return from_arrays(
        np.concatenate([edges_of(graph) + start for graph, start in zip(graphs, starts)], axis=1),
        batch=np.repeat(np.arange(len(graphs)), counts),
        num_graphs=len(graphs),
        x=together("x"),
        edge_attr=together("edge_attr"),
        y=None if y is None else np.concatenate(y),
        graph_y=None if graph_y is None else np.concatenate(graph_y),
        split=split,
        name=name,
    )


def _masks(per_graph: Any) -> dict[str, np.ndarray]:
    found = {}
    for name in SPLITS:
        what = f"{name}_mask"
        if (masks := per_graph(what)) is not None:
            if masks[0].ndim != 1:
                raise Error(f"{what} is {shape_of(masks[0])}: choose one, as in data.{what} = data.{what}[:, 0]")
            found[name] = np.concatenate(masks).astype(bool)
    return found


def split_tuple(split: Mapping[str, Any], graphs: int, nodes: int, level: str) -> SplitTuple:
    """A split as the extension module takes it."""
    if not isinstance(split, Mapping):
        raise Error("a split has to be a dictionary with train, val and test")
    unknown = [key for key in split if key not in ("level", *SPLITS)]
    if unknown:
        raise Error(f"a split has {unknown}, but level, train, val and test are expected")
    level = split.get("level") or level
    if level not in ("node", "graph"):
        raise Error(f"the level of a split is {level!r}, but \"node\" or \"graph\" is expected")
    count = graphs if level == "graph" else nodes
    return level, *(indices(split.get(name, []), name, count, level) for name in SPLITS)


def indices(found: Any, what: str, count: int, level: str) -> list[int]:
    """The indices of nodes or graphs, from indices or from a mask."""
    found = array_of(list(found) if isinstance(found, range) else found, what)
    if found.dtype == bool or (found.dtype == np.uint8 and found.shape == (count,) and found.max(initial=0) <= 1):
        if found.shape != (count,):
            raise Error(f"the mask {what} is {shape_of(found)}, but one entry per {level} is expected: {count}")
        return np.flatnonzero(found).tolist()
    if found.size == 0:
        return []
    if found.ndim != 1 or found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= count:
        raise Error(f"{what} has to be a mask or indices of {level}s, from 0 and below {count}")
    return found.tolist()


def _of_parts(parts: tuple[Any, ...]) -> Dataset:
    return Dataset(_native.Dataset.of_parts(*parts))


def _split_dict(split: SplitTuple) -> dict[str, Any]:
    level, *found = split
    arrays = (np.array(each, dtype=np.int64) for each in found)
    return {"level": level, **dict(zip(SPLITS, arrays))}


def _level(graphs: int, of_nodes: bool) -> str:
    return "node" if graphs == 1 and of_nodes else "graph"


def _attribute(rows: Sequence[Mapping[str, Any]], name: str, what: str) -> list[Any]:
    missing = next((number for number, row in enumerate(rows) if name not in row), None)
    if missing is not None:
        raise Error(f"{what} {missing} has no attribute {name}")
    return [row[name] for row in rows]
