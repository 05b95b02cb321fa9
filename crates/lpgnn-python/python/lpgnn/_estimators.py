"""Estimators with the interface of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import assert_all_finite, check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from . import _native
from ._arguments import _flat, request, worker_threads
from ._columns import NO_TARGET, DataWarning, check_precision, class_values, note_order, single
from ._dataset import Dataset
from ._graphs import note_positions
from ._model import Model
from ._native import Error
from ._progress import Progress
from ._samples import Attributes, Samples, adjacency, are_graphs, dataset_of, flat_targets, has_words, is_networkx, nodes_of, rows_as_graphs
from ._train import _epochs, _model, _on_event

#: The parameters that are arguments of :func:`train`.
TRAINING = ("epochs", "solver", "lr", "transition", "state_dim", "hidden_dims", "layers", "batch_size", "patience", "monitor")


class _Continuation:
    """What training goes on from; it can be pickled."""

    def __init__(self, model: Model, start: _native.WarmStart) -> None:
        self.model, self.start = model, start

    def __reduce__(self) -> tuple[Any, ...]:
        return _continuation_of, (self.model, self.start.to_bytes())


def _continuation_of(model: Model, start: bytes) -> _Continuation:
    return _Continuation(model, _native.WarmStart.from_bytes(start, model._native))


class _Estimator(BaseEstimator):
    """What all four have in common: samples to data sets, training and going on with it."""

    #: ``"graph"`` or ``"node"``: what is predicted.
    _level = "graph"

    def _store(self, parameters: dict[str, Any]) -> None:
        for name, value in parameters.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    # Samples

    def _samples(self, X: Any, *, reset: bool, nodes: Any = None) -> Samples:
        """The samples that ``X`` has, whatever it is."""
        attributes: Attributes = (self.x, self.edge_attr)
        level = self._level
        if level == "node" and getattr(self, "graph", None) is not None:
            if are_graphs(X):
                raise Error("X has graphs, but indices or a mask of the nodes of the parameter graph are expected")
            data = adjacency(self.graph, attributes)
            if is_networkx(self.graph) and np.asarray(X).dtype != bool:
                note_positions(list(self.graph.nodes), "X", 4)
            return Samples(data, level, nodes_of(X, data, "X"))
        table = None
        if are_graphs(X):
            data = dataset_of(X, "X", attributes)
        elif isinstance(X, (list, tuple)) and len(X) == 0:
            raise Error("X is empty, but at least one graph is expected")
        elif has_words(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            data = rows_as_graphs(X)
        else:
            table = validate_data(self, X, reset=reset, dtype=np.float64)
            data = rows_as_graphs(table)
        count = data.num_nodes if level == "node" else len(data)
        return Samples(data, level, np.arange(count) if nodes is None else nodes_of(nodes, data, "nodes"), table)

    def _with_targets(self, X: Any, y: Any, nodes: Any) -> tuple[Any, Any, Any]:
        """Samples and their targets. Without ``y``, they are those of a data set that have one."""
        if y is not None:
            return X, y, nodes
        if not isinstance(X, Dataset):
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        column = X._native.parts()[5 if self._level == "node" else 6]
        if column is None:
            raise Error(f"y is None, and {X.name} has no targets of {self._level}s")
        if len(column) == 2:
            table = column[1][:, 0] if column[1].shape[1] == 1 else column[1]
            known = np.isfinite(column[1]).any(axis=1)
        else:
            known = column[2] != NO_TARGET
            table = class_values(column[1])[np.where(known, column[2], 0)]
        if self._level == "node":
            rows = np.arange(X.num_nodes) if nodes is None else nodes_of(nodes, X, "nodes")
            rows = rows[known[rows]]
            return X, table[rows], rows
        return (X if known.all() else X[known]), table[known], None

    # Training

    def _fit(self, X: Any, y: Any, sample_weight: Any, nodes: Any, *, epochs: int | None = None, classes: Any = None) -> Any:
        """Trains for ``epochs``, from where training ended if it is to; ``None``: all of them, and from there only if it is a warm start."""
        after = getattr(self, "_state", None) if epochs is not None or self.warm_start else None
        note_order(X, y)
        if nodes is None:
            self._note_split(X)
        # Of the targets of a data set, single entries may be missing.
        own_targets = y is None
        X, y, nodes = self._with_targets(X, y, nodes)
        samples = self._samples(X, reset=after is None, nodes=nodes)
        y = flat_targets(y, samples)
        check_consistent_length(samples, y)
        targets = self._targets(y, classes, after is None) if not own_targets else self._own_targets(y, classes, after is None)
        own = samples.data._native.weights
        if sample_weight is None and own is not None and own[0] == samples.level:
            sample_weight = own[1][samples.rows]
        weights = _weights(sample_weight, len(samples))
        weights = self._weigh(targets, weights, partial=epochs is not None)
        if samples.level == "graph" or samples.table is not None:
            samples, targets, weights = _merged(samples, targets, weights)
        data = self._labelled(samples, targets, weights)
        self._train(data, after, epochs, self._split(data, samples))
        return self

    def _note_split(self, X: Any) -> None:
        """Warns of a split of the samples, because all of them are trained on."""
        split = X.split if isinstance(X, Dataset) else None
        if split is not None and split["level"] == self._level and (len(split["val"]) or len(split["test"])):
            some = "nodes=X.split['train']" if self._level == "node" else "X[X.split['train']]"
            text = f"X has a split, which is not used: all {self._level}s with a target are trained on; pass {some} for those of its train part"
            warnings.warn(text, DataWarning, stacklevel=4)

    def _train(self, data: Dataset, after: _Continuation | None, epochs: int | None, split: Any) -> None:
        given = {name: getattr(self, name) for name in TRAINING}
        if self.settings is not None and not isinstance(self.settings, Mapping):
            raise Error(f"settings is {self.settings!r:.100}, but a dictionary of settings is expected")
        settings = _flat(self.settings or {})
        if "training.seed" in settings:
            raise Error("settings: training.seed has no effect: random_state is the seed")
        if split is None:
            settings |= {"split.source": "ratio", "split.train": 1 - self.validation_fraction}
            settings |= {"split.val": self.validation_fraction, "split.test": 0.0}
        if after is None:
            seed = self.random_state
            given["seed"] = seed if isinstance(seed, (int, np.integer)) else int(check_random_state(seed).randint(2**31 - 1))
        asked = request(data, {**given, "settings": settings, "split": split})
        before = None if after is None else (after.model._native, after.start)
        if after is not None and epochs is None:
            epochs = _epochs(data, asked)
        with closing(Progress(bool(self.verbose), lambda: epochs or _epochs(data, asked), "epoch")) as shown:
            call = _on_event(None, shown)
            native, start, interrupt = _native.train_from(
                data._native, asked, before, epochs, worker_threads(self.threads), call
            )
        self.model_ = Model(native)
        self.n_iter_ = start.epoch
        self._state = _Continuation(self.model_, start)
        _model(native, interrupt, None)

    def _labelled(self, samples: Samples, targets: Any, weights: np.ndarray) -> Dataset:
        """The graphs with the targets of the samples and no others."""
        rows = samples.data.num_nodes if samples.level == "node" else len(samples.data)
        column = self._column(targets, samples.rows, rows)
        node, graph = (column, None) if samples.level == "node" else (None, column)
        native = samples.data._native.with_split(None).with_weights(None).with_targets(node, graph)
        if (weights != 1).any() or len(np.unique(samples.rows)) < len(samples):
            of_rows = np.zeros(rows, dtype=np.float32)
            np.add.at(of_rows, samples.rows, weights)
            native = native.with_weights((samples.level, of_rows))
        return Dataset(native)

    def _split(self, data: Dataset, samples: Samples) -> dict[str, Any] | None:
        """All samples are trained on, unless some are to be drawn for validation."""
        rows = np.unique(samples.rows)
        if not self.early_stopping:
            return {"level": samples.level, "train": rows}
        if not 0 < self.validation_fraction < 1:
            raise Error(f"validation_fraction is {self.validation_fraction}, but a number between 0 and 1 is expected")
        held_out = round(self.validation_fraction * len(rows))
        if not 0 < held_out < len(rows):
            found = f"{held_out} of {len(rows)} different samples"
            raise Error(f"early_stopping holds out {found}, but at least one is needed to validate and one to train")
        if samples.level == "graph" or len(samples.data) == 1:
            # Drawn by the library, so that every class is held out in proportion.
            return None
        order = rows[check_random_state(self.random_state).permutation(len(rows))]
        return {"level": samples.level, "train": np.sort(order[held_out:]), "val": np.sort(order[:held_out])}

    # Using it

    def _predict(self, X: Any, nodes: Any = None) -> tuple[np.ndarray, np.ndarray | None]:
        """Outputs and probabilities of the samples."""
        check_is_fitted(self, "model_")
        samples = self._samples(X, reset=False, nodes=nodes)
        found = self.model_.predict(samples.data, threads=worker_threads(self.threads))
        if not found.converged.all():
            count = int((~found.converged).sum())
            text = f"the states of {count} of {len(found.converged)} graphs have not converged: do not trust their predictions"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        rows = samples.rows
        return found.outputs[rows], None if found.probabilities is None else found.probabilities[rows]

    def _expected(self, X: Any, y: Any, nodes: Any) -> tuple[Any, Any, Any]:
        """Samples, their targets one by one, and which nodes they are."""
        X, y, nodes = self._with_targets(X, y, nodes)
        return X, flat_targets(y, self._samples(X, reset=False, nodes=nodes)), nodes

    # What subclasses know

    def _targets(self, y: Any, classes: Any, first: bool) -> np.ndarray:
        """Targets as numbers: codes of classes, or a row of real values each."""
        raise NotImplementedError

    def _own_targets(self, y: np.ndarray, classes: Any, first: bool) -> np.ndarray:
        """The same of targets of a data set."""
        return self._targets(y, classes, first)

    def _column(self, targets: np.ndarray, rows: np.ndarray, count: int) -> tuple[Any, ...]:
        """The column of targets of ``count`` nodes or graphs of which ``rows`` have one."""
        raise NotImplementedError

    def _weigh(self, targets: np.ndarray, weights: np.ndarray, *, partial: bool) -> np.ndarray:
        return weights


class _Classifier(ClassifierMixin, _Estimator):
    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of every sample."""
        return self._classes_of(self._predict(X)[1])

    def _classes_of(self, probabilities: np.ndarray) -> np.ndarray:
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of every class, in the order of ``classes_``, for every sample."""
        return self._predict(X)[1]

    def _score(self, X: Any, y: Any, sample_weight: Any, nodes: Any = None) -> float:
        X, expected, nodes = self._expected(X, y, nodes)
        predicted = self._classes_of(self._predict(X, nodes)[1])
        return float(accuracy_score(expected, predicted, sample_weight=sample_weight))

    def _targets(self, y: Any, classes: Any, first: bool) -> np.ndarray:
        y = column_or_1d(y, warn=True)
        missing = [row for row, each in enumerate(y.tolist()) if each is None] if y.dtype == object else []
        if missing:
            raise ValueError(f"y is None in row {missing[0]}, but a class is expected: leave out samples without one.")
        assert_all_finite(y, input_name="y", estimator_name=type(self).__name__)
        check_classification_targets(y)
        if first:
            self.classes_ = np.unique(y if classes is None else np.asarray(classes))
            if len(self.classes_) < 2:
                raise ValueError(f"y has one class only, {self.classes_.tolist()[0]!r}, but at least two classes are expected.")
        codes = np.searchsorted(self.classes_, y)
        codes[codes == len(self.classes_)] = 0
        if (self.classes_[codes] != y).any():
            known = ", ".join(map(str, self.classes_[:12]))
            unknown = y[self.classes_[codes] != y].tolist()[0]
            raise ValueError(f"y has the class {unknown!r}, but the classes that training began with are {known}.")
        return codes

    def _weigh(self, targets: np.ndarray, weights: np.ndarray, *, partial: bool) -> np.ndarray:
        given = self.class_weight
        if given is not None:
            if partial and given == "balanced":
                raise Error('class_weight is "balanced", which is not known of data that come in parts: pass a dictionary')
            if isinstance(given, Mapping):
                classes = self.classes_.tolist()
                unknown = [each for each in given if each not in classes]
                if unknown and any(each not in given for each in classes):
                    raise Error(f"class_weight has {unknown[0]!r}, but the classes are {', '.join(map(str, classes[:12]))}")
                by_class = np.array([given.get(each, 1.0) for each in classes], dtype=np.float64)
            elif given == "balanced":
                totals = np.bincount(targets, weights=weights, minlength=len(self.classes_))
                present = totals > 0
                by_class = np.where(present, weights.sum() / (present.sum() * np.where(present, totals, 1)), 0)
            else:
                raise Error(f'class_weight is {given!r:.100}, but a dictionary of classes, "balanced" or None is expected')
            if not (np.isfinite(by_class) & (by_class >= 0)).all():
                raise Error("class_weight has numbers that are negative or not finite")
            weights = weights * by_class[targets]
        if not partial and len(np.unique(targets[weights > 0])) < 2:
            raise ValueError("Only one class has samples of positive weight, but at least two classes are expected.")
        return weights

    def _column(self, targets: np.ndarray, rows: np.ndarray, count: int) -> tuple[Any, ...]:
        codes = np.full(count, NO_TARGET, dtype=np.uint32)
        codes[rows] = targets
        names = [str(each) for each in self.classes_.tolist()]
        if len(set(names)) < len(names):
            names = [str(code) for code in range(len(names))]
        return "y", names, codes


class _Regressor(RegressorMixin, _Estimator):
    def predict(self, X: Any) -> np.ndarray:
        """The predicted value, or row of values, of every sample."""
        return self._values(self._predict(X)[0])

    def _values(self, outputs: np.ndarray) -> np.ndarray:
        outputs = outputs.astype(np.float64)
        return outputs[:, 0] if self._single else outputs

    def _score(self, X: Any, y: Any, sample_weight: Any, nodes: Any = None) -> float:
        own_targets = y is None
        X, expected, nodes = self._expected(X, y, nodes)
        predicted = self._values(self._predict(X, nodes)[0])
        if not own_targets or np.isfinite(expected).all():
            return float(r2_score(expected, predicted, sample_weight=sample_weight))
        weights = _weights(sample_weight, len(expected))
        known = np.isfinite(expected)
        each = zip(expected.T, predicted.T, known.T)
        return float(np.mean([r2_score(y[at], found[at], sample_weight=weights[at]) for y, found, at in each if at.any()]))

    def _targets(self, y: Any, classes: Any, first: bool) -> np.ndarray:
        table = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self)
        return self._own_targets(table, classes, first)

    def _own_targets(self, y: np.ndarray, classes: Any, first: bool) -> np.ndarray:
        table = single(y).reshape(len(y), -1)
        if np.isinf(table).any():
            raise ValueError("y has values that are too large for single precision: multiply by a constant.")
        for column in np.asarray(y, dtype=np.float64).reshape(len(y), -1).T:
            check_precision(column, "y")
        if first:
            self._single, self.n_outputs_ = np.ndim(y) == 1, table.shape[1]
        if table.shape[1] != self.n_outputs_:
            raise ValueError(f"y has {table.shape[1]} columns, but training began with {self.n_outputs_}.")
        return table

    def _column(self, targets: np.ndarray, rows: np.ndarray, count: int) -> tuple[Any, ...]:
        table = np.full((count, targets.shape[1]), np.nan, dtype=np.float32)
        table[rows] = targets
        names = ["y"] if targets.shape[1] == 1 else [f"y{at}" for at in range(targets.shape[1])]
        return names, table

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _weights(sample_weight: Any, count: int) -> np.ndarray:
    """One weight per sample."""
    if sample_weight is None:
        return np.ones(count)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(count, float(weights))
    if weights.shape != (count,):
        raise ValueError(f"sample_weight has the shape {list(weights.shape)}, but one weight per sample is expected: {count}.")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight has numbers that are negative or not finite.")
    if not weights.any():
        raise ValueError("sample_weight is zero for all samples: at least one non-zero weight is expected.")
    return weights


def _merged(samples: Samples, targets: np.ndarray, weights: np.ndarray) -> tuple[Samples, np.ndarray, np.ndarray]:
    """Leaves out graphs that count nothing. Equal rows of an array with equal targets are one that counts as much as all of them."""
    used = np.flatnonzero(weights > 0)
    if samples.table is not None:
        table = samples.table[samples.rows]
        rows = np.column_stack([table[used], targets.reshape(len(targets), -1)[used]])
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        weights = np.bincount(place.reshape(-1), weights=weights[used])
        used = used[first]
        table = table[used]
        return Samples(rows_as_graphs(table), samples.level, np.arange(len(used)), table), targets[used], weights
    if len(used) == len(weights):
        return samples, targets, weights
    return Samples(samples.data[used], samples.level, np.arange(len(used))), targets[used], weights[used]
