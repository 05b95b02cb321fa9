"""Records of runs, cross-validations and searches: typed, and read-only.

The fields are those of the library's records.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar

from ._history import evaluation_of, numbers
from ._model import Model

T = TypeVar("T")

#: Fields that hold what users have written, not numbers.
NAMES = ("classes", "value_names", "config", "changes", "not_default", "settings", "data")


def _of(kind: type[T], values: dict[str, Any], **more: Any) -> T:
    """A record from JSON; absent values are ``None``."""
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    given = {name: value if name in NAMES else numbers(value) for name, value in values.items() if name in known} | more
    return kind(**{name: given.get(name) for name in known})


@dataclass(frozen=True)
class RunRecord:
    """The record of a run."""

    #: Software and commit that computed it.
    versions: dict[str, Any]
    #: The machine that computed it.
    machine: dict[str, Any]
    #: The date on which it ended, in UTC, as in 2024-02-29.
    date: str
    #: Name and fingerprint of the training data.
    data: dict[str, str]
    #: ``"node"`` or ``"graph"``: what is predicted.
    task: str
    #: The names of the classes; ``None`` for real values.
    classes: list[str] | None
    #: The names of the real values; empty for classes.
    value_names: list[str]
    #: All settings, as used.
    config: dict[str, Any]
    #: Settings that were changed when the run was resumed; ``None`` if none were.
    changes: list[dict[str, Any]] | None
    #: Settings that differ from the defaults for the data; the defaults are ``before``.
    not_default: list[dict[str, Any]]
    #: The random seed.
    seed: int
    #: Number of weights of the model.
    weights: int
    #: Why training stopped.
    stop_reason: dict[str, Any]
    #: Number of completed epochs.
    epochs: int
    #: The epoch of the weights.
    best_epoch: int
    #: How long training took.
    seconds: float
    #: The distribution of seconds per epoch.
    epoch_seconds: dict[str, Any] | None
    #: The last epoch, as it was reported.
    last_epoch: dict[str, Any] | None
    #: How many training nodes and graphs met the constraints, and which graphs did not.
    constraints: dict[str, Any] | None
    #: The evaluation during training at the epoch of the weights.
    evaluation: dict[str, Any] | None
    #: The accuracy of the majority class on the test split.
    majority: float | None
    #: The MLP without edges that was trained for comparison.
    baseline: dict[str, Any] | None
    #: The distribution of ``|λ|`` when training stopped.
    multipliers: dict[str, Any] | None
    #: The evaluation of the saved model on all graphs.
    final_evaluation: dict[str, Any]

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of every split by its name, as ``model.evaluation`` has them."""
        return evaluation_of({"evaluation": self.evaluation, "final_evaluation": self.final_evaluation})


@dataclass(frozen=True)
class TrialRecord:
    """One training of a cross-validation or a search. Values are accuracies, or negative losses, unless training monitors
    another metric: larger is better."""

    #: The metric of all values; ``"auto"`` for accuracies and negative losses.
    metric: str
    #: The epochs at which it was evaluated, and its values there.
    epochs: list[int]
    val: list[float]
    test: list[float]
    #: The best epoch by the validation split, or the last one, and the values there.
    best_epoch: int
    val_value: float | None
    test_value: float | None
    cheating_gap: float | None
    #: Why it stopped; ``None`` while there are epochs left.
    stop_reason: dict[str, Any] | None
    #: Graphs that did not converge at the last evaluation.
    not_converged: int
    #: The mean residual of the last epoch.
    residual: float | None
    #: How far the states that its value was read from are from their fixed point at most, in graphs that have a bound, and the
    #: number of graphs that have none.
    distance: float | None
    unbounded: int
    #: How many models made its predictions together; 1 for a model alone.
    ensemble: int
    seconds: float


@dataclass(frozen=True)
class FoldRecord:
    """A fold of a cross-validation, or a seed of one split."""

    #: ``"fold"`` or ``"seed"``, and its number.
    kind: str
    number: int
    #: The index of the configuration that was selected.
    candidate: int
    trial: TrialRecord
    #: The MLP without edges: the epochs of its evaluations, its values on the test split, and the selected one.
    baseline_epochs: list[int]
    baseline_test: list[float]
    baseline_value: float | None
    #: The accuracy of the majority class.
    majority: float | None


@dataclass(frozen=True)
class MeanAndStd:
    """A mean over folds and its standard deviation."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.std:.4f}"


@dataclass(frozen=True)
class CrossvalReport:
    """The result of a cross-validation. Values are accuracies, or negative losses, unless training monitors another
    metric: larger is better."""

    data: str
    protocol: str
    #: The metric of all values; ``"auto"`` for accuracies and negative losses.
    metric: str
    #: Number of folds.
    folds: int
    #: How many models made the predictions of a fold together; 1 if there are no ensembles.
    ensemble: int
    seed: int
    #: The epoch selected for all folds, if the protocol does so.
    epoch: int | None
    #: Mean and standard deviation on the test splits.
    test: MeanAndStd
    #: The values of the folds, in order.
    values: list[float]
    #: The MLP without edges.
    baseline: MeanAndStd
    #: The majority class, where values are accuracies.
    majority: MeanAndStd | None
    diverged: int
    not_converged: int
    #: The mean residual of the last epoch, over folds.
    residual: float | None
    #: How far the states that the values were read from are from their fixed point at most, in graphs that have a bound, in
    #: any fold, and the number of graphs that have none.
    distance: float | None
    unbounded: int
    cheating_gap: float | None
    seconds: float
    #: The records of the folds, in order.
    records: list[FoldRecord]


@dataclass(frozen=True)
class SearchTrial:
    """A trial of a search that has completed a round."""

    #: Its number, from 1.
    trial: int
    #: The number of epochs it was trained for.
    epochs: int
    #: The settings that it changed, with their values.
    settings: dict[str, str]
    result: TrialRecord

    @property
    def value(self) -> float | None:
        """What trials are ranked by: the value on the validation split."""
        return self.result.val_value


@dataclass(frozen=True)
class SearchResult:
    """The result of a search, selected on the validation split alone."""

    #: The metric of all values; ``"auto"`` for accuracies and negative losses.
    metric: str
    #: The number of the winner, from 1, and its value on the validation split.
    trial: int
    val: float | None
    #: The winner on the test split, which is evaluated only once.
    test_of_the_winner: float | None
    #: Whether all rounds were completed within the time budget.
    complete: bool
    #: All trials, the best first.
    ranked: list[SearchTrial]
    #: All settings of the winner as TOML; ``train(config=…)`` reads it from a file.
    best_settings: str
    #: The model of the winner.
    model: Model


def run_record(values: dict[str, Any]) -> RunRecord:
    """The record of a run."""
    return _of(RunRecord, values)


def fold_record(values: dict[str, Any]) -> FoldRecord:
    """The record of a fold."""
    return _of(FoldRecord, values, trial=_of(TrialRecord, values["trial"]))


def search_trial(values: dict[str, Any]) -> SearchTrial:
    """A trial of a search."""
    return _of(SearchTrial, values, settings=dict(values["settings"]), result=_of(TrialRecord, values["result"]))


def crossval_report(values: dict[str, Any], folds: list[dict[str, Any]]) -> CrossvalReport:
    """The report of a cross-validation."""

    def mean(name: str) -> MeanAndStd | None:
        return None if values[name] is None else _of(MeanAndStd, values[name])

    means = {name: mean(name) for name in ("test", "baseline", "majority")}
    return _of(CrossvalReport, values, records=[fold_record(fold) for fold in folds], **means)


def search_result(values: dict[str, Any], best_settings: str, model: Model) -> SearchResult:
    """The result of a search."""
    ranked = [search_trial(trial) for trial in values["ranked"]]
    return _of(SearchResult, values, ranked=ranked, best_settings=best_settings, model=model)
