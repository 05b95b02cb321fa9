"""Estimators for scikit-learn: cross-validation, grid search, pipelines and everything else that takes one.

``X`` may be an :class:`lpgnn.Dataset`, a list of NetworkX graphs, a list of PyTorch Geometric ``Data``, or an array with a
row per sample, each a graph of one node. They are also in :mod:`lpgnn` itself, as in ``lpgnn.GraphClassifier``, and need
scikit-learn: ``pip install lpgnn[sklearn]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


from ._arguments import ARGUMENTS
from ._estimators import TRAINING, _Classifier, _Estimator, _Regressor

__all__ = ["GraphClassifier", "GraphRegressor", "NodeClassifier", "NodeRegressor"]


class _OfGraphs(_Estimator):
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Trains on all samples. Without ``y``, these are the graphs of a data set ``X`` that have a target.

        ``sample_weight`` is the weight of every sample in the loss: 0 omits it, 2 counts it twice. Without it, the weights of the data set are
        used, if it has any.
        """
        return self._fit(X, y, sample_weight, None)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The accuracy of a classifier, R² of a regressor."""
        return self._score(X, y, sample_weight)


class _OfNodes(_Estimator):
    _level = "node"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, nodes: Any = None) -> Any:
        """Trains on nodes.

        With the parameter ``graph``, ``X`` is an array of indices, or a mask, of its nodes, and ``y`` the target of each of them, or
        of all nodes.
        Without it, ``X`` is one graph or several, and ``y`` the targets of all nodes, graph after graph, or a list with an
        array per graph; ``nodes`` is an array of indices or a mask of those to train on. All others are used without their
        targets. Without ``y``, training uses the nodes of a data set ``X`` that have a target.
        """
        return self._fit(X, y, sample_weight, nodes)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, nodes: Any = None) -> float:
        """The accuracy of a classifier, R² of a regressor; over ``nodes`` only if they are given."""
        return self._score(X, y, sample_weight, nodes)


class GraphClassifier(_OfGraphs, _Classifier):
    """Predicts the class of a graph."""

    def __init__(
        self,
        *,
        epochs: int | None = None,
        lr: float | None = None,
        solver: str | None = None,
        transition: str | None = None,
        state_dim: int | None = None,
        hidden_dims: int | Sequence[int] | None = None,
        layers: int | None = None,
        batch_size: int | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        monitor: str | None = None,
        x: str | Sequence[str] | None = None,
        edge_attr: str | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        threads: int | None = None,
    ) -> None:
        self._store(locals())

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None) -> GraphClassifier:
        """Trains for one more epoch.

        Weights and their optimiser state are kept; states and multipliers too, if the graphs are the same as in the previous
        call. ``classes`` are all classes of this and later calls, by default those of the first ``y``.
        """
        return self._fit(X, y, sample_weight, None, epochs=1, classes=classes)


class GraphRegressor(_OfGraphs, _Regressor):
    """Predicts one or more real values of a graph."""

    def __init__(
        self,
        *,
        epochs: int | None = None,
        lr: float | None = None,
        solver: str | None = None,
        transition: str | None = None,
        state_dim: int | None = None,
        hidden_dims: int | Sequence[int] | None = None,
        layers: int | None = None,
        batch_size: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        monitor: str | None = None,
        x: str | Sequence[str] | None = None,
        edge_attr: str | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        threads: int | None = None,
    ) -> None:
        self._store(locals())

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GraphRegressor:
        """Trains for one more epoch.

        Weights and their optimiser state are kept; states and multipliers too, if the graphs are the same as in the previous
        call.
        """
        return self._fit(X, y, sample_weight, None, epochs=1)


class NodeClassifier(_OfNodes, _Classifier):
    """Predicts the class of a node."""

    def __init__(
        self,
        graph: Any = None,
        *,
        epochs: int | None = None,
        lr: float | None = None,
        solver: str | None = None,
        transition: str | None = None,
        state_dim: int | None = None,
        hidden_dims: int | Sequence[int] | None = None,
        layers: int | None = None,
        batch_size: int | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        monitor: str | None = None,
        x: str | Sequence[str] | None = None,
        edge_attr: str | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        threads: int | None = None,
    ) -> None:
        self._store(locals())

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, nodes: Any = None, classes: Any = None
    ) -> NodeClassifier:
        """Trains for one more epoch.

        Weights and their optimiser state are kept; states and multipliers too, if the graphs are the same as in the previous
        call. ``classes`` are all classes of this and later calls, by default those of the first ``y``.
        """
        return self._fit(X, y, sample_weight, nodes, epochs=1, classes=classes)


class NodeRegressor(_OfNodes, _Regressor):
    """Predicts one or more real values of a node."""

    def __init__(
        self,
        graph: Any = None,
        *,
        epochs: int | None = None,
        lr: float | None = None,
        solver: str | None = None,
        transition: str | None = None,
        state_dim: int | None = None,
        hidden_dims: int | Sequence[int] | None = None,
        layers: int | None = None,
        batch_size: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        monitor: str | None = None,
        x: str | Sequence[str] | None = None,
        edge_attr: str | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        threads: int | None = None,
    ) -> None:
        self._store(locals())

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, nodes: Any = None) -> NodeRegressor:
        """Trains for one more epoch.

        Weights and their optimiser state are kept; states and multipliers too, if the graphs are the same as in the previous
        call.
        """
        return self._fit(X, y, sample_weight, nodes, epochs=1)


#: The parameters that are not settings, with what they mean.
PARAMETERS = {
    "graph": "The graph whose nodes are the samples: an lpgnn.Dataset, a NetworkX graph, a PyTorch Geometric Data or a SciPy "
    "adjacency matrix. X is then an array of node indices or a mask. None: X is the graph, or several.",
    "class_weight": 'Class weights in the loss: a dictionary, or "balanced" for equal total weights.',
    "early_stopping": "Whether to hold out samples to select the epoch, and to stop after patience evaluations without an improvement on them.",
    "validation_fraction": "The fraction of samples held out by early_stopping.",
    "x": "The NetworkX node attributes to use as features; None: none, with a warning if there are any.",
    "edge_attr": "The same for NetworkX edges.",
    "settings": 'All other settings by name, as in {"training.lipschitz": 0.9}.',
    "warm_start": "Whether fit continues from the last fit: with its weights, its learning rate and, on the same graphs, its states.",
    "random_state": "The seed, or a random number generator to draw it from; None: a new seed every time.",
    "verbose": "Whether a progress bar is shown.",
    "threads": "The number of threads; None: LPGNN_THREADS, the share of a joblib worker, or all processors.",
}
ATTRIBUTES = {
    "model_": "The lpgnn.Model, with its history, plot, states and everything else.",
    "n_iter_": "The number of epochs it was trained for.",
    "classes_": "The classes.",
    "n_outputs_": "The number of predicted values.",
    "n_features_in_": "The number of columns of X, if X was an array.",
}


def _describe(kind: type) -> None:
    """Adds parameters and attributes to the documentation of an estimator."""
    names = list(kind._get_param_names())
    own = [f"    - ``{name}``: {PARAMETERS[name]}" for name in names if name in PARAMETERS]
    settings = [f"    - ``{name}``: {ARGUMENTS[name]}" for name in TRAINING]
    missing = ("n_outputs_",) if issubclass(kind, _Classifier) else ("classes_",)
    found = [f"    - ``{name}``: {text}" for name, text in ATTRIBUTES.items() if name not in missing]
    text = "Parameters that are settings, whose defaults fit the data:\n\n"
    kind.__doc__ = "\n".join(
        [f"{kind.__doc__}\n\n    Parameters:\n", *own, f"\n    {text}", *settings, "\n    Attributes after ``fit``:\n", *found]
    )


for _kind in (GraphClassifier, GraphRegressor, NodeClassifier, NodeRegressor):
    _describe(_kind)
    # Its page has what it inherits.
    for _name in ("fit", "predict", "predict_proba", "score"):
        if hasattr(_kind, _name):
            setattr(_kind, _name, getattr(_kind, _name))
    # Messages, tracebacks and pickles name classes as users import them.
    _kind.__module__ = "lpgnn"
del _kind, _name
