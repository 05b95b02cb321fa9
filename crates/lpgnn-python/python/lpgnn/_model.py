"""Training, and what comes of it."""

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
from ._columns import labels
from ._graphs import Dataset, members
from ._native import Error

#: The arguments of :func:`train` that are settings, with what they mean.
ARGUMENTS: dict[str, str] = dict(_native.arguments())


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model says of graphs: a row per node or per graph."""

    #: The class of every row, or its values.
    y: np.ndarray
    #: What the output function gives: softmax makes probabilities of it, or it is the values.
    outputs: np.ndarray
    #: The probability of every class, in the order of ``model.classes``; none for values.
    probabilities: np.ndarray | None
    #: Whether the states of a graph were found; where not, its rows are not to be trusted.
    converged: np.ndarray
    #: The largest ``|x − f_a(x)|`` of every graph.
    residuals: np.ndarray
    #: The states of all nodes, for every layer.
    states: list[np.ndarray]


class Model:
    """A trained model with all that is needed to use it."""

    def __init__(
        self, native: _native.Model, history: list[dict[str, Any]] | None = None, ending: dict[str, Any] | None = None
    ) -> None:
        self._native = native
        #: What every epoch was like, if it was trained just now.
        self.history = history or []
        #: Why training ended, if it was trained just now.
        self.stop_reason: dict[str, Any] = (ending or {}).get("stop_reason", {})
        #: Scores by part, the cheating gap, and how well graphs converge, if it was trained just now.
        self.evaluation: dict[str, Any] = _evaluation((ending or {}).get("evaluation"))

    @property
    def task(self) -> str:
        """``"node"`` or ``"graph"``: what it predicts."""
        return self._native.task

    @property
    def classes(self) -> np.ndarray | None:
        """The classes it predicts, if it does."""
        return labels(self._native.classes)

    @property
    def epoch(self) -> int:
        """The epoch its weights are of: the best by the validation part, or the last."""
        return self._native.epoch

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of its functions and of its training."""
        return json.loads(self._native.settings)

    @property
    def weights(self) -> np.ndarray:
        """All weights."""
        return self._native.weights

    @property
    def value_names(self) -> list[str]:
        """Names of the values it predicts, if it does."""
        return self._native.value_names

    def predict(self, data: Dataset, *, threads: int | None = None) -> Prediction:
        """Finds the states of the graphs and reads off the answer; targets are not looked at."""
        _is_dataset(data)
        found = self._native.predict(data._native, _threads(threads))
        outputs, shares, converged, residuals, states = found
        classes = self.classes
        y = outputs if classes is None or shares is None else classes[shares.argmax(axis=1)]
        if classes is None and outputs.shape[1] == 1:
            y = outputs[:, 0]
        return Prediction(y, outputs, shares, converged, residuals, states)

    def evaluate(
        self, data: Dataset, rows: Any = None, *, split: str = "test", threads: int | None = None
    ) -> dict[str, Any]:
        """Accuracy and other metrics, over all nodes or graphs with a known target, or over some of them.

        ``rows`` are numbers or a mask of what is predicted: of nodes, or of graphs. Or it is a split, as
        ``data.folds`` gives them, of which the ``part`` counts; where it divides graphs and nodes are predicted, all
        nodes of its graphs.
        """
        _is_dataset(data)
        what = self.task
        count = data.nodes if what == "node" else len(data)
        has = data._native.has_node_targets if what == "node" else data._native.has_graph_targets
        if not has:
            raise Error(f"the {what}s of {data.name} have no targets to compare with")
        if rows is None:
            found = list(range(count))
        elif isinstance(rows, Mapping):
            parts = dict(zip(("level", "train", "val", "test"), data._parts(rows)))
            if split not in ("train", "val", "test"):
                raise Error(f"split is {split!r}, but train, val or test is expected")
            found = parts[split]
            if (parts["level"], what) == ("graph", "node"):
                starts = data.node_starts.tolist()
                found = [node for graph in found for node in range(starts[graph], starts[graph + 1])]
            elif parts["level"] != what:
                raise Error("the split divides nodes, but graphs are predicted")
        else:
            found = members(rows, "rows", count, what)
        return json.loads(self._native.evaluate(data._native, found, _threads(threads)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, which the program can use too."""
        self._native.save(os.fsdecode(path))

    def __reduce__(self) -> tuple[Any, ...]:
        ending = {"stop_reason": self.stop_reason, "evaluation": _nested(self.evaluation)}
        return _of_bytes, (self._native.to_bytes(), self.history, ending)

    def __repr__(self) -> str:
        kind = self.settings["model"]["transition"]
        return f"<lpgnn.Model {kind} for {self.task}s, {self.weights.size} weights of epoch {self.epoch}>"


def load(path: str | os.PathLike[str]) -> Model:
    """A model from its file, or from the folder of a run of the program."""
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
    settings: Mapping[str, Any] | None = None,
    config: str | os.PathLike[str] | None = None,
    split: Mapping[str, Any] | None = None,
    threads: int | None = None,
    on_epoch: Callable[[dict[str, Any]], object] | None = None,
) -> Model:
    """Trains a model; what is not told is chosen for the data.

    ``solver`` is ``one-shot``, ``bdmm`` (the paper's), ``implicit``, ``unrolled`` (the original GNN), ``sse`` or
    ``augmented-lagrangian``; ``transition`` is
    ``gnn-sum``, ``gnn-mean``, ``gnn-normalized``, ``gin``, ``gcn-mean``, ``gcn`` or ``sage-max``. All other settings go by
    their names, as in ``settings={"training.lipschitz": 0.9}``; ``config`` is a file of them.

    ``split`` has ``train``, ``val`` and ``test``, numbers or masks of graphs, or of nodes if there is one graph; without
    it, the data's own counts, or one is drawn. ``on_epoch`` is called with what every epoch was like; training ends
    when it returns ``False``. The same seed gives the same bits, at any number of ``threads``.
    """
    given = dict(locals())
    _is_dataset(data)
    if hidden_dims is not None:
        given["hidden_dims"] = [hidden_dims] if isinstance(hidden_dims, numbers.Integral) else list(hidden_dims)
    chosen = {name: given[name] for name in ARGUMENTS}
    parts = None if split is None else data._parts(split)
    asked = _asked(chosen, settings, config)

    def go_on(line: str) -> bool:
        answer = on_epoch(json.loads(line))
        return not isinstance(answer, (bool, np.bool_)) or bool(answer)

    call = None if on_epoch is None else go_on
    native, lines, ending = _native.train(data._native, *asked, parts, _threads(threads), call)
    model = Model(native, [json.loads(line) for line in lines], json.loads(ending))
    if model.stop_reason.get("reason") == "diverged":
        what = f"training diverged in epoch {model.stop_reason['epoch']}: its {model.stop_reason['variable']} are no numbers any more"
        warnings.warn(f"{what}; a smaller rate may help", RuntimeWarning, stacklevel=2)
    return model


_LINES = (f"    {name}: {meaning}" for name, meaning in ARGUMENTS.items())
train.__doc__ = f"{train.__doc__}\n    Arguments that are settings:\n\n" + "\n".join(_LINES)


def settings(
    data: Dataset, settings: Mapping[str, Any] | None = None, *, config: str | os.PathLike[str] | None = None
) -> str:
    """All settings of a training of these data with what they mean, as TOML."""
    _is_dataset(data)
    return _native.settings(data._native, *_asked({}, settings, config))


def _asked(
    chosen: Mapping[str, Any],
    settings: Mapping[str, Any] | None,
    config: str | os.PathLike[str] | None,
) -> tuple[tuple[str, str] | None, str]:
    """What was asked for: a file with its text, and settings as JSON, the most important last."""
    file = None
    if config is not None:
        with open(config, encoding="utf-8") as text:
            file = (os.fsdecode(config), text.read())
    if settings is not None and not isinstance(settings, Mapping):
        raise Error(f"settings is {settings!r}, but a table of settings is expected")
    arguments = {name: value for name, value in chosen.items() if value is not None}
    asked = {"settings": _flat(settings or {}), "arguments": arguments}
    for name, value in (*asked["settings"].items(), *arguments.items()):
        if isinstance(value, (float, np.floating)) and not np.isfinite(value):
            raise Error(f"{name} is {value}, but a finite number is expected")
    try:
        return file, json.dumps(asked, default=_plain, allow_nan=False)
    except ValueError:
        raise Error("settings hold a number that is not finite") from None


def _flat(settings: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Settings by their whole names; of two with the same the later counts."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        name = f"{path}{name}"
        found = _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
        for each in found:
            flat.pop(each, None)
        flat |= found
    return flat


def _threads(threads: Any) -> int:
    """As many as asked for, or as ``LPGNN_THREADS`` says; 0 are all."""
    if threads is None:
        threads = os.environ.get("LPGNN_THREADS") or 0
    text = str(threads)
    if isinstance(threads, bool) or not (text.isascii() and text.isdecimal() and len(text) < 4):
        raise Error(f"threads is {threads!r}, but a number below 1000 is expected, 0 for as many as there are processors")
    return int(text)


def _is_dataset(data: Any) -> None:
    if not isinstance(data, Dataset):
        kind = type(data).__name__
        raise TypeError(f"data is a {kind}, but a Dataset is expected: lpgnn.read, lpgnn.from_arrays, … make one")


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy, as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} is no value of a setting")


def _evaluation(evaluation: dict[str, Any] | None) -> dict[str, Any]:
    if evaluation is None:
        return {}
    rest = {key: value for key, value in evaluation.items() if key != "parts"}
    return {**dict(evaluation["parts"]), **rest}


def _nested(evaluation: dict[str, Any]) -> dict[str, Any] | None:
    if not evaluation:
        return None
    parts = [[part, evaluation[part]] for part in ("train", "val", "test") if part in evaluation]
    rest = {key: value for key, value in evaluation.items() if key not in ("train", "val", "test")}
    return {"parts": parts, **rest}


def _of_bytes(data: bytes, history: list[dict[str, Any]], ending: dict[str, Any]) -> Model:
    return Model(_native.Model.from_bytes(data), history, ending)
