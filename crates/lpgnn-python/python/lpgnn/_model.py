"""The trained model."""

from __future__ import annotations

import functools
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _native
from ._arguments import check_dataset, thread_count
from ._columns import DataWarning, check_integer, class_values
from ._dataset import Dataset
from ._explain import Explanation, explain
from ._history import evaluation_of, flat, frame_of_epochs, numbers
from ._native import Error
from ._plot import plot
from ._splits import SPLITS, indices, split_dict


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predictions of a model: a row per node or per graph."""

    #: The predicted class or real values of every row. A row whose outputs are not finite has the class ``None``, and
    #: its graph has not converged.
    y: np.ndarray
    #: The output of the read-out: logits for classes, or the real values.
    outputs: np.ndarray
    #: The probability of every class, in the order of ``model.classes``; ``None`` for real values.
    probabilities: np.ndarray | None
    #: For every graph, whether the states have converged; do not trust the predictions if they have not.
    converged: np.ndarray
    #: The largest ``|x − f_a(x)|`` of every graph.
    residuals: np.ndarray
    #: The states of all nodes, one array per layer.
    states: list[np.ndarray]


class Model:
    """A trained model with everything needed to use it, and the record of its training."""

    def __init__(self, native: _native.Model) -> None:
        self._native = native

    @functools.cached_property
    def _notes(self) -> dict[str, Any]:
        return json.loads(self._native.notes) or {}

    @property
    def history(self) -> Any:
        """A pandas ``DataFrame`` with a row per epoch; :attr:`epoch_records` has the same without pandas.

        ``loss_sum`` is the term of the Lagrangian: the sum over all training targets and updates. ``train_loss``, ``val_loss``,
        ``train_accuracy``, … are means on converged states, and NaN in epochs without an evaluation.
        """
        return frame_of_epochs(self.epoch_records)

    @functools.cached_property
    def epoch_records(self) -> list[dict[str, Any]]:
        """A flat record per epoch. Values that were not measured are absent."""
        return [flat(epoch) for epoch in self._notes.get("metrics", [])]

    @property
    def stop_reason(self) -> dict[str, Any]:
        """Why training stopped, as in ``{"reason": "epochs"}``."""
        return self._notes.get("stop_reason") or {}

    @functools.cached_property
    def evaluation(self) -> dict[str, Any]:
        """The metrics of every split, by its name; the cheating gap; how many graphs did not converge."""
        return evaluation_of(self._notes)

    @property
    def split(self) -> dict[str, Any] | None:
        """The split it was trained with, given or drawn: ``level``, ``train``, ``val`` and ``test``."""
        split = self._native.split
        return None if split is None else split_dict(split)

    @property
    def task(self) -> str:
        """``"node"`` or ``"graph"``: what it predicts."""
        return self._native.task

    @property
    def classes(self) -> np.ndarray | None:
        """The classes it predicts; ``None`` for real values."""
        return class_values(self._native.classes)

    @property
    def epoch(self) -> int:
        """The epoch of its weights: the best on the validation split, or else the last."""
        return self._native.epoch

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the model and of its training."""
        return json.loads(self._native.settings)

    @property
    def members(self) -> int:
        """The number of models whose predictions it averages; 1 if it is no :func:`ensemble`."""
        return self._native.members

    @property
    def weights(self) -> np.ndarray:
        """All weights, as one flat array; of an ensemble, those of its first member."""
        return self._native.weights

    @property
    def target_names(self) -> list[str]:
        """The names of the real values it predicts; empty for classes."""
        return self._native.value_names

    def predict(self, data: Dataset, *, max_iter: int | None = None, threads: int | None = None) -> Prediction:
        """Computes the states of the graphs and reads out the predictions; targets are ignored.

        ``max_iter`` is the maximum number of iterations per layer, by default that of the model's settings, up to 100000.
        """
        check_dataset(data)
        self._note_unread(data)
        found = self._native.predict(data._native, _max_iter(max_iter), thread_count(threads))
        outputs, probabilities, converged, residuals, states = found
        classes = self.classes
        finite = np.isfinite(outputs).all(axis=1)
        y = outputs
        if classes is not None and probabilities is not None:
            y = classes[np.where(finite, probabilities.argmax(axis=1), 0)]
            if not finite.all():
                y = y.astype(object)
                y[~finite] = None
        elif outputs.shape[1] == 1:
            y = outputs[:, 0]
        if not finite.all():
            count = int((~finite).sum())
            warnings.warn(
                f"the outputs of {count} of {len(finite)} {self.task}s are infinite or not a number; they have no prediction",
                RuntimeWarning,
                stacklevel=2,
            )
        return Prediction(y, outputs, probabilities, converged, residuals, states)

    def evaluate(
        self,
        data: Dataset,
        subset: Any = None,
        *,
        split: str | None = None,
        max_iter: int | None = None,
        threads: int | None = None,
    ) -> dict[str, Any]:
        """Accuracy, confusion matrix and other metrics, over all nodes or graphs that have a target or over some of them.

        ``split`` is ``"train"``, ``"val"`` or ``"test"`` of the split that the model was trained with, so ``data`` have to
        be the data it was trained on. ``subset`` is an array of indices, or a mask, of the nodes or graphs
        that are predicted. It can also be a dictionary as returned by ``data.folds``, from which ``split`` selects, by
        default ``"test"``; if that splits graphs and nodes are predicted, all nodes of those graphs count. ``max_iter``
        is that of :meth:`predict`.
        """
        check_dataset(data)
        level = self.task
        native = data._native
        if not (native.has_node_targets if level == "node" else native.has_graph_targets):
            raise Error(f"the {level}s of {data.name} have no targets to compare with")
        count = data.num_nodes if level == "node" else len(data)
        if split not in (None, *SPLITS):
            raise Error(f"split is {split!r:.100}, but train, val or test is expected")
        if isinstance(subset, Mapping):
            found = _of_split(data, subset, split or "test", level)
        elif subset is not None:
            if split is not None:
                raise Error("subset and split are both given, but an array of indices leaves nothing to select")
            found = indices(subset, "subset", count, level)
            self._check_subset(found, level)
        elif split is not None:
            found = _of_split(data, self._split_of(data), split, level)
        else:
            found = list(range(count))
        return numbers(json.loads(self._native.evaluate(native, found, _max_iter(max_iter), thread_count(threads))))

    def plot(self, axes: Any = None) -> Any:
        """Draws loss, accuracy, residual and cheating gap over the epochs, and returns the matplotlib ``Figure``.

        A grey line marks the epoch of the weights. For real values, only loss and residual are shown. ``axes`` are the axes to draw on,
        one per plot.
        """
        return plot(self, axes)

    def states(self, data: Dataset, *, threads: int | None = None) -> list[np.ndarray]:
        """The converged states of all nodes, one array per layer; those of graph ``g`` are rows ``data.ptr[g]:data.ptr[g + 1]``."""
        return self.predict(data, threads=threads).states

    def explain(
        self,
        data: Dataset,
        item: int,
        *,
        output: Any = None,
        max_edges: int = 256,
        threads: int | None = None,
    ) -> Explanation:
        """Which nodes and edges the prediction of a node or graph is based on.

        ``item`` is the index of the graph, or of the node in ``data``. ``output`` is the class, or the name of the real value, to
        explain; by default the predicted class, or the first value. The gradient goes through the fixed point, so it is exact however far
        away a node is. Edges are removed one by one, and the states converge again from their current values; features do not change. In a
        large graph, at most ``max_edges`` are tried, starting with those at whose ends a change has the largest effect on the prediction.
        """
        return explain(self, data, item, output, max_edges, threads)

    def residuals(self, data: Dataset, *, threads: int | None = None) -> np.ndarray:
        """The largest ``|x − f_a(x)|`` of every node, over the layers: how far its state is from convergence."""
        check_dataset(data)
        self._note_unread(data)
        return self._native.residuals(data._native, thread_count(threads))

    def multipliers(self, data: Dataset, *, threads: int | None = None) -> list[np.ndarray]:
        """The multipliers ``λ`` of all nodes at their converged states, one array per layer, a row per node.

        They solve ``λ = Jᵀ λ − ∂loss/∂x``, with the targets of ``data``: how the loss of all of them changes if the
        constraint of that node is shifted. Nodes on which no target depends have zeros.
        """
        check_dataset(data)
        self._note_unread(data)
        return self._native.multipliers(data._native, thread_count(threads))

    def _note_unread(self, data: Dataset) -> None:
        """Says which columns are not used."""
        unread = self._native.unread(data._native)
        if unread:
            text = f"the model does not read {', '.join(unread[:8])}{', …' if len(unread) > 8 else ''} of {data.name}"
            warnings.warn(text, DataWarning, stacklevel=3)

    def _check_subset(self, found: list[int], level: str) -> None:
        """Raises an error if nodes or graphs occur twice, or if these are the graphs of a split and nodes are predicted."""
        twice = np.flatnonzero(np.bincount(found) > 1) if found else ()
        if len(twice):
            raise Error(f"subset names {level} {twice[0]} twice")
        split = self.split
        if level == "node" and split is not None and split["level"] == "graph":
            same = [name for name in SPLITS if found and split[name].tolist() == found]
            if same:
                raise Error(f"subset is the {same[0]} split of the model, which has graphs, but nodes are predicted: pass split={same[0]!r}")

    def _split_of(self, data: Dataset) -> dict[str, Any]:
        """The split it was trained with, if these are the data."""
        split = self.split
        if split is None:
            raise Error("split is given, but the file of this model does not have the split it was trained with")
        if not self._native.was_trained_on(data._native):
            raise Error(
                f"split is a part of the data that the model was trained on, but {data.name} are other data: "
                "pass a subset, or nothing to evaluate on all"
            )
        return split

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to a file, with its split, its history and its evaluation; the command line can use it too."""
        self._native.save(os.fsdecode(path))

    def report(self, path: str | os.PathLike[str] = "report.html", data: Dataset | None = None) -> None:
        """Writes a page of charts on training and predictions: one HTML file, which needs no network.

        With the data that it was trained on, the page has a map of the states and pictures of the graphs, or of the
        neighbourhoods of the nodes, on which the model is most wrong and most uncertain.
        """
        if data is not None:
            check_dataset(data)
        self._native.report(os.fsdecode(path), None if data is None else data._native, thread_count(None))

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_bytes, (self._native.to_bytes(),)

    def __repr__(self) -> str:
        kind = self.settings["model"]["transition"]
        return f"<lpgnn.Model {kind} for {self.task}s, {self.weights.size} weights of epoch {self.epoch}>"


def ensemble(models: Iterable[Model]) -> Model:
    """One model that predicts the mean of the probabilities, or values, of several: trainings with the same data, split and settings,
    but different seeds.

        model = lpgnn.ensemble(lpgnn.train(data, seed=seed) for seed in range(5))

    It is used, saved and loaded like any other model; ``states`` of its predictions are those of the first member, ``residuals`` the
    largest of all. It has no record of a training of its own: :meth:`Model.evaluate` evaluates it. Explanations, multipliers and live graphs
    need a single model.
    """
    members = list(models)
    strange = next((each for each in members if not isinstance(each, Model)), None)
    if strange is not None:
        raise Error(f"an ensemble is made of models, but there is a {type(strange).__name__}")
    return Model(_native.Model.ensemble([member._native for member in members]))


def load(path: str | os.PathLike[str]) -> Model:
    """Loads a model from its file, or from the folder of a run or a search."""
    return Model(_native.Model.load(os.fsdecode(path)))


def _of_split(data: Dataset, splits: Mapping[str, Any], name: str, level: str) -> list[int]:
    """The indices of the nodes or graphs in one of the splits."""
    divided, *members = data._split_tuple(splits)
    found = members[SPLITS.index(name)]
    if not found:
        raise Error(f"split is {name!r:.100}, but that part is empty")
    if divided == level:
        return found
    if divided == "node":
        raise Error("the split is one of nodes, but graphs are predicted")
    ptr = data.ptr.tolist()
    return [node for graph in found for node in range(ptr[graph], ptr[graph + 1])]


def _max_iter(max_iter: int | None) -> int | None:
    if max_iter is None:
        return None
    check_integer("max_iter", max_iter, 1)
    return int(max_iter)


def _of_bytes(data: bytes) -> Model:
    return Model(_native.Model.from_bytes(data))
