"""Predictions on a graph that changes."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _native
from ._arguments import thread_count
from ._columns import is_frame
from ._dataset import Dataset
from ._model import Model
from ._native import Error


@dataclass(frozen=True, eq=False)
class LivePrediction:
    """A prediction, and how far it is from what full convergence would give."""

    #: The predicted class, or the real values; ``None`` where the outputs of classes are not finite.
    y: Any
    #: Logits of the classes, or the real values.
    outputs: np.ndarray
    #: The probability of every class, in the order of ``model.classes``; ``None`` for real values.
    probabilities: np.ndarray | None
    #: The largest possible Euclidean distance of ``outputs`` from those at the fixed point.
    bound: float
    #: Whether the class is that of the fixed point for certain.
    final: bool


@dataclass(frozen=True)
class LiveStats:
    """How large a live graph is, and how good."""

    nodes: int
    edges: int
    graphs: int
    #: Events so far, refused ones among them.
    events: int
    #: How far any state that is read is from its fixed point, at most.
    bound: float
    #: Memory of the graph.
    bytes: int


class LiveGraph:
    """A trained model on data that change: predictions stay within ``tol`` of what full convergence would give.

    Nodes and graphs have the names of ``data``, or numbers. ``undirected`` edges are two edges, one in each direction. Features are a mapping of
    columns, or a sequence of all values.

        live = lpgnn.LiveGraph(model, data, tol=1e-3)
        live.add_edges([(3, 17), (17, 20)])
        live.predict(17).y
        live.changed()  # the predictions for nodes whose class changed

    With ``final_tol``, nodes whose class could still be another one at the fixed point get a smaller tolerance, down to this one, and those around
    them too; a class that cannot change any more is ``final``. ``lipschitz`` is the largest Lipschitz bound that changes may bring about.

    Changes that cannot be are refused with an :class:`Error` that names them all; the others are made.
    """

    def __init__(
        self,
        model: Model,
        data: Dataset,
        *,
        tol: float = 1e-3,
        final_tol: float | None = None,
        lipschitz: float | None = None,
        undirected: bool = True,
        threads: int | None = None,
    ) -> None:
        if not isinstance(model, Model) or not isinstance(data, Dataset):
            raise Error(f"model and data are a {type(model).__name__} and a {type(data).__name__}, but an lpgnn.Model and an lpgnn.Dataset are expected")
        self._model = model
        self._native = _native.LiveGraph(model._native, data._native, tol, final_tol, lipschitz, thread_count(threads))
        self._undirected = undirected
        self._changed: dict[tuple[str, str | None], LivePrediction] = {}
        #: How many nodes the last change has touched.
        self.touched = 0

    def add_edges(self, edges: Iterable[tuple], *, features: Sequence | None = None, graph: Hashable = None) -> None:
        """Adds edges ``(source, target)``, with the features of each if edges have any."""
        self._edges("add-edge", edges, features, graph)

    def remove_edges(self, edges: Iterable[tuple], *, graph: Hashable = None) -> None:
        """Removes edges ``(source, target)``."""
        self._edges("remove-edge", edges, None, graph)

    def update_edges(self, edges: Iterable[tuple], features: Sequence, *, graph: Hashable = None) -> None:
        """Gives edges ``(source, target)`` new features."""
        self._edges("update-edge", edges, features, graph)

    def add_nodes(self, nodes: Iterable[Hashable], *, features: Sequence | None = None, graph: Hashable = None) -> None:
        """Adds nodes without edges."""
        self._nodes("add-node", nodes, features, graph)

    def remove_nodes(self, nodes: Iterable[Hashable], *, graph: Hashable = None) -> None:
        """Removes nodes, with all their edges."""
        self._nodes("remove-node", nodes, None, graph)

    def update_features(self, nodes: Iterable[Hashable], features: Sequence, *, graph: Hashable = None) -> None:
        """Gives nodes new features."""
        self._nodes("update-node", nodes, features, graph)

    def predict(self, node: Hashable = None, *, graph: Hashable = None) -> LivePrediction:
        """The prediction of a node, or of a graph if the model predicts graphs."""
        return self._row(self._native.predict(_name(graph), _name(node)))[1]

    def changed(self) -> dict[Any, LivePrediction]:
        """The nodes or graphs whose prediction has changed since the last call, with their predictions.

        Its class is another, or its values have moved by more than their bound. Keys are nodes, pairs of a graph and a node if there are
        several graphs, or graphs if those are predicted; names that are numbers are integers.
        """
        several = self.stats().graphs > 1
        found = {}
        for (graph, node), prediction in self._changed.items():
            key = _key(graph) if node is None else (_key(graph), _key(node)) if several else _key(node)
            found[key] = prediction
        self._changed = {}
        return found

    def stats(self) -> LiveStats:
        """How large the graph is, and how good."""
        return LiveStats(*self._native.stats())

    def _edges(self, op: str, edges: Iterable[tuple], features: Sequence | None, graph: Hashable) -> None:
        events = []
        for edge in edges:
            ends = [] if isinstance(edge, str) or not isinstance(edge, Iterable) else list(edge)
            if len(ends) != 2:
                raise Error(f"an edge is {edge!r:.100}, but a pair (source, target) is expected")
            source, target = ends
            event = {"op": op, "source": _json(source), "target": _json(target), "undirected": self._undirected}
            events.append(event)
        self._apply(events, features, graph)

    def _nodes(self, op: str, nodes: Iterable[Hashable], features: Sequence | None, graph: Hashable) -> None:
        if isinstance(nodes, str) or not isinstance(nodes, Iterable):
            raise Error(f"nodes is {nodes!r:.100}, but a list of nodes is expected")
        self._apply([{"op": op, "node": _json(node)} for node in nodes], features, graph)

    def _apply(self, events: list[dict[str, Any]], features: Sequence | None, graph: Hashable) -> None:
        features = None if features is None else _rows(features)
        if features is not None and len(features) != len(events):
            raise Error(f"there are {len(features)} rows of features where {len(events)} were expected")
        for number, event in enumerate(events):
            if graph is not None:
                event["graph"] = _json(graph)
            if features is not None:
                event["features"] = _features(features[number])
        try:
            text = json.dumps(events, allow_nan=False)
        except ValueError:
            raise Error("features have values that are not finite, but finite numbers are expected") from None
        errors, self.touched, _, _, changed = self._native.apply(text)
        refused = {number for number, _ in errors}
        for number, event in enumerate(events):
            if event["op"] == "remove-node" and number not in refused:
                self._forget(event)
        for row in changed:
            key, prediction = self._row(row)
            self._changed[key] = prediction
        if errors:
            raise Error("; ".join(f"change {number}: {error}" for number, error in errors))

    def _forget(self, event: dict[str, Any]) -> None:
        """What has been removed has not changed."""
        gone = [key for key in self._changed if key[1] == event["node"] and key[0] == event.get("graph", key[0])]
        for key in gone:
            del self._changed[key]

    def _row(self, row: tuple) -> tuple[tuple[str, str | None], LivePrediction]:
        graph, node, outputs, probabilities, number, bound, final = row
        outputs = np.asarray(outputs, dtype=np.float32)
        classes = self._model.classes
        if classes is not None:
            y = None if number is None else classes[number]
        else:
            y = outputs if len(outputs) > 1 else outputs[0]
        shares = None if probabilities is None else np.asarray(probabilities)
        return (graph, node), LivePrediction(y, outputs, shares, bound, final)


def _json(name: Hashable) -> str:
    return str(int(name)) if isinstance(name, (int, np.integer)) else str(name)


def _name(name: Hashable) -> str | None:
    return None if name is None else str(name)


def _key(name: str) -> Any:
    return int(name) if name.isdecimal() and str(int(name)) == name else name


def _rows(features: Any) -> list[Any]:
    """Rows of features; those of a data frame by the names of its columns."""
    if is_frame(features):
        return [dict(zip(features.columns, row)) for row in zip(*(features[name].to_list() for name in features.columns))]
    if isinstance(features, (str, Mapping)) or not isinstance(features, Iterable):
        raise Error(f"features is {features!r:.100}, but a row per change is expected")
    return list(features)


def _features(row: Any) -> Any:
    if isinstance(row, Mapping):
        return {str(name): _value(value) for name, value in row.items()}
    if isinstance(row, str) or not isinstance(row, Iterable):
        raise Error(f"features has the row {row!r:.100}, but a mapping of columns or a list of numbers is expected")
    return [_number(value) for value in row]


def _value(value: Any) -> str | float:
    # Booleans are categories, as they are in a data frame.
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    return value if isinstance(value, str) else _number(value)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Error(f"features has {value!r:.100}, but a number is expected") from None
