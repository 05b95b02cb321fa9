"""Run folders, to be read."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _native
from ._history import flat, frame_of_epochs
from ._model import Model
from ._records import RunRecord, run_record
from ._splits import split_dict


class Run:
    """The folder of a run, written by :func:`train` with ``out`` or by ``lpgnn train``. It is read, not changed."""

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
        """Which nodes or graphs are trained, validated and tested on."""
        split = self._native.split()
        return None if split is None else split_dict(split)

    @property
    def history(self) -> Any:
        """A pandas ``DataFrame`` with a row per epoch so far, also while it is under way."""
        return frame_of_epochs(self.epoch_records)

    @property
    def epoch_records(self) -> list[dict[str, Any]]:
        """The same as a list of flat records. What was not measured is not there."""
        return [flat(epoch) for epoch in json.loads(self._native.metrics())]

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do; :func:`resume` continues it otherwise."""
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

    def __repr__(self) -> str:
        state = "finished" if self.finished else "can be resumed"
        return f"<lpgnn.Run {self.folder}: {len(self.epoch_records)} epochs, {state}>"
