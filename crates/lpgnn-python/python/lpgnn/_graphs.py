"""Data sets from files and from other libraries."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from . import _native
from ._columns import (
    DataWarning,
    Guesses,
    array_of,
    check_integer,
    feature_columns,
    frame_of,
    is_frame,
    note_order,
    rows_of,
    shape_of,
    summed,
    target_column,
)
from ._dataset import Dataset
from ._native import Error
from ._splits import SPLITS, level_of, split_tuple


def read(data: str | os.PathLike[str], *, format: str | None = None) -> Dataset:
    """Reads the data set at a path, or the one with that name.

    A path is a folder of the TU collection or its zip file, a folder of tables, a citation graph, an ``.npz`` graph, a
    folder of OGB's raw files, node-link JSON, a GIN text file or a MATLAB file of the method's authors; ``format``
    overrides the automatic recognition. A name is that of a built-in
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
    """Makes a data set from arrays, data frames, tensors or a sparse adjacency matrix.

    ``edge_index``
        Edges ``(source, target)`` as an integer array of shape ``[2, edges]``; an undirected edge is two of them. Nodes are
        numbered across all graphs. A data frame has the columns ``source`` and ``target``, and its others become
        ``edge_attr``; of SciPy's sparse adjacency matrices every entry is an edge, with its value as ``weight`` unless all are 1.
        Duplicate edges are merged, with the features of the first occurrence.
        The nodes at both ends are neighbours of each other: a model can tell the direction only from
        ``edge_attr``.
    ``batch``
        The graph of every node, in ascending order from 0; without it, all nodes belong to one graph.
    ``num_graphs``, ``num_nodes``
        How many there are: needed if the last graphs have no nodes, or if the number of nodes does not follow from
        ``batch``, ``x`` or ``y``.
    ``x``, ``edge_attr``
        Features of nodes and edges: an array or a data frame with a row each, or a dictionary of arrays by name. Floats
        are numbers; booleans, strings and the categories of pandas and Polars are categories; integers are a category up to
        20 distinct values, otherwise numbers, and so are arrays and data frames of at least 32 integer columns. SciPy's sparse matrices stay
        sparse, and so does a wide array that is mostly zero. ``data.columns`` lists how each column was interpreted. The transitions
        ``gnn-sum``, ``gnn-mean`` and ``gnn-normalized`` use edge
        features.
    ``y``, ``graph_y``
        Targets of nodes and of graphs; if both are given, graphs are predicted. Integers, booleans and strings are classes,
        floats are real values. ``None``, NaN and masked entries are unknown; with several columns, only those entries.
    ``split``
        A dictionary with ``train``, ``val`` and ``test``: indices or masks of graphs or, with ``level="node"``, of nodes.
    """
    return build(**locals())


def build(
    edge_index: Any,
    *,
    batch: Any,
    x: Any,
    edge_attr: Any,
    y: Any,
    graph_y: Any,
    split: Mapping[str, Any] | None,
    name: str,
    num_graphs: int | None = None,
    num_nodes: int | None = None,
    names: tuple[list[str] | None, list[str] | None] = (None, None),
) -> Dataset:
    """See :func:`from_arrays`; ``names`` are those of graphs and nodes. Warnings are for whoever called the caller."""
    x, edge_attr, y, graph_y = frame_of(x, "x"), frame_of(edge_attr, "edge_attr"), frame_of(y, "y"), frame_of(graph_y, "graph_y")
    note_order(x, y)
    edge_index, edge_attr, size = _edge_list(edge_index, edge_attr)
    num_nodes = size if num_nodes is None else num_nodes
    edges = array_of(edge_index, "edge_index")
    if edges.size == 0:
        edges = np.zeros((2, 0), dtype=np.int64)
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise Error(f"edge_index is {shape_of(edges)}, but integers of shape [2, edges] are expected")
    nodes = _node_count(edges, {"num_nodes": num_nodes, "batch": rows_of(batch, "batch"), "x": rows_of(x, "x"), "y": rows_of(y, "y")})
    starts = _node_starts(batch, nodes, num_graphs)
    if edges.size and (edges.min() < 0 or edges.max() >= nodes):
        edge = int(np.argmax(((edges < 0) | (edges >= nodes)).any(axis=0)))
        hint = "; are they numbered from 1?" if edges.min() == 1 and edges.max() == nodes else ""
        raise Error(f"edge_index: edge {edge} joins nodes {edges[:, edge].tolist()}, but there are {nodes} nodes{hint}")
    graphs = len(starts) - 1
    guesses = Guesses()
    native = _native.Dataset.of_parts(
        name,
        starts.tolist(),
        np.ascontiguousarray(edges, dtype=np.uint32),
        feature_columns(x, "x", nodes, guesses),
        feature_columns(edge_attr, "edge_attr", edges.shape[1], guesses),
        target_column(y, "y", nodes, guesses),
        target_column(graph_y, "graph_y", graphs, guesses),
        None if split is None else split_tuple(split, graphs, nodes, level_of(graphs, y is not None)),
        names,
        True,
        None,
    )
    guesses.warn(3)
    if conflicting := native.duplicates[1]:
        text = f"{conflicting} duplicate edges have other features than the first between the same nodes, which alone counts"
        warnings.warn(text, DataWarning, stacklevel=3)
    if edges.shape[1] == 0 and nodes > 1:
        warnings.warn("the graphs have no edges", DataWarning, stacklevel=3)
    return Dataset(native, guesses)


def _edge_list(edge_index: Any, edge_attr: Any) -> tuple[Any, Any, int | None]:
    """Edges as an array, with the features and the number of nodes that come with them."""
    edge_index = frame_of(edge_index, "edge_index")
    if hasattr(edge_index, "tocoo") and not hasattr(edge_index, "detach"):
        shape = edge_index.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            raise Error(f"edge_index is a sparse matrix of shape {list(shape)}, but an adjacency matrix is square")
        matrix = summed(edge_index).tocoo()
        weights = np.asarray(matrix.data)
        if zeros := int((weights == 0).sum()):
            text = f"edge_index: {zeros} stored entries of the adjacency matrix are 0, and are edges too; eliminate_zeros() removes them"
            warnings.warn(text, DataWarning, stacklevel=4)
        if edge_attr is None and not (weights == 1).all():
            edge_attr = {"weight": weights.astype(np.float64)}
        return np.stack([matrix.row, matrix.col]).astype(np.int64), edge_attr, matrix.shape[0]
    if is_frame(edge_index) or isinstance(edge_index, Mapping):
        names = [name for name in edge_index] if isinstance(edge_index, Mapping) else list(edge_index.columns)
        for name in ("source", "target"):
            if name not in names:
                raise Error(f"edge_index has the columns {', '.join(map(str, names))}, but source and target are expected")
        others = {name: edge_index[name] for name in names if name not in ("source", "target")}
        if edge_attr is None and others:
            edge_attr = others
        ends = [array_of(edge_index[name], f"edge_index: {name}") for name in ("source", "target")]
        return np.stack(ends), edge_attr, None
    return edge_index, edge_attr, None


def note_positions(nodes: Sequence[Any], what: str, stacklevel: int) -> None:
    """Warns of nodes that are called other numbers than their positions, which an argument has."""
    if list(nodes) != list(range(len(nodes))) and all(isinstance(node, numbers.Integral) for node in nodes):
        names = ", ".join(map(str, nodes[:2]))
        warnings.warn(f"the nodes are called {names}, …, but {what} has their positions in graph.nodes, from 0", DataWarning, stacklevel=stacklevel + 1)


#: With this many times as many nodes as have edges, what was meant are probably ids.
SPARSE = 1000


def _node_count(edges: np.ndarray, told: dict[str, int | None]) -> int:
    """The number of nodes that the arguments agree on, or else that the edges need."""
    told = {what: count for what, count in told.items() if count is not None}
    if len(set(told.values())) > 1:
        given = ", ".join(f"{what} has {count}" for what, count in told.items())
        raise Error(f"the number of nodes is ambiguous: {given}")
    count = next(iter(told.values()), int(edges.max()) + 1 if edges.size else 0)
    check_integer("num_nodes", count, 0)
    if not told and count > SPARSE and count > SPARSE * len(found := np.unique(edges)):
        text = "number nodes from 0 without gaps, or pass num_nodes if most of them are isolated; lpgnn.from_frames takes any ids"
        raise Error(f"edge_index names node {count - 1}, but has only {len(found)} different nodes: {text}")
    if count >= 2**32 - 1:
        what = next(iter(told), "edge_index")
        raise Error(f"{what} makes {count} nodes, but there are at most 2³² - 2")
    return count


def _node_starts(batch: Any, nodes: int, num_graphs: int | None) -> np.ndarray:
    """The first node of every graph, and the number of nodes."""
    if num_graphs is not None:
        check_integer("num_graphs", num_graphs, 0)
        if num_graphs >= 2**32 - 1:
            raise Error(f"num_graphs is {num_graphs}, but there are at most 2³² - 2 graphs")
    if batch is None:
        if num_graphs not in (None, 1):
            raise Error(f"num_graphs is {num_graphs}, but batch, the graph of every node, is missing")
        return np.array([0, nodes])
    of = array_of(batch, "batch")
    if of.size == 0:
        of = of.astype(np.int64)
    if of.ndim != 1 or of.dtype.kind not in "iu" or (of[1:] < of[:-1]).any() or (of < 0).any():
        raise Error("batch has to be one integer per node, in ascending order from 0")
    if num_graphs is None and of.size and of[0] > 0:
        raise Error(f"batch begins with graph {of[0]}, but graphs are numbered from 0; if the first have no nodes, pass num_graphs")
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
    graphs = _several(graphs, "graphs", "NetworkX graph", lambda each: hasattr(each, "nodes") and hasattr(each, "adj"))
    for argument, given in (("x", x), ("edge_attr", edge_attr)):
        if not (given is None or isinstance(given, Iterable)):
            raise Error(f"{argument} is {given!r:.100}, but the names of attributes are expected")
    batch: list[int] = []
    node_names: list[str] = []
    edges: list[tuple[int, int]] = []
    node_data: list[Mapping[str, Any]] = []
    edge_data: list[Mapping[str, Any]] = []
    for number, graph in enumerate(graphs):
        place = {node: len(batch) + at for at, node in enumerate(graph.nodes)}
        batch += [number] * len(place)
        own = list(graph.nodes)
        node_names += map(str, own)
        if len(set(map(str, own))) < len(own):
            raise Error(f"graph {number} has two nodes that are the same text, such as 1 and \"1\"")
        if own != sorted(range(len(own))) and set(own) == set(range(len(own))):
            text = f"the nodes of graph {number} are 0 to {len(own) - 1} in another order: rows, indices and targets follow graph.nodes, not the labels"
            warnings.warn(text, DataWarning, stacklevel=2)
        elif split is not None and len(graphs) == 1:
            note_positions(own, "split", 2)
        node_data += [graph.nodes[node] for node in graph.nodes]
        for u, v, data in graph.edges(data=True):
            both = [(place[u], place[v])]
            if not graph.is_directed() and u != v:
                both.append((place[v], place[u]))
            edges += both
            edge_data += [data] * len(both)
    _note_unused("x", x, node_data, "node", () if y is None else (y,))
    _note_unused("edge_attr", edge_attr, edge_data, "edge", ())
    if isinstance(graph_y, str):
        graph_y = _attribute([graph.graph for graph in graphs], graph_y, "graph")
    elif graph_y is not None and (not isinstance(graph_y, Iterable) or isinstance(graph_y, (Mapping, Set))):
        raise Error(f"graph_y is {graph_y!r:.100}, but the name of an attribute or a list with one value per graph is expected")
    if y is not None and not isinstance(y, str):
        raise Error(f"y is {y!r:.100}, but the name of a node attribute is expected")

    def columns(names: str | Sequence[str] | None, rows: list[Mapping[str, Any]], what: str) -> dict[str, Any]:
        names = [names] if isinstance(names, str) else names or []
        return {each: _attribute(rows, each, what) for each in names}

    return build(
        np.array(edges, dtype=np.int64).reshape(-1, 2).T,
        batch=np.array(batch, dtype=np.int64),
        num_graphs=len(graphs),
        x=columns(x, node_data, "node"),
        edge_attr=columns(edge_attr, edge_data, "edge"),
        y=None if y is None else _attribute(node_data, y, "node"),
        graph_y=graph_y if graph_y is None or hasattr(graph_y, "shape") else list(graph_y),
        split=split,
        name=name,
        names=(None, node_names),
    )


def from_pyg(data: Any, *, split: Mapping[str, Any] | None = None, name: str = "graphs") -> Dataset:
    """Makes a data set from a PyTorch Geometric ``Data`` or ``Batch``, or from several ``Data``, such as a ``Dataset``.

    If ``y`` has a row per node of every graph, nodes are predicted, otherwise graphs. ``train_mask``, ``val_mask`` and
    ``test_mask`` become the split. Attributes other than ``x``, ``edge_index``, ``edge_attr`` and these are not read, with
    a warning; if there is a class 0, the class -1 is unknown. Everything else is as in :func:`from_arrays`.
    """
    batches = _several(data, "data", "PyTorch Geometric Data", lambda each: hasattr(each, "edge_index") or hasattr(each, "num_nodes"))
    graphs = [graph for each in batches for graph in (each.to_data_list() if hasattr(each, "to_data_list") else [each])]
    if not graphs:
        raise Error("there are no graphs")
    if any(hasattr(graph, "node_types") for graph in graphs):
        raise Error("heterogeneous graphs are not supported; `to_homogeneous()` converts them")
    for number, graph in enumerate(graphs):
        if getattr(graph, "edge_index", None) is None and getattr(graph, "adj_t", None) is not None:
            raise Error(f"graph {number} has adj_t but no edge_index, which is read: leave out the transform ToSparseTensor")
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
        arrays = [np.atleast_1d(array_of(each, what)) for each in found]
        kinds = {"number" if each.dtype.kind == "f" else "integer" for each in arrays if each.size}
        if len(kinds) > 1:
            raise Error(f"{what} has floats in some graphs and integers in others, which are not read alike: convert one of them")
        return arrays

    def together(what: str) -> np.ndarray | None:
        found = per_graph(what)
        if found is not None and len({each.shape[1:] for each in found}) > 1:
            raise Error(f"{what} does not have the same number of columns in every graph")
        return None if found is None else np.concatenate(found)

    _note_unread(graphs)
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
    return build(
        np.concatenate([edges_of(graph) + start for graph, start in zip(graphs, starts)], axis=1),
        batch=np.repeat(np.arange(len(graphs)), counts),
        num_graphs=len(graphs),
        x=together("x"),
        edge_attr=together("edge_attr"),
        y=None if y is None else _without_unknown(np.concatenate(y), "y"),
        graph_y=None if graph_y is None else _without_unknown(np.concatenate(graph_y), "graph_y"),
        split=split,
        name=name,
    )


def _several(graphs: Any, name: str, kind: str, is_one: Callable[[Any], bool]) -> list[Any]:
    """One graph or several as a list."""
    if is_one(graphs):
        return [graphs]
    if graphs is None or not hasattr(graphs, "__iter__"):
        raise Error(f"{name} is {graphs!r:.100}, but a {kind} or several are expected")
    graphs = list(graphs)
    wrong = next((at for at, each in enumerate(graphs) if not is_one(each)), None)
    if wrong is not None:
        raise Error(f"{name}[{wrong}] is a {type(graphs[wrong]).__name__}, but a {kind} is expected")
    return graphs


def _masks(per_graph: Any) -> dict[str, np.ndarray]:
    found = {}
    for name in SPLITS:
        what = f"{name}_mask"
        if (masks := per_graph(what)) is not None:
            if masks[0].ndim != 1:
                raise Error(f"{what} is {shape_of(masks[0])}: choose one, as in data.{what} = data.{what}[:, 0]")
            found[name] = np.concatenate(masks).astype(bool)
    return found


#: What is read of PyG data, and what only says how it is stored.
PYG = ("x", "edge_index", "edge_attr", "y", "num_nodes", "batch", "ptr", *(f"{name}_mask" for name in SPLITS))


def _note_unread(graphs: Sequence[Any]) -> None:
    """Warns of attributes that are not read."""
    found = dict.fromkeys(str(key) for graph in graphs if hasattr(graph, "keys") for key in _keys(graph))
    there = [name for name in found if name not in PYG]
    if there:
        text = f"the attributes {', '.join(there)} are not read: join them to x or edge_attr to use them as features"
        warnings.warn(text, DataWarning, stacklevel=3)


def _without_unknown(y: np.ndarray, name: str) -> np.ndarray:
    """Classes that are counted from 0, where -1 is none, as :meth:`Dataset.to_pyg` writes it."""
    if y.dtype.kind != "i" or y.min(initial=0) != -1 or not (y == 0).any():
        return y
    text = f"{name} is -1 in {int((y == -1).sum())} of {y.size} rows, which is read as unknown, because there is a class 0"
    warnings.warn(text, DataWarning, stacklevel=3)
    return np.where(y == -1, None, y.astype(object))


def _keys(graph: Any) -> Iterable[Any]:
    return graph.keys() if callable(graph.keys) else graph.keys


def _note_unused(argument: str, given: Any, rows: Sequence[Mapping[str, Any]], what: str, used: tuple[str, ...]) -> None:
    """Warns of attributes that are there but not asked for, unless none are."""
    there = list(dict.fromkeys(name for row in rows for name in row if name not in used)) if given is None else []
    if there:
        text = f"the {what} attributes {', '.join(map(str, there))} are not used: {argument} names those to use as features, [] none"
        warnings.warn(text, DataWarning, stacklevel=3)


def _attribute(rows: Sequence[Mapping[str, Any]], name: str, what: str) -> list[Any]:
    missing = next((number for number, row in enumerate(rows) if name not in row), None)
    if missing is not None:
        raise Error(f"{what} {missing} has no attribute {name}")
    return [row[name] for row in rows]
