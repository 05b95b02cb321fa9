"""The data set: graphs with features and targets, sliced, joined and converted."""

from __future__ import annotations

import html
import json
import numbers
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from . import _native
from ._columns import Guesses, array_of, check_integer, class_values, shape_of
from ._convert import Frames, to_networkx, to_pandas, to_pyg
from ._native import Error
from ._splits import SPLITS, SplitTuple, indices, level_of, split_dict, split_tuple


class Dataset:
    """Graphs with features of their nodes and edges, and targets to predict."""

    __slots__ = ("_guesses", "_native")

    def __init__(self, native: _native.Dataset, guesses: Guesses | None = None) -> None:
        self._native = native
        self._guesses = guesses or Guesses()

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
        """How many duplicate edges were merged, and how many of them had different features."""
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
        return None if split is None else split_dict(split)

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
        return [split_dict(split) for split in self._native.folds(level, n_splits, seed, val)]

    def write(self, folder: str | os.PathLike[str], format: str = "tables", *, force: bool = False) -> None:
        """Writes the graphs to a folder, as ``"tables"`` or ``"tu"``, for :func:`read` and the command line.

        Anything that the format cannot represent is reported as a warning. ``force`` replaces an existing data set.
        """
        for loss in self._native.write(os.fsdecode(folder), format, force):
            warnings.warn(loss, stacklevel=2)

    def _level(self) -> str:
        return level_of(len(self), self._native.has_node_targets)

    def _split_tuple(self, split: Mapping[str, Any]) -> SplitTuple:
        return split_tuple(split, len(self), self.num_nodes, self._level())

    @property
    def columns(self) -> list[str]:
        """How every column and target is interpreted, a line each; guesses are marked as such."""
        return [f"{place:<9} {name:<{self._name_width()}} {text}" for place, name, text in self._described()]

    def _name_width(self) -> int:
        return max((len(name) for _, name, _ in self._native.columns()), default=0)

    def _described(self) -> list[tuple[str, str, str]]:
        lines, guesses = [], dict(self._guesses)
        for place, name, text in self._native.columns():
            guess = guesses.pop((place, name), "")
            lines.append((place, name, f"{text}  (guessed: it {guess})" if guess else text))
        # Many columns share a line.
        lines += [(place, name, f"guessed: it {guess}") for (place, name), guess in guesses.items()]
        places = list(dict.fromkeys(place for place, _, _ in lines))
        return sorted(lines, key=lambda line: places.index(line[0]))

    def with_split(self, split: Mapping[str, Any] | None) -> Dataset:
        """The same graphs with another split, or with none."""
        return Dataset(self._native.with_split(None if split is None else self._split_tuple(split)), self._guesses)

    @property
    def sample_weight(self) -> np.ndarray | None:
        """The weight of every node or graph in the training loss; ``None`` if all weights are equal."""
        weights = self._native.weights
        return None if weights is None else weights[1]

    def with_sample_weight(self, sample_weight: Any, *, level: str | None = None) -> Dataset:
        """The same graphs with sample weights in the training loss, or with none if ``sample_weight`` is ``None``.

        There is one non-negative number per graph, or per node if nodes are predicted or ``level`` is ``"node"``. 0 leaves a
        target out, 2 counts it twice. Metrics do not depend on weights.
        """
        if sample_weight is None:
            return Dataset(self._native.with_weights(None), self._guesses)
        if level not in (None, "node", "graph"):
            raise Error(f"level is {level!r:.100}, but \"node\" or \"graph\" is expected")
        level = level or ("graph" if self._native.has_graph_targets or not self._native.has_node_targets else "node")
        weights = array_of(sample_weight, "sample_weight")
        count = len(self) if level == "graph" else self.num_nodes
        if weights.shape != (count,) or weights.dtype.kind not in "fiub":
            raise Error(f"sample_weight is {shape_of(weights)}, but one number per {level} is expected: {count}")
        if not (weights >= 0).all() or not np.isfinite(weights).all():
            raise Error("sample_weight has numbers that are negative or not finite")
        return Dataset(self._native.with_weights((level, weights.astype(np.float32))), self._guesses)

    def to_networkx(self) -> list[Any]:
        """A list of NetworkX graphs, with features as attributes of nodes and edges, and targets as the attribute ``y``.

        They are undirected if every edge has a reverse edge with the same features.
        """
        return to_networkx(self)

    def to_pyg(self) -> list[Any]:
        """A list of PyTorch Geometric ``Data``.

        ``x`` and ``edge_attr`` are floats: categories one-hot, numbers as they are; ``y`` is the index of the class or the
        numbers. A split of nodes becomes masks.
        """
        return to_pyg(self)

    def to_pandas(self) -> Frames:
        """Data frames ``edges``, ``nodes`` and ``graphs``, from which :func:`from_frames` makes the same data set."""
        return to_pandas(self)

    def __len__(self) -> int:
        """Number of graphs."""
        return self._native.graphs

    @property
    def shape(self) -> tuple[int]:
        """``(len(data),)``, as of an array of graphs, so that scikit-learn selects some of them."""
        return (len(self),)

    def __getitem__(self, which: Any) -> Dataset:
        """Some of the graphs: by an index, a slice, an array of indices or a mask.

        They keep their split, unless none of them is in the training split.
        """
        count = len(self)
        if isinstance(which, tuple) and len(which) == 2 and which[1] is Ellipsis:
            which = which[0]
        if isinstance(which, numbers.Integral) and not isinstance(which, bool):
            if not -count <= which < count:
                raise IndexError(f"graph {which} does not exist: there are {count}")
            graphs = [int(which) % count]
        elif isinstance(which, slice):
            graphs = list(range(*which.indices(count)))
        else:
            graphs = indices(which, "the index", count, "graph")
        if not graphs:
            raise Error("no graphs are selected, but a data set has at least one")
        return Dataset(self._native.select(graphs), self._guesses)

    def __iter__(self) -> Iterator[Dataset]:
        """Graph by graph, each a data set of one."""
        return (self[graph] for graph in range(len(self)))

    def __add__(self, other: Any) -> Dataset:
        """These graphs and those of another data set."""
        return concat([self, other]) if isinstance(other, Dataset) else NotImplemented

    def __copy__(self) -> Dataset:
        return self

    def __deepcopy__(self, memo: Any) -> Dataset:
        # It cannot be changed.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_parts, (self._native.parts(), dict(self._guesses))

    def __repr__(self) -> str:
        lines = [f"lpgnn.Dataset({self.name}: {len(self)} graphs, {self.num_nodes} nodes, {self.num_edges} edges)"]
        return "\n  ".join(lines + self.columns + self._split_line())

    def _split_line(self) -> list[str]:
        split = self.split
        if split is None:
            return []
        sizes = ", ".join(f"{name} {len(split[name])}" for name in SPLITS)
        return [f"split     {split['level']}s: {sizes}"]

    def _repr_html_(self) -> str:
        title = f"{self.name}: {len(self)} graphs, {self.num_nodes} nodes, {self.num_edges} edges"
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in line)}</tr>" for line in self._described()
        )
        split = html.escape("".join(self._split_line()))
        return f"<b>lpgnn.Dataset</b> {html.escape(title)}<table>{rows}</table>{split}"


def concat(datasets: Iterable[Dataset]) -> Dataset:
    """The graphs of several data sets with the same columns, one after the other.

    Names and splits are kept if all of them have them.
    """
    datasets = list(datasets)
    for data in datasets:
        if not isinstance(data, Dataset):
            raise TypeError(f"datasets has a {type(data).__name__}, but data sets are expected")
    if not datasets:
        raise Error("datasets is empty, but at least one data set is expected")
    guesses = Guesses()
    for data in datasets:
        guesses.update(data._guesses)
    return Dataset(_native.Dataset.concat([data._native for data in datasets]), guesses)


def _of_parts(parts: tuple[Any, ...], guesses: dict[tuple[str, str], str]) -> Dataset:
    return Dataset(_native.Dataset.of_parts(*parts), Guesses(guesses))
