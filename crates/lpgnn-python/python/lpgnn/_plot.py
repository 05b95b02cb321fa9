"""Pictures of training, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._native import Error
from ._splits import SPLITS

if TYPE_CHECKING:
    from ._model import Model

#: The colour of every split, distinguishable without colour vision too.
COLOURS = {"train": "#0072b2", "val": "#e69f00", "test": "#009e73"}
STYLES = {"train": "-", "val": "--", "test": ":"}


def plot(model: Model, axes: Any = None) -> Any:
    """See :meth:`Model.plot`."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("model.plot needs matplotlib, which is not installed: pip install matplotlib") from None
    records = model.epoch_records
    if not records:
        raise Error("the file of this model has no history of its training")
    panels = [panel for name, panel in PANELS.items() if any(name in record for record in records)]
    if axes is None:
        _, axes = pyplot.subplots(1, len(panels), figsize=(3.6 * len(panels), 3.2), layout="constrained", squeeze=False)
    axes = np.ravel(axes)
    if len(axes) != len(panels):
        raise Error(f"axes has {len(axes)} axes, but {len(panels)} are needed, one per picture")
    for axis, panel in zip(axes, panels):
        panel(axis, records)
        axis.axvline(model.epoch, color="0.6", linewidth=0.8, zorder=0)
        axis.set_xlabel("epoch")
        axis.set_xlim(0, records[-1]["epoch"] * 1.02)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="0.92")
        axis.set_axisbelow(True)
    return axes[0].figure


def column(records: list[dict[str, Any]], name: str) -> tuple[list[int], list[float]]:
    """The epochs in which something was measured, and what."""
    found = [(record["epoch"], record[name]) for record in records if record.get(name) is not None]
    return [epoch for epoch, _ in found], [value for _, value in found]


def _line(axis: Any, records: list[dict[str, Any]], name: str, factor: float = 1.0, **style: Any) -> None:
    epochs, values = column(records, name)
    if epochs:
        marker = "o" if len(epochs) == 1 else None
        axis.plot(epochs, np.multiply(factor, values), marker=marker, markersize=3, linewidth=1.5, **style)


def _splits(axis: Any, records: list[dict[str, Any]], metric: str, factor: float = 1.0) -> None:
    for split in SPLITS:
        _line(axis, records, f"{split}_{metric}", factor, label=split, color=COLOURS[split], linestyle=STYLES[split])
    axis.legend(frameon=False)


def _loss(axis: Any, records: list[dict[str, Any]]) -> None:
    _splits(axis, records, "loss")
    axis.set_title("mean loss")


def _accuracy(axis: Any, records: list[dict[str, Any]]) -> None:
    _splits(axis, records, "accuracy", 100)
    axis.set_title("accuracy in %")


def _residual(axis: Any, records: list[dict[str, Any]]) -> None:
    _line(axis, records, "residual_max", label="maximum", color="#d55e00", linestyle="--")
    _line(axis, records, "residual_mean", label="mean", color="#0072b2")
    if any(value > 0 for value in column(records, "residual_mean")[1]):
        axis.set_yscale("log")
    axis.set_title("residual |x − f(x)|")
    axis.legend(frameon=False)


def _gap(axis: Any, records: list[dict[str, Any]]) -> None:
    axis.axhline(0, color="0.6", linewidth=0.8)
    _line(axis, records, "cheating_gap", 100, color="#cc79a7")
    # A fraction of a point is noise.
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, -1), max(high, 1))
    axis.set_title("cheating gap in points")


#: The pictures, by what has to be measured for them.
PANELS = {"train_loss": _loss, "train_accuracy": _accuracy, "residual_mean": _residual, "cheating_gap": _gap}
