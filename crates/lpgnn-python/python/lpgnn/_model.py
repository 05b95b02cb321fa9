"""Training, and the trained model."""

from __future__ import annotations

import json
import numbers
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _native
from ._columns import class_values
from ._graphs import SPLITS, Dataset, indices
from ._native import Error

#: The arguments of :func:`train` that are settings, with what they mean.
ARGUMENTS: dict[str, str] = dict(_native.arguments())


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predictions of a model: a row per node or per graph."""

    #: The predicted class or real values of every row.
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
    """A trained model with everything needed to use it."""

    def __init__(
        self, native: _native.Model, history: list[dict[str, Any]] | None = None, ending: dict[str, Any] | None = None
    ) -> None:
        self._native = native
        #: One report per epoch; empty for a model that was loaded.
        self.history = history or []
        #: Why training stopped; empty for a model that was loaded.
        self.stop_reason: dict[str, Any] = (ending or {}).get("stop_reason", {})
        #: Metrics by split, the cheating gap, and how many graphs did not converge; empty for a model that was loaded.
        self.evaluation: dict[str, Any] = _evaluation((ending or {}).get("evaluation"))

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
    def weights(self) -> np.ndarray:
        """All weights, as one flat array."""
        return self._native.weights

    @property
    def target_names(self) -> list[str]:
        """The names of the real values it predicts; empty for classes."""
        return self._native.value_names

    def predict(self, data: Dataset, *, threads: int | None = None) -> Prediction:
        """Computes the states of the graphs and reads out the predictions; targets are ignored."""
        _check_dataset(data)
        found = self._native.predict(data._native, _threads(threads))
        outputs, probabilities, converged, residuals, states = found
        classes = self.classes
        y = outputs if classes is None or probabilities is None else classes[probabilities.argmax(axis=1)]
        if classes is None and outputs.shape[1] == 1:
            y = outputs[:, 0]
        return Prediction(y, outputs, probabilities, converged, residuals, states)

    def evaluate(
        self, data: Dataset, subset: Any = None, *, split: str = "test", threads: int | None = None
    ) -> dict[str, Any]:
        """Accuracy, confusion matrix and other metrics over all nodes or graphs with a known target, or over a subset.

        ``subset`` is an array of indices, or a mask, of the nodes or graphs that are predicted. It can also be a
        dictionary as ``data.folds`` returns them, of which ``split`` selects ``"train"``, ``"val"`` or ``"test"``; if that
        splits graphs and nodes are predicted, all nodes of those graphs count.
        """
        _check_dataset(data)
        level = self.task
        native = data._native
        if not (native.has_node_targets if level == "node" else native.has_graph_targets):
            raise Error(f"the {level}s of {data.name} have no targets to compare with")
        count = data.num_nodes if level == "node" else len(data)
        if subset is None:
            found = list(range(count))
        elif isinstance(subset, Mapping):
            found = _of_split(data, subset, split, level)
        else:
            found = indices(subset, "subset", count, level)
        return json.loads(self._native.evaluate(native, found, _threads(threads)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to a file, which the command line can use too."""
        self._native.save(os.fsdecode(path))

    def __reduce__(self) -> tuple[Any, ...]:
        ending = {"stop_reason": self.stop_reason, "evaluation": _nested(self.evaluation)}
        return _of_bytes, (self._native.to_bytes(), self.history, ending)

    def __repr__(self) -> str:
        kind = self.settings["model"]["transition"]
        return f"<lpgnn.Model {kind} for {self.task}s, {self.weights.size} weights of epoch {self.epoch}>"


def load(path: str | os.PathLike[str]) -> Model:
    """Loads a model from its file, or from the run folder that ``lpgnn train`` has written."""
    path = os.fsdecode(path)
    if os.path.isdir(path):
        path = os.path.join(path, "model.safetensors")
    return Model(_native.Model.load(path))


def train(
    data: Dataset,
    *,
    epochs: int | None = None,
    seed: int | None = None,
    solver: str | None = None,
    lr: float | None = None,
    transition: str | None = None,
    state_dim: int | None = None,
    hidden_dims: list[int] | None = None,
    layers: int | None = None,
    batch_size: int | None = None,
    eval_every: int | None = None,
    patience: int | None = None,
    monitor: str | None = None,
    settings: Mapping[str, Any] | None = None,
    config: str | os.PathLike[str] | None = None,
    split: Mapping[str, Any] | None = None,
    threads: int | None = None,
    on_epoch: Callable[[dict[str, Any]], object] | None = None,
) -> Model:
    """Trains a model. Settings that are left out get defaults that fit the data.

    ``solver`` is ``one-shot``, ``bdmm`` (the paper's), ``implicit``, ``unrolled`` (the original GNN), ``sse`` or
    ``augmented-lagrangian``; ``transition`` is
    ``gnn-sum``, ``gnn-mean``, ``gnn-normalized``, ``gin``, ``gcn-mean``, ``gcn`` or ``sage-max``. ``lr`` is the learning rate of
    the weights. The model is evaluated every ``eval_every`` epochs, and training stops early after ``patience`` evaluations
    without an improvement on the validation split by the metric ``monitor``; ``settings={"training.patience": None}`` trains
    all epochs. All other settings go by their names, as in
    ``settings={"training.lipschitz": 0.9}``; ``config`` is the path of a TOML file with settings.

    ``split`` is a dictionary with ``train``, ``val`` and ``test``: indices or masks of graphs, or of nodes if there is only
    one graph. Without it, the split of the data is used, or a random one. ``on_epoch`` is called with a report after every
    epoch; training stops when it returns ``False``. The same seed gives the same bits with any number of ``threads``.
    """
    given = dict(locals())
    _check_dataset(data)
    if hidden_dims is not None:
        given["hidden_dims"] = [hidden_dims] if isinstance(hidden_dims, numbers.Integral) else list(hidden_dims)
    chosen = {name: given[name] for name in ARGUMENTS}
    split_tuple = None if split is None else data._split_tuple(split)
    asked = _asked(chosen, settings, config)

    def go_on(line: str) -> bool:
        answer = on_epoch(json.loads(line))
        return not isinstance(answer, (bool, np.bool_)) or bool(answer)

    call = None if on_epoch is None else go_on
    native, lines, ending = _native.train(data._native, *asked, split_tuple, _threads(threads), call)
    model = Model(native, [json.loads(line) for line in lines], json.loads(ending))
    if model.stop_reason.get("reason") == "diverged":
        what = f"training diverged in epoch {model.stop_reason['epoch']}: {model.stop_reason['variable']} are no longer finite"
        warnings.warn(f"{what}; try a smaller learning rate", RuntimeWarning, stacklevel=2)
    return model


_LINES = (f"    {name}: {meaning}" for name, meaning in ARGUMENTS.items())
train.__doc__ = f"{train.__doc__}\n    Arguments that are settings:\n\n" + "\n".join(_LINES)


def settings(
    data: Dataset, settings: Mapping[str, Any] | None = None, *, config: str | os.PathLike[str] | None = None
) -> str:
    """All settings for training on these data, with a comment on each, as TOML."""
    _check_dataset(data)
    return _native.settings(data._native, *_asked({}, settings, config))


def _asked(
    chosen: Mapping[str, Any],
    settings: Mapping[str, Any] | None,
    config: str | os.PathLike[str] | None,
) -> tuple[tuple[str, str] | None, str]:
    """The settings that were given: a file with its text, and single settings as JSON, in order of precedence."""
    file = None
    if config is not None:
        with open(config, encoding="utf-8") as text:
            file = (os.fsdecode(config), text.read())
    if settings is not None and not isinstance(settings, Mapping):
        raise Error(f"settings is {settings!r}, but a dictionary of settings is expected")
    arguments = {name: value for name, value in chosen.items() if value is not None}
    asked = {"settings": _flat(settings or {}), "arguments": arguments}
    for name, value in (*asked["settings"].items(), *arguments.items()):
        if isinstance(value, (float, np.floating)) and not np.isfinite(value):
            raise Error(f"{name} is {value}, but a finite number is expected")
    try:
        return file, json.dumps(asked, default=_plain, allow_nan=False)
    except ValueError:
        raise Error("settings contain a number that is not finite") from None


def _flat(settings: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Settings by their full names; if two have the same name, the later one counts."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        name = f"{path}{name}"
        found = _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
        for each in found:
            flat.pop(each, None)
        flat |= found
    return flat


def _threads(threads: Any) -> int:
    """As many as asked for, or as ``LPGNN_THREADS`` says; 0 means all processors."""
    if threads is None:
        threads = os.environ.get("LPGNN_THREADS") or 0
    text = str(threads)
    if isinstance(threads, bool) or not (text.isascii() and text.isdecimal() and len(text) < 4):
        raise Error(f"threads is {threads!r}, but an integer from 0 (all processors) to 999 is expected")
    return int(text)


def _check_dataset(data: Any) -> None:
    if not isinstance(data, Dataset):
        kind = type(data).__name__
        raise TypeError(f"data is a {kind}, but a Dataset is expected, as lpgnn.read or lpgnn.from_arrays return it")


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} is not a value of a setting")


def _of_split(data: Dataset, splits: Mapping[str, Any], name: str, level: str) -> list[int]:
    """The indices of the nodes or graphs in one of the splits."""
    if name not in SPLITS:
        raise Error(f"split is {name!r}, but train, val or test is expected")
    divided, *members = data._split_tuple(splits)
    found = members[SPLITS.index(name)]
    if divided == level:
        return found
    if divided == "node":
        raise Error("the split is one of nodes, but graphs are predicted")
    ptr = data.ptr.tolist()
    return [node for graph in found for node in range(ptr[graph], ptr[graph + 1])]


def _evaluation(evaluation: dict[str, Any] | None) -> dict[str, Any]:
    """The metrics of every split by its name, beside everything else."""
    if evaluation is None:
        return {}
    rest = {key: value for key, value in evaluation.items() if key != "parts"}
    return {**dict(evaluation["parts"]), **rest}


def _nested(evaluation: dict[str, Any]) -> dict[str, Any] | None:
    """The inverse of :func:`_evaluation`."""
    if not evaluation:
        return None
    parts = [[name, evaluation[name]] for name in SPLITS if name in evaluation]
    rest = {key: value for key, value in evaluation.items() if key not in SPLITS}
    return {"parts": parts, **rest}


def _of_bytes(data: bytes, history: list[dict[str, Any]], ending: dict[str, Any]) -> Model:
    return Model(_native.Model.from_bytes(data), history, ending)
