"""Data sets for other libraries."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._columns import FEW_VALUES, NO_TARGET, DataWarning, class_values
from ._splits import SPLITS

#: Columns of frames that are not features.
RESERVED = ("graph", "id", "source", "target", "y", "split")

if TYPE_CHECKING:
    from ._dataset import Dataset


class Frames(NamedTuple):
    """A data set as data frames, in the order of the arguments of :func:`from_frames`."""

    #: ``source`` and ``target`` by node id, ``graph`` if there are several, and a column per feature.
    edges: Any
    #: ``id``, ``graph`` if there are several, a column per feature, ``y`` and ``split``.
    nodes: Any
    #: ``graph``, ``y`` and ``split``.
    graphs: Any


class _Parts:
    """The arrays of a data set, decoded."""

    def __init__(self, data: Dataset) -> None:
        parts = data._native.parts()
        self.starts, self.edges = np.array(parts[1]), parts[2].astype(np.int64)
        self.raw_x, self.raw_edge_attr = parts[3], parts[4]
        self.x, self.edge_attr = _columns(parts[3]), _columns(parts[4])
        self.y, self.graph_y = _targets(parts[5]), _targets(parts[6])
        self.split = data.split
        graphs, nodes = parts[8]
        self.batch = np.repeat(np.arange(len(data)), np.diff(self.starts))
        self.graph_ids = list(range(len(data))) if graphs is None else graphs
        self.node_ids = (np.arange(len(self.batch)) - self.starts[self.batch]).tolist() if nodes is None else nodes
        # Edges are sorted by source, and nodes by graph.
        self.edge_starts = np.searchsorted(self.edges[0], self.starts)

    def is_undirected(self) -> bool:
        """Whether every edge has a reverse edge with the same features."""
        order = np.lexsort(self.edges)
        reverse = np.lexsort(self.edges[::-1])
        if not (self.edges[:, order] == self.edges[::-1][:, reverse]).all():
            return False
        return all((column[order] == column[reverse]).all() for column in self.edge_attr.values())

    def split_column(self, level: str) -> np.ndarray | None:
        """The split of every node or graph."""
        if self.split is None or self.split["level"] != level:
            return None
        names = np.full(len(self.batch) if level == "node" else len(self.graph_ids), None, dtype=object)
        for name in SPLITS:
            names[self.split[name]] = name
        return names


def _decoded(values: list[str], codes: np.ndarray, *, few: bool = False) -> np.ndarray:
    """Categories as integers, booleans or strings; ``None`` where there is none. With ``few``, integers that would be read as
    numbers are strings."""
    known = class_values(values)
    if few and known is not None and known.dtype.kind == "i" and len(known) > FEW_VALUES:
        known = np.array(values)
    if known is None or len(known) == 0 or (codes == NO_TARGET).any():
        return np.array([None if code == NO_TARGET else known[code].item() for code in codes], dtype=object)
    return known[codes]


def _columns(columns: dict[str, Any]) -> dict[str, np.ndarray]:
    """Features by name; sparse rows as one column of lists is no use, so they become numbered columns."""
    found = {name: _decoded(values, codes, few=True) for name, values, codes in columns["categories"]}
    if columns["values"] is not None:
        names, table = columns["values"]
        found |= dict(zip(names, table.T))
    if columns["sparse"] is not None:
        dense = _dense(columns["sparse"])
        found |= {f"sparse{at}": column for at, column in enumerate(dense.T)}
    return found


def _dense(sparse: tuple[Any, ...]) -> np.ndarray:
    starts, places, values, width = sparse
    table = np.zeros((len(starts) - 1, width), dtype=np.float32)
    table[np.repeat(np.arange(len(starts) - 1), np.diff(starts.astype(np.int64))), places] = values
    return table


def _targets(target: tuple[Any, ...] | None) -> dict[str, np.ndarray]:
    """Targets by name: ``y``, or ``y.NAME`` for several."""
    if target is None:
        return {}
    if len(target) == 3:
        return {"y": _decoded(target[1], target[2])}
    names, table = target
    return {"y" if len(names) == 1 else f"y.{name}": column for name, column in zip(names, table.T)}


def _renamed(columns: dict[str, np.ndarray], taken: Iterable[str], what: str) -> dict[str, np.ndarray]:
    """Features whose names mean something else there have other names."""
    taken = {name.lower() for name in taken}
    found = {}
    for name, column in columns.items():
        new = name
        while new.strip().lower() in taken or (new != name and new in columns):
            new += "_"
        if new != name:
            warnings.warn(f"the {what} feature {name} is called {new} there", DataWarning, stacklevel=4)
        found[new] = column
    return found


def to_networkx(data: Dataset) -> list[Any]:
    """See :meth:`Dataset.to_networkx`."""
    import networkx

    parts = _Parts(data)
    kind = networkx.Graph if parts.is_undirected() else networkx.DiGraph
    x = {name: column.tolist() for name, column in (_renamed(parts.x, parts.y, "node") | parts.y).items()}
    edge_attr = {name: column.tolist() for name, column in parts.edge_attr.items()}
    graphs = []
    for number, name in enumerate(parts.graph_ids):
        graph = kind(name=name, **{key: column.tolist()[number] for key, column in parts.graph_y.items()})
        for node in range(parts.starts[number], parts.starts[number + 1]):
            graph.add_node(parts.node_ids[node], **{key: column[node] for key, column in x.items()})
        for edge in range(parts.edge_starts[number], parts.edge_starts[number + 1]):
            source, target = (parts.node_ids[end] for end in parts.edges[:, edge])
            graph.add_edge(source, target, **{key: column[edge] for key, column in edge_attr.items()})
        graphs.append(graph)
    return graphs


def to_pandas(data: Dataset) -> Frames:
    """See :meth:`Dataset.to_pandas`."""
    import pandas

    parts = _Parts(data)
    ids = np.array(parts.node_ids, dtype=object)
    graph_ids = np.array(parts.graph_ids, dtype=object)
    several = len(parts.graph_ids) > 1 or data.graph_names is not None

    def frame(columns: dict[str, np.ndarray | None], index: np.ndarray) -> Any:
        named = {"graph": graph_ids[index]} if several else {}
        there = {name: column for name, column in columns.items() if column is not None}
        return pandas.DataFrame({name: series(column) for name, column in {**named, **there}.items()})

    def series(column: np.ndarray) -> Any:
        found = pandas.Series(column)
        if column.dtype != object:
            return found
        # Beside a missing value, integers would become floats, which are something else.
        kinds = {type(value) for value in column if value is not None}
        kind = {int: "Int64", bool: "boolean"}.get(kinds.pop()) if len(kinds) == 1 else None
        return found.infer_objects() if kind is None or not found.isna().any() else found.astype(kind)

    ends = {"source": ids[parts.edges[0]], "target": ids[parts.edges[1]]}
    x, edge_attr = _renamed(parts.x, RESERVED, "node"), _renamed(parts.edge_attr, RESERVED, "edge")
    nodes = {"id": ids, **x, **parts.y, "split": parts.split_column("node")}
    graphs = {**parts.graph_y, "split": parts.split_column("graph")}
    graph_frame = frame(graphs, np.arange(len(graph_ids))) if several else pandas.DataFrame({"graph": graph_ids, **parts.graph_y})
    return Frames(frame({**ends, **edge_attr}, parts.batch[parts.edges[0]]), frame(nodes, parts.batch), graph_frame)


def _numbers(columns: dict[str, Any], rows: int) -> np.ndarray | None:
    """Features as floats: categories one-hot, numbers as they are."""
    tables = [np.eye(len(values), dtype=np.float32)[codes] for _, values, codes in columns["categories"]]
    if columns["values"] is not None:
        tables.append(columns["values"][1])
    if columns["sparse"] is not None:
        tables.append(_dense(columns["sparse"]))
    return np.concatenate(tables, axis=1).reshape(rows, -1) if tables else None


def to_pyg(data: Dataset) -> list[Any]:
    """See :meth:`Dataset.to_pyg`."""
    import torch
    from torch_geometric.data import Data

    parts = _Parts(data)
    raw = data._native.parts()
    x = _numbers(parts.raw_x, data.num_nodes)
    edge_attr = _numbers(parts.raw_edge_attr, data.num_edges)

    def target(column: tuple[Any, ...] | None) -> np.ndarray | None:
        if column is None:
            return None
        # PyG's losses ignore classes of -1 where they are told to.
        return column[1] if len(column) == 2 else np.where(column[2] == NO_TARGET, -1, column[2].astype(np.int64))

    y, graph_y = target(raw[5]), target(raw[6])
    split = parts.split_column("node")
    graphs = []
    for number in range(len(data)):
        nodes = slice(parts.starts[number], parts.starts[number + 1])
        edges = slice(parts.edge_starts[number], parts.edge_starts[number + 1])
        graph = Data(edge_index=torch.as_tensor(parts.edges[:, edges] - parts.starts[number]))
        graph.num_nodes = int(nodes.stop - nodes.start)
        if x is not None:
            graph.x = torch.as_tensor(x[nodes])
        if edge_attr is not None:
            graph.edge_attr = torch.as_tensor(edge_attr[edges])
        if graph_y is not None:
            graph.y = torch.as_tensor(graph_y[number : number + 1])
        elif y is not None:
            graph.y = torch.as_tensor(y[nodes])
        if split is not None:
            for name in SPLITS:
                graph[f"{name}_mask"] = torch.as_tensor(split[nodes] == name)
        graphs.append(graph)
    return graphs
