"""Training, cross-validation and search, by the library."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from typing import Any

import numpy as np

from . import _native
from ._arguments import check_dataset, document, request, space_request, thread_count
from ._columns import check_integer
from ._dataset import Dataset
from ._graphs import read
from ._history import flat
from ._model import Model
from ._native import Error
from ._progress import Progress, line_of
from ._records import (
    CrossvalReport,
    FoldRecord,
    SearchResult,
    SearchTrial,
    crossval_report,
    fold_record,
    search_result,
    search_trial,
)
from ._runs import Run

#: Logs, at level INFO, the columns of the training data.
LOGGER = logging.getLogger("lpgnn")

OnEpoch = Callable[[dict[str, Any]], object]


class Interrupted(KeyboardInterrupt):
    """Training, cross-validation or search was interrupted by Ctrl-C.

    ``model`` is the best model so far, for training; ``out`` is the folder in which it can be resumed, if there is one.
    """

    def __init__(self, message: str, model: Model | None = None, out: str | None = None) -> None:
        super().__init__(message)
        self.model = model
        self.out = out


@document
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
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    tensorboard: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    on_epoch: OnEpoch | None = None,
    progress: bool | None = None,
) -> Model:
    """Trains a model. Settings that are not given get defaults that fit the data and their split.

    ``solver`` is ``one-shot``, ``bdmm`` (the paper's), ``implicit``, ``unrolled`` (the original GNN), ``sse`` or
    ``augmented-lagrangian``; ``transition`` is
    ``gnn-sum``, ``gnn-mean``, ``gnn-normalized``, ``gin``, ``gcn-mean``, ``gcn`` or ``sage-max``. ``lr`` is the learning rate of
    the weights. The model is evaluated every ``eval_every`` epochs, and training stops early after ``patience`` evaluations
    without an improvement on the validation split by the metric ``monitor``; ``settings={"training.patience": None}`` trains
    all epochs. All other settings are given by name, as in ``settings={"training.lipschitz": 0.9}``; ``config`` is the path of a TOML file with settings.

    ``split`` is a dictionary with ``train``, ``val`` and ``test``: indices or masks of graphs, or of nodes if there is only
    one graph. Without it, the split of the data is used, or a random one; ``model.split`` has it. ``on_epoch`` is called with
    the record of every epoch, as ``model.epoch_records`` has them; training stops when it returns ``False``. ``progress`` shows a
    progress bar: by default, on a terminal and in a notebook. The same seed gives bit-identical results with any number of ``threads``.

    ``out`` is the folder of a run, to be read by :class:`Run` and continued by :func:`resume`; ``force`` replaces an
    existing run. ``tensorboard`` is a folder for event files, which TensorBoard shows. Ctrl-C raises
    :class:`Interrupted`, which has the best model so far.
    """
    asked = request(data, locals())
    for line in data.columns:
        LOGGER.info("%s", line)
    folder = None if out is None else os.fsdecode(out)
    with closing(Progress(progress, lambda: _epochs(data, asked), "epoch")) as shown:
        call = _on_event(on_epoch, shown)
        places = {"out": folder, "force": bool(force), "tensorboard": _path(tensorboard)}
        found = _native.train(data._native, asked, places, thread_count(threads), call)
    return _model(*found, folder)


def resume(
    folder: str | os.PathLike[str],
    data: Dataset | None = None,
    *,
    epochs: int | None = None,
    tensorboard: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    on_epoch: OnEpoch | None = None,
    progress: bool | None = None,
) -> Model:
    """Continues the run in a folder from its last checkpoint, bit-identical to an uninterrupted run.

    Larger ``epochs`` extend the run; otherwise, a run that has finished is returned unchanged. The data are read again unless
    they are given, and have to be the same. The split is that of the run. ``tensorboard`` is the folder that was passed to :func:`train`:
    earlier values for the epochs that are trained again are hidden.
    """
    run = Run(folder)
    if data is None:
        source, kind = run._native.source()
        try:
            data = read(source, format=kind)
        except FileNotFoundError as error:
            raise Error(f"data is missing: {run.folder} was trained on {source}, which cannot be read ({error})") from error
    check_dataset(data)
    if epochs is not None:
        check_integer("epochs", epochs, 1)
    total = (epochs or run.settings["training"]["epochs"]) - len(run.epoch_records)
    with closing(Progress(progress, lambda: max(total, 0), "epoch")) as shown:
        call = _on_event(on_epoch, shown)
        found = _native.resume(run.folder, data._native, (epochs, _path(tensorboard)), thread_count(threads), call)
    return _model(*found, run.folder)


def _model(native: _native.Model, interrupt: BaseException | None, folder: str | None) -> Model:
    model = Model(native)
    if interrupt is not None:
        where = "`except lpgnn.Interrupted as stop` has it as stop.model"
        again = "" if folder is None else f", and lpgnn.resume({folder!r}) continues"
        message = f"training was interrupted; the best model so far is that of epoch {model.epoch}: {where}{again}"
        raise Interrupted(message, model, folder)
    reason = model.stop_reason
    if reason.get("reason") == "diverged":
        what = f"training diverged in epoch {reason['epoch']}: {reason['variable']} are no longer finite"
        warnings.warn(f"{what}; try a smaller learning rate", RuntimeWarning, stacklevel=3)
    return model


@document
def crossval(
    data: Dataset,
    *,
    protocol: str = "best-mean-epoch",
    folds: int | Sequence[Mapping[str, Any]] = 10,
    fold_seed: int = 0,
    fold_files: str | os.PathLike[str] | None = None,
    seeds: Sequence[int] | None = None,
    space: Any = None,
    stages: int = 1,
    ensemble: int = 1,
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
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    on_epoch: OnEpoch | None = None,
    on_fold: Callable[[FoldRecord], object] | None = None,
    progress: bool | None = None,
) -> CrossvalReport | None:
    """Cross-validates by a named protocol, with the folds in parallel.

    ``protocol``
        ``"best-mean-epoch"``, the paper's: one epoch for all folds, selected by their mean, which is optimistic.
        ``"nested"``: the epoch, and the configuration of ``space`` if there is one, are selected on an inner split of the training
        data. ``"split"``: the mean over ``seeds`` on one split, that of the data or ``split``.
    ``folds``, ``fold_seed``, ``fold_files``
        The number of folds and the seed to draw them; or the folds, as returned by ``data.folds``; or a folder or file with them.
    ``stages``
        A deep network that is trained layer by layer: so many models one after the other, each with a read-out of its own, where nodes have,
        behind their features, ``f_a(x)`` of the model below, which does not move any more. The last one counts.
    ``ensemble``
        So many models per fold, with consecutive seeds: what is reported is what the mean of their predictions is worth. :func:`ensemble`
        makes such a model.
    ``out``
        The folder of the results. Completed folds in it are not repeated, and interrupted ones are resumed, so the same
        call continues a cross-validation. Without it, only the report is kept.

    ``on_epoch`` is called with the record of every epoch of every fold, identified by ``kind`` and ``number``, and
    stops everything when it returns ``False``: then ``None`` is returned. ``on_fold`` is called with the record of every completed fold.
    All other arguments are those of :func:`train`.
    """
    asked = request(data, locals())
    if (protocol == "split") != (seeds is not None):
        raise Error(f"protocol is {protocol!r:.100}, but seeds belong to the protocol \"split\", and only to it")
    if space is not None and protocol != "nested":
        raise Error(f"protocol is {protocol!r:.100}, but a space to select from requires \"nested\"")
    if split is not None and protocol != "split":
        raise Error(f"split is given, but the protocol is {protocol!r}, which has folds: pass them as folds=[…]")
    given = None
    if isinstance(folds, Sequence):
        given, folds = _given_folds(data, folds), 2
    check_integer("folds", folds, 2)
    check_integer("fold_seed", fold_seed, 0)
    check_integer("stages", stages, 1)
    check_integer("ensemble", ensemble, 1)
    how = {
        "protocol": protocol,
        "folds": int(folds),
        "fold_seed": int(fold_seed),
        "fold_files": None if fold_files is None else os.fsdecode(fold_files),
        "splits": given,
        "seeds": None if seeds is None else _seeds(seeds),
        "space": None if space is None else space_request(space),
        "stages": int(stages),
        "ensemble": int(ensemble),
    }
    count = len(given) if given else len(how["seeds"]) if how["seeds"] else None if fold_files else int(folds)
    with _folder(out) as folder, closing(Progress(progress, lambda: count, "fold")) as shown:

        def done(values: dict[str, Any]) -> None:
            record = fold_record(values)
            value = record.trial.test_value
            shown.step("" if value is None else f"test {value:.4f}")
            if on_fold is not None:
                on_fold(record)

        call = _on_experiment(on_epoch, done if on_fold is not None or shown.shown else None)
        found, interrupt = _native.crossval(data._native, asked, how, folder, thread_count(threads), call)
        _check_interrupt(interrupt, "cross-validation", out)
        return None if found is None else crossval_report(json.loads(found[0]), [json.loads(fold) for fold in found[1]])


@document
def search(
    data: Dataset,
    space: Any,
    *,
    budget: int | str | None = None,
    halving: int = 3,
    min_epochs: int = 20,
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
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    on_epoch: OnEpoch | None = None,
    on_trial: Callable[[SearchTrial], object] | None = None,
    progress: bool | None = None,
) -> SearchResult | None:
    """Searches hyperparameters on the validation split by successive halving, with the trials in parallel.

    ``space``
        A dictionary of settings, by name or as arguments, with a list of values each, as in ``{"lr": [0.001, 0.01], "layers": [1, 2]}``:
        all combinations, in random order. A range such as ``{"low": 1e-4, "high": 0.1, "log": True}`` makes it a random
        search; ``"integer": True`` draws integers. Also the path of a TOML file, ``"paper-nodes"`` or ``"paper-graphs"``.
    ``budget``
        A number of trials, or a duration such as ``"30s"``, ``"10m"``, ``"2h"``; by default the whole grid, or 32 random trials.
    ``halving``, ``min_epochs``
        One in ``halving`` trials continues to ``halving`` times as many epochs, starting from at least ``min_epochs``; 1 trains all to the end.
    ``out``
        The folder of the results; the same call continues a search. Without it, only the returned result is kept.

    ``on_epoch`` is called with the record of every epoch of every trial, identified by ``number``, and stops everything when it
    returns ``False``: then ``None`` is returned. ``on_trial`` is called with every trial at the end of a round. All other
    arguments are those of :func:`train`.
    """
    asked = request(data, locals())
    check_integer("halving", halving, 1)
    check_integer("min_epochs", min_epochs, 1)
    how = {
        "space": space_request(space),
        "budget": None if budget is None else str(budget),
        "halving": int(halving),
        "min_epochs": int(min_epochs),
    }
    with _folder(out) as folder, closing(Progress(progress, lambda: None, "trial")) as shown:

        def done(values: dict[str, Any]) -> None:
            trial = search_trial(values)
            shown.step("" if trial.value is None else f"val {trial.value:.4f}")
            if on_trial is not None:
                on_trial(trial)

        call = _on_experiment(on_epoch, done if on_trial is not None or shown.shown else None)
        found, interrupt = _native.search(data._native, asked, how, folder, thread_count(threads), call)
        _check_interrupt(interrupt, "search", out)
        return None if found is None else search_result(json.loads(found[0]), found[1], Model(found[2]))


def settings(
    data: Dataset,
    settings: Mapping[str, Any] | None = None,
    *,
    config: str | os.PathLike[str] | None = None,
    split: Mapping[str, Any] | None = None,
) -> str:
    """All settings for training on these data and this split, with a comment on each, as TOML."""
    asked = request(data, {"settings": settings, "config": config, "split": split})
    return _native.settings(data._native, asked)


def _epochs(data: Dataset, asked: Any) -> int | None:
    """The number of epochs that are going to be trained."""
    lines = _native.settings(data._native, asked).partition("[training]")[2].splitlines()
    return next((int(line.split()[2]) for line in lines if line.startswith("epochs = ")), None)


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fsdecode(path)


def _folder(out: str | os.PathLike[str] | None) -> Any:
    """The folder of results, or one that goes away."""
    return tempfile.TemporaryDirectory(prefix="lpgnn-") if out is None else nullcontext(os.fsdecode(out))


def _check_interrupt(interrupt: BaseException | None, what: str, out: str | os.PathLike[str] | None) -> None:
    if interrupt is not None:
        again = "pass out=DIR to be able to continue" if out is None else f"the same call continues in {os.fsdecode(out)}"
        raise Interrupted(f"the {what} was interrupted; {again}", out=None if out is None else os.fsdecode(out))


def _goes_on(answer: object) -> bool:
    return not isinstance(answer, (bool, np.bool_)) or bool(answer)


def _on_event(on_epoch: OnEpoch | None, shown: Progress) -> Callable[[str], bool] | None:
    """What is called with every epoch of a training."""
    if on_epoch is None and not shown.shown:
        return None

    def call(event: str) -> bool:
        record = flat(json.loads(event))
        shown.step(line_of(record))
        return on_epoch is None or _goes_on(on_epoch(record))

    return call


def _on_experiment(on_epoch: OnEpoch | None, done: Callable[[dict[str, Any]], None] | None) -> Callable[[str], bool] | None:
    """What is called with every epoch, and with every fold or trial that is done."""
    if on_epoch is None and done is None:
        return None

    def call(event: str) -> bool:
        values = json.loads(event)
        if "event" not in values:
            return on_epoch is None or _goes_on(on_epoch(flat(values)))
        if done is not None:
            done(values["record"])
        return True

    return call


def _given_folds(data: Dataset, folds: Sequence[Any]) -> list[Any]:
    """Folds as they are passed on."""
    if isinstance(folds, str) or not folds or not all(isinstance(each, Mapping) for each in folds):
        kinds = "an integer, or a list of splits such as data.folds() returns,"
        raise Error(f"folds is {folds!r:.100}, but {kinds} is expected; folds of scikit-learn are {{'train': …, 'test': …}} each")
    return [data._split_tuple(each) for each in folds]


def _seeds(seeds: Any) -> list[int]:
    if isinstance(seeds, (str, bytes)) or not isinstance(seeds, Iterable):
        raise Error(f"seeds is {seeds!r:.100}, but a list of integers is expected")
    seeds = list(seeds)
    for each in seeds:
        check_integer("seeds", each, 0)
    return [int(each) for each in seeds]
