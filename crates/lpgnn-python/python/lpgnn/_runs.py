"""Run folders."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from . import _native
from ._arguments import check_dataset, thread_count
from ._dataset import Dataset
from ._history import flat, frame_of_epochs
from ._model import Model
from ._native import Error
from ._records import RunRecord, run_record
from ._splits import split_dict


class Run:
    """The folder of a run, written by :func:`train` with ``out`` or by ``lpgnn train``. Read-only."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fsdecode(folder)
        self._native = _native.Run(self._folder)

    @property
    def folder(self) -> str:
        """Its path."""
        return self._folder

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, as used."""
        return json.loads(self._native.settings())

    @property
    def split(self) -> dict[str, Any] | None:
        """The nodes or graphs of the training, validation and test split."""
        split = self._native.split()
        return None if split is None else split_dict(split)

    @property
    def history(self) -> Any:
        """A pandas ``DataFrame`` with a row per epoch so far, also during training."""
        return frame_of_epochs(self.epoch_records)

    @property
    def epoch_records(self) -> list[dict[str, Any]]:
        """The same as a list of flat records. Values that were not measured are absent."""
        return [flat(epoch) for epoch in json.loads(self._native.metrics())]

    @property
    def finished(self) -> bool:
        """Whether training has finished; otherwise :func:`resume` continues it."""
        return self._native.finished()

    @property
    def record(self) -> RunRecord | None:
        """Its record; ``None`` until it has finished or was stopped."""
        record = self._native.record()
        return None if record is None else run_record(json.loads(record))

    @property
    def model(self) -> Model:
        """Its model."""
        return Model(self._native.model())

    def report(
        self,
        path: str | os.PathLike[str] = "report.html",
        data: Dataset | None = None,
        *,
        compare: Sequence[Run | str | os.PathLike[str]] = (),
    ) -> None:
        """Writes a page of charts on it: one HTML file, which needs no network.

        With its ``data``, the page has pictures of the graphs, or of the neighbourhoods of the nodes, on which the model is
        most wrong and most uncertain. ``compare`` are other runs, to be overlaid.
        """
        if data is not None:
            check_dataset(data)
        if not compare:
            self._native.report(os.fsdecode(path), None if data is None else data._native, thread_count(None))
            return
        if data is not None:
            raise Error("data and compare are both given, but graphs are drawn of one run only")
        others = [other.folder if isinstance(other, Run) else os.fsdecode(other) for other in compare]
        _native.report([self.folder, *others], os.fsdecode(path))

    def __repr__(self) -> str:
        state = "finished" if self.finished else "can be resumed"
        return f"<lpgnn.Run {self.folder}: {len(self.epoch_records)} epochs, {state}>"
