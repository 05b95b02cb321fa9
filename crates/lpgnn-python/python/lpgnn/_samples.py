"""What estimators accept as ``X``: graphs of several libraries, rows of an array, or nodes of one graph."""

from __future__ import annotations

import numbers
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._columns import DataWarning, array_of, is_frame
from ._dataset import Dataset, concat
from ._graphs import build, from_networkx, from_pyg
from ._native import Error
from ._splits import indices

#: The attributes of NetworkX nodes and edges that are features.
Attributes = tuple[Any, Any]


@dataclass(frozen=True)
class Samples:
    """Graphs, and which of them, or of their nodes, are the samples."""

    data: Dataset
    #: ``"node"`` or ``"graph"``.
    level: str
    #: The node or graph of every sample.
    rows: np.ndarray
    #: The array of which they are the rows, if they are.
    table: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rows)


def is_networkx(value: Any) -> bool:
    """Whether this is a NetworkX graph."""
    return hasattr(value, "adj") and hasattr(value, "nodes")


def is_pyg(value: Any) -> bool:
    """Whether this is a PyTorch Geometric ``Data``."""
    return hasattr(value, "edge_index") and hasattr(value, "num_nodes") and not isinstance(value, Dataset)


def are_graphs(X: Any) -> bool:
    """Whether these are graphs, and not an array."""
    if isinstance(X, Dataset) or is_networkx(X) or is_pyg(X):
        return True
    if is_frame(X) or hasattr(X, "tocsr") or isinstance(X, str) or not hasattr(X, "__iter__") or not hasattr(X, "__len__"):
        return False
    if isinstance(X, np.ndarray) and (X.ndim != 1 or X.dtype != object):
        return False
    first = next(iter(X), None)
    return isinstance(first, Dataset) or is_networkx(first) or is_pyg(first)


def dataset_of(X: Any, name: str, attributes: Attributes) -> Dataset:
    """Graphs of any kind as one data set."""
    if isinstance(X, Dataset):
        return X
    x, edge_attr = attributes
    graphs = [X] if is_networkx(X) or is_pyg(X) else list(X)
    kinds = {"lpgnn.Dataset": lambda each: isinstance(each, Dataset), "NetworkX graph": is_networkx, "PyTorch Geometric Data": is_pyg}
    kind = next(kind for kind, test in kinds.items() if test(graphs[0]))
    wrong = next((at for at, each in enumerate(graphs) if not kinds[kind](each)), None)
    if wrong is not None:
        raise Error(f"{name}[{wrong}] is a {type(graphs[wrong]).__name__}, but a {kind} is expected, as {name}[0] is one")
    with warnings.catch_warnings():
        # Whatever a graph's own y looks like, it is not what is predicted.
        warnings.filterwarnings("ignore", message=r"(graph_)?y ", category=DataWarning)
        if kind == "NetworkX graph":
            return from_networkx(graphs, x=x, edge_attr=edge_attr)
        return from_pyg(graphs) if kind == "PyTorch Geometric Data" else concat(graphs)


def adjacency(graph: Any, attributes: Attributes) -> Dataset:
    """One graph of any kind, or a sparse adjacency matrix, as a data set."""
    if hasattr(graph, "tocoo") and not is_pyg(graph):
        return build(graph, batch=None, x=None, edge_attr=None, y=None, graph_y=None, split=None, name="graph")
    if not are_graphs(graph):
        kinds = "an lpgnn.Dataset, a NetworkX graph, a PyTorch Geometric Data or a SciPy adjacency matrix"
        raise Error(f"graph is a {type(graph).__name__}, but {kinds} is expected")
    return dataset_of(graph, "graph", attributes)


def nodes_of(X: Any, data: Dataset, name: str) -> np.ndarray:
    """Node indices, from indices or a mask."""
    X = np.asarray(X)
    X = X[:, 0] if X.ndim == 2 and X.shape[1] == 1 else X
    found = np.array(indices(X, name, data.num_nodes, "node"), dtype=np.int64)
    if found.size == 0:
        raise Error(f"{name} has no nodes, but at least one is expected")
    return found


def has_words(X: Any) -> bool:
    """Whether this is a data frame with columns that are not numbers."""

    def is_number(dtype: Any) -> bool:
        return dtype.is_numeric() if hasattr(dtype, "is_numeric") else getattr(dtype, "kind", "O") in "biuf"

    return is_frame(X) and not all(is_number(dtype) for dtype in X.dtypes)


def rows_as_graphs(X: Any) -> Dataset:
    """Every row of a 2-D array or of a data frame as a graph of one node."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the graphs have no edges", category=DataWarning)
        rows = np.arange(len(X))
        empty = np.zeros((2, 0), dtype=np.int64)
        x = _with_numbers(X) if is_frame(X) else X
        return build(empty, batch=rows, x=x, edge_attr=None, y=None, graph_y=None, split=None, name="rows", num_graphs=len(X))


def _with_numbers(frame: Any) -> dict[str, Any]:
    """The columns of a data frame, integers among them as floats: what other rows have does not change what a column is."""
    columns = {}
    for name in frame.columns:
        column = frame[name]
        kind = getattr(array_of(column, f"X: {name}"), "dtype", None)
        is_integer = kind is not None and kind.kind in "iu" and not _is_category(column)
        columns[f"x{name}" if isinstance(name, numbers.Integral) else name] = array_of(column, f"X: {name}").astype(np.float64) if is_integer else column
    return columns


def _is_category(column: Any) -> bool:
    return str(getattr(column, "dtype", "")).lower().startswith(("category", "categorical", "enum"))


def flat_targets(y: Any, samples: Samples) -> Any:
    """Targets in the order of the samples: one each, or those of all nodes, or a list with an array per graph."""
    if samples.level == "graph":
        return y
    total, count = samples.data.num_nodes, len(samples)
    if isinstance(y, (list, tuple)) and len(y) == len(samples.data) and all(np.ndim(each) > 0 for each in y):
        arrays = [np.asarray(each) for each in y]
        y = np.concatenate(arrays) if sum(map(len, arrays)) == total else y
    y = y if hasattr(y, "__len__") else np.atleast_1d(np.asarray(y))
    if len(y) == total != count:
        y = y.iloc[samples.rows] if hasattr(y, "iloc") else np.asarray(y)[samples.rows]
    return y
