"""Explanations of predictions."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arguments import check_dataset, thread_count
from ._native import Error

if TYPE_CHECKING:
    from ._dataset import Dataset
    from ._model import Model


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the prediction of a node or graph is based on. Nodes are numbered within the graph, ``data[explanation.graph]``."""

    #: The graph that is explained, or that the node belongs to.
    graph: int
    #: The class whose log-odds are explained, or the name of the real value; its index if it has no name.
    output: Any
    #: The log-odds of the class, or the real value.
    score: float
    #: The derivative of the score with respect to the features of every node, as the model reads them: a row per node.
    gradient: np.ndarray
    #: The contribution of the features of every node to the score, to first order: the sum of feature times derivative.
    nodes: np.ndarray
    #: The edges that were removed, a row of two nodes each, the most important first.
    edges: np.ndarray
    #: The score with the edge minus the score without it.
    edge_effects: np.ndarray
    #: Whether the states converge without the edge; do not trust its effect if they do not.
    edge_converged: np.ndarray

    def top_nodes(self, count: int = 5) -> list[tuple[int, float]]:
        """The nodes with the largest contributions, positive or negative."""
        order = np.argsort(-np.abs(self.nodes), kind="stable")[:count]
        return [(int(node), float(self.nodes[node])) for node in order]

    def top_edges(self, count: int = 5) -> list[tuple[int, int, float]]:
        """The edges with the largest contributions, positive or negative: both nodes, and the contribution."""
        found = zip(self.edges[:count].tolist(), self.edge_effects[:count].tolist(), strict=True)
        return [(u, v, effect) for (u, v), effect in found]

    def __repr__(self) -> str:
        edges = ", ".join(f"{u}–{v} ({effect:+.3g})" for u, v, effect in self.top_edges(3))
        nodes = ", ".join(f"{node} ({effect:+.3g})" for node, effect in self.top_nodes(3))
        return f"<lpgnn.Explanation of {self.output!r} = {self.score:.3g}: nodes {nodes}; edges {edges or 'none'}>"


def explain(
    model: Model, data: Dataset, item: int, output: Any, max_edges: int, threads: int | None
) -> Explanation:
    """The explanation of one prediction."""
    check_dataset(data)
    names = list(model.target_names) if model.classes is None else model.classes.tolist()
    found = model._native.explain(
        data._native,
        (_count(item, "item"), None if output is None else _place(output, names)),
        _count(max_edges, "max_edges"),
        thread_count(threads),
    )
    (graph, place, score), gradient, nodes, edges, (effects, converged) = found
    return Explanation(
        graph, names[place] if place < len(names) else place, score, gradient, nodes, edges, effects, converged
    )


def _count(value: Any, name: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise Error(f"{name} is {value!r:.100}, but an integer of at least 0 is expected")
    return number


def _place(output: Any, names: list[Any]) -> int:
    """The number of a class or of a real value, by its name."""
    if output in names:
        return names.index(output)
    if not names:
        return _count(output, "output")
    raise Error(f"output is {output!r:.100}, but one of {', '.join(map(repr, names[:8]))} is expected")
