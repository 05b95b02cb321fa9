"""From files and from other libraries to data sets."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _native
from ._columns import array_of, labels, rows_of, said, shape_of, target, whole
from ._native import Error

Parts = tuple[str, list[int], list[int], list[int]]


class Dataset:
    """Graphs with what is said of their nodes and edges, and what is to be predicted."""

    __slots__ = ("_native",)

    def __init__(self, native: _native.Dataset) -> None:
        self._native = native

    @property
    def name(self) -> str:
        """How it is called."""
        return self._native.name

    @property
    def nodes(self) -> int:
        """Number of nodes, over all graphs."""
        return self._native.nodes

    @property
    def edges(self) -> int:
        """Number of edges, each direction of an edge counting as one."""
        return self._native.edges

    @property
    def duplicates(self) -> tuple[int, int]:
        """How many edges were given more than once and count once, and how many of them had other features."""
        return self._native.duplicates

    @property
    def node_starts(self) -> np.ndarray:
        """The first node of every graph, and the number of nodes."""
        return self._native.node_starts.astype(np.int64)

    @property
    def edge_index(self) -> np.ndarray:
        """Every edge once as a column ``(from, to)``, in ascending order; nodes are numbered through all graphs."""
        return self._native.edge_index

    @property
    def split(self) -> dict[str, Any] | None:
        """The split that comes with the data: ``level``, ``train``, ``val`` and ``test``."""
        parts = self._native.split
        return None if parts is None else _split_of(parts)

    @property
    def graph_names(self) -> list[str] | None:
        """What graphs are called in the tables they were read from; none if by their numbers."""
        return self._native.graph_names

    @property
    def node_names(self) -> list[str] | None:
        """The ids of nodes in the tables they were read from; none if they are counted."""
        return self._native.node_names

    @property
    def node_classes(self) -> np.ndarray | None:
        """The classes of nodes, if nodes have classes to predict."""
        return labels(self._native.node_classes)

    @property
    def graph_classes(self) -> np.ndarray | None:
        """The classes of graphs, if graphs have classes to predict."""
        return labels(self._native.graph_classes)

    def info(self) -> dict[str, Any]:
        """What the set holds, and what is odd about it: sizes, degrees, features, targets, split."""
        return json.loads(self._native.info())

    def folds(
        self, count: int = 10, *, seed: int = 0, level: str | None = None, val: int | None = None
    ) -> list[dict[str, Any]]:
        """Splits for a cross-validation, every class in every test part; for ``train(split=…)`` and ``evaluate``.

        ``level`` is ``"graph"`` or ``"node"``: graphs are divided unless there is only one. With ``val``,
        one in so many of the training part, 2 or more, is put aside to choose the epoch by.
        """
        whole("count", count, 2)
        whole("seed", seed, 0)
        if val is not None:
            whole("val", val, 2)
        level = level or self._level()
        return [_split_of(parts) for parts in self._native.folds(level, count, seed, val)]

    def write(self, folder: str | os.PathLike[str], format: str = "tables", *, force: bool = False) -> None:
        """Writes the graphs to a folder, as ``"tables"`` or ``"tu"``; the program reads it too.

        What the format cannot hold is a warning.
        """
        for loss in self._native.write(os.fsdecode(folder), format, force):
            warnings.warn(loss, stacklevel=2)

    def _level(self) -> str:
        return _level(len(self), self._native.has_node_targets)

    def _parts(self, split: Mapping[str, Any]) -> Parts:
        return parts_of(split, len(self), self.nodes, self._level())

    def __len__(self) -> int:
        """Number of graphs."""
        return self._native.graphs

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_parts, (self._native.parts(),)

    def __repr__(self) -> str:
        return f"<lpgnn.Dataset {self.name}: {len(self)} graphs, {self.nodes} nodes, {self.edges} edges>"


def read(data: str | os.PathLike[str], *, format: str | None = None) -> Dataset:
    """The data set at a path, or of that name.

    A path is a folder of the TU collection or its zip file, a folder of tables, a citation graph, a GIN text file or
    a MATLAB file of the method's authors; ``format`` names it where it is not to be recognised. A name is that of a
    generated task (``clique``, ``subgraph``, ``chains``, ``karate``, …) or of a set that ``lpgnn data fetch`` got.
    """
    return Dataset(_native.Dataset.read(os.fsdecode(data), format))


def from_arrays(
    edge_index: Any,
    *,
    graph: Any = None,
    graphs: int | None = None,
    nodes: int | None = None,
    x: Any = None,
    edge_attr: Any = None,
    y: Any = None,
    graph_y: Any = None,
    split: Mapping[str, Any] | None = None,
    name: str = "graphs",
) -> Dataset:
    """Graphs from arrays.

    ``edge_index``
        Arcs ``(from, to)`` as an array of shape ``[2, edges]``; an edge is two of them. Nodes are numbered through all
        graphs. An edge that is given more than once counts once, with the features that it has first. Neighbours
        are those at either end: which end reaches a model through ``edge_attr`` only.
    ``graph``
        The graph of every node, in ascending order from 0; all are of one graph unless told.
    ``graphs``, ``nodes``
        How many there are, where the last graphs have no nodes, or where neither ``graph`` nor ``x`` nor ``y`` tells.
    ``x``, ``edge_attr``
        What is said of nodes and of edges: an array with a row each, or several by name. Floating-point columns are
        numbers; integers, booleans and words are categories. SciPy's sparse matrices stay sparse, and so does a wide array
        that is mostly zero. Arc features are read by the transitions ``gnn-sum``, ``gnn-mean`` and ``gnn-normalized``.
    ``y``, ``graph_y``
        What is to be predicted of nodes, of graphs; of graphs if there are both. Integers, booleans and words are classes,
        floating-point numbers are values. What is ``None``, masked or not a number is not known.
    ``split``
        ``train``, ``val`` and ``test``: numbers of graphs, or with ``level="node"`` of nodes; or masks of them.
    """
    edges = array_of(edge_index, "edge_index")
    if edges.size == 0:
        edges = np.zeros((2, 0), dtype=np.int64)
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise Error(f"edge_index is {shape_of(edges)}, but integers of shape [2, edges] are expected")
    told = {"nodes": nodes, "graph": rows_of(graph, "graph"), "x": rows_of(x, "x"), "y": rows_of(y, "y")}
    told = {what: count for what, count in told.items() if count is not None}
    if len(set(told.values())) > 1:
        raise Error(f"there is no one number of nodes: {', '.join(f'{what} has {n}' for what, n in told.items())}")
    count = next(iter(told.values()), int(edges.max()) + 1 if edges.size else 0)
    whole("nodes", count, 0)
    if graphs is not None:
        whole("graphs", graphs, 0)
    if graph is None:
        if graphs not in (None, 1):
            raise Error(f"graphs is {graphs}, but graph, which says what graph a node is in, is not given")
        starts = np.array([0, count])
    else:
        of = array_of(graph, "graph")
        if of.size == 0:
            of = of.astype(np.int64)
        if of.ndim != 1 or of.dtype.kind not in "iu" or (of[1:] < of[:-1]).any() or (of < 0).any():
            raise Error("graph has to be one integer per node, in ascending order from 0")
        last = int(of[-1]) + 1 if of.size else 0
        number = last if graphs is None else graphs
        if number < last:
            raise Error(f"graphs is {number}, but graph names graph {last - 1}")
        starts = np.searchsorted(of, np.arange(number + 1))
    if edges.size and (edges.min() < 0 or edges.max() >= count):
        edge = int(np.argmax(((edges < 0) | (edges >= count)).any(axis=0)))
        raise Error(f"edge {edge} names nodes {edges[:, edge].tolist()}, but there are {count} nodes")
    level = _level(len(starts) - 1, y is not None)
    native = _native.Dataset.of_parts(
        name,
        starts.tolist(),
        np.ascontiguousarray(edges, dtype=np.uint32),
        said(x, "x", count),
        said(edge_attr, "edge_attr", edges.shape[1]),
        target(y, "y", count),
        target(graph_y, "graph_y", len(starts) - 1),
        None if split is None else parts_of(split, len(starts) - 1, count, level),
        (None, None),
        True,
    )
    return Dataset(native)


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
    """Graphs from one of NetworkX, or from several.

    ``x`` and ``edge_attr`` name the attributes of nodes and edges to use, ``y`` the attribute of nodes to predict.
    ``graph_y`` is what to predict of graphs: one value each, or the name of an attribute of the graphs. Nodes come in
    NetworkX's order, graph after graph. An edge without direction is two edges; of parallel edges the first counts.
    All else is as in :func:`from_arrays`.
    """
    graphs = [graphs] if hasattr(graphs, "nodes") else list(graphs)
    of: list[int] = []
    edges: list[tuple[int, int]] = []
    node_data: list[Mapping[str, Any]] = []
    arc_data: list[Mapping[str, Any]] = []
    for number, graph in enumerate(graphs):
        place = {node: len(of) + at for at, node in enumerate(graph.nodes)}
        of += [number] * len(place)
        node_data += [graph.nodes[node] for node in graph.nodes]
        for u, v, data in graph.edges(data=True):
            both = [(place[u], place[v])]
            if not graph.is_directed() and u != v:
                both.append((place[v], place[u]))
            edges += both
            arc_data += [data] * len(both)
    if isinstance(graph_y, str):
        graph_y = _attribute([graph.graph for graph in graphs], graph_y, "graph")
    elif graph_y is not None and not isinstance(graph_y, Iterable):
        raise Error(f"graph_y is {graph_y!r}, but the name of an attribute or one value per graph is expected")

    def columns(names: str | Sequence[str] | None, rows: list[Mapping[str, Any]], what: str) -> dict[str, Any]:
        names = [names] if isinstance(names, str) else names or []
        return {each: _attribute(rows, each, what) for each in names}

    return from_arrays(
        np.array(edges, dtype=np.int64).reshape(-1, 2).T,
        graph=np.array(of, dtype=np.int64),
        graphs=len(graphs),
        x=columns(x, node_data, "node"),
        edge_attr=columns(edge_attr, arc_data, "edge"),
        y=None if y is None else _attribute(node_data, y, "node"),
        graph_y=None if graph_y is None else list(graph_y),
        split=split,
        name=name,
    )


def from_pyg(data: Any, *, split: Mapping[str, Any] | None = None, name: str = "graphs") -> Dataset:
    """Graphs from a ``Data`` of PyTorch Geometric, a ``Batch``, or several ``Data``, as in one of its data sets.

    ``y`` with a row per node of every graph is predicted of nodes, else of graphs. Masks become the split. All else is as
    in :func:`from_arrays`.
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
        raise Error("nodes of several types are not read; `to_homogeneous()` makes one type of them")
    counts = [int(graph.num_nodes) for graph in graphs]
    starts = np.concatenate([[0], np.cumsum(counts)])

    def edges_of(graph: Any) -> np.ndarray:
        edges = getattr(graph, "edge_index", None)
        edges = np.zeros((2, 0)) if edges is None else array_of(edges, "edge_index")
        return edges if edges.size else np.zeros((2, 0), dtype=np.int64)

    def parts(what: str) -> list[np.ndarray] | None:
        found = [getattr(graph, what, None) for graph in graphs]
        if all(part is None for part in found):
            return None
        if any(part is None for part in found):
            raise Error(f"graph {[part is None for part in found].index(True)} has no {what}, but others have")
        return [np.atleast_1d(array_of(part, what)) for part in found]

    def all_of(what: str) -> np.ndarray | None:
        found = parts(what)
        if found is not None and len({part.shape[1:] for part in found}) > 1:
            raise Error(f"{what} has not as many columns in every graph")
        return None if found is None else np.concatenate(found)

    y, graph_y = parts("y"), None
    if y is not None:
        per_node = all(part.shape[0] == count for part, count in zip(y, counts))
        if not per_node or (len(graphs) > 1 and set(counts) == {1}):
            # One value, or a row of them.
            y, graph_y = None, [part.reshape(1, -1) for part in y]
            if len({part.shape for part in graph_y}) > 1:
                raise Error("y has neither a row per node nor as many values for every graph")
    if split is None and (masks := _masks(parts, int(starts[-1]))):
        split = {**masks, "level": "node"}
    return from_arrays(
        np.concatenate([edges_of(graph) + start for graph, start in zip(graphs, starts)], axis=1),
        graph=np.repeat(np.arange(len(graphs)), counts),
        graphs=len(graphs),
        x=all_of("x"),
        edge_attr=all_of("edge_attr"),
        y=None if y is None else np.concatenate(y),
        graph_y=None if graph_y is None else np.concatenate(graph_y),
        split=split,
        name=name,
    )


def _masks(parts: Any, nodes: int) -> dict[str, np.ndarray]:
    found = {}
    for part, what in (("train", "train_mask"), ("val", "val_mask"), ("test", "test_mask")):
        if (masks := parts(what)) is not None:
            if masks[0].ndim != 1:
                raise Error(f"{what} is {shape_of(masks[0])}: choose one, as in data.{what} = data.{what}[:, 0]")
            found[part] = np.concatenate(masks).astype(bool)
    return found


def parts_of(split: Mapping[str, Any], graphs: int, nodes: int, level: str) -> Parts:
    """A split as the native part has it."""
    if not isinstance(split, Mapping):
        raise Error("a split has to be a table with train, val and test")
    unknown = [part for part in split if split not in ("level", "train", "val", "test")]
    if unknown:
        raise Error(f"a split has {unknown}, but level, train, val and test are expected")
    level = split.get("level") or level
    if level not in ("node", "graph"):
        raise Error(f"the level of a split is {level!r}, but \"node\" or \"graph\" is expected")
    count = graphs if level == "graph" else nodes
    return level, *(members(split.get(part, []), part, count, level) for part in ("train", "val", "test"))


def members(found: Any, what: str, count: int, level: str) -> list[int]:
    """Numbers of nodes or graphs, of numbers or of a mask."""
    found = array_of(list(found) if isinstance(found, range) else found, what)
    if found.dtype == bool or (found.dtype == np.uint8 and found.shape == (count,) and found.max(initial=0) <= 1):
        if found.shape != (count,):
            raise Error(f"the mask {what} is {shape_of(found)}, but one entry per {level} is expected: {count}")
        return np.flatnonzero(found).tolist()
    if found.size == 0:
        return []
    if found.ndim != 1 or found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= count:
        raise Error(f"{what} has to be numbers of {level}s, from 0 and below {count}, or a mask of them")
    return found.tolist()


def _of_parts(parts: tuple[Any, ...]) -> Dataset:
    return Dataset(_native.Dataset.of_parts(*parts))


def _split_of(parts: Parts) -> dict[str, Any]:
    level, *found = parts
    arrays = (np.array(part, dtype=np.int64) for part in found)
    return {"level": level, **dict(zip(("train", "val", "test"), arrays))}


def _level(graphs: int, of_nodes: bool) -> str:
    return "node" if graphs == 1 and of_nodes else "graph"


def _attribute(rows: Sequence[Mapping[str, Any]], name: str, what: str) -> list[Any]:
    missing = next((number for number, row in enumerate(rows) if name not in row), None)
    if missing is not None:
        raise Error(f"{what} {missing} has no attribute {name}")
    return [row[name] for row in rows]
