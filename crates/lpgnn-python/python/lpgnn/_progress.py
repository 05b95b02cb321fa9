"""Progress on the terminal and in notebooks."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any


class Progress:
    """A line that follows epochs: tqdm's if it is installed, otherwise its own."""

    def __init__(self, shown: bool | None, total: Callable[[], int | None], unit: str) -> None:
        """``None`` shows it on a terminal and in a notebook only."""
        self._bar: Any = None
        self._shown = (sys.stderr is not None and sys.stderr.isatty() or _in_notebook()) if shown is None else shown
        if not self._shown:
            return
        try:
            with warnings.catch_warnings():
                # Without ipywidgets the bar is text, which is no reason to ask for them.
                warnings.filterwarnings("ignore", message="IProgress not found")
                from tqdm.auto import tqdm
        except ImportError:
            self._bar = _Line(total(), unit)
        else:
            self._bar = tqdm(total=total(), unit=unit, leave=False)

    @property
    def shown(self) -> bool:
        """Whether there is one."""
        return self._shown

    def step(self, text: str) -> None:
        """One more is done, of which this is to be said."""
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(1)

    def close(self) -> None:
        """Takes the line away."""
        if self._bar is not None:
            self._bar.close()


class _Line:
    """One line on the terminal, written over and over."""

    def __init__(self, total: int | None, unit: str) -> None:
        self._done, self._total, self._unit, self._text = 0, total, unit, ""

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        self._text = text

    def update(self, count: int) -> None:
        self._done += count
        of = "" if self._total is None else f" of {self._total}"
        sys.stderr.write(f"\r\x1b[K{self._unit} {self._done}{of}  {self._text}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    shell = shell.get_ipython() if shell is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def line_of(record: dict[str, Any]) -> str:
    """What is to be said of an epoch."""
    said = [f"loss {record['loss_sum']:.4g}", f"residual {record['residual_mean']:.1e}"]
    for split in ("train", "val"):
        if (accuracy := record.get(f"{split}_accuracy")) is not None:
            said.append(f"{split} {100 * accuracy:.1f} %")
        elif (loss := record.get(f"{split}_loss")) is not None:
            said.append(f"{split} {loss:.4g}")
    return "  ".join(said)
