"""The memory limit of this process."""

from __future__ import annotations

import numbers
import os

from . import _native


def set_max_memory(size: int | str) -> None:
    """Sets the maximum memory of this process: a number of bytes, or a size such as ``"800M"`` or ``"4G"``.

    An allocation that would exceed it raises :class:`Error`. It applies to all threads, from now on. By default it
    is ``LPGNN_MAX_MEMORY``, or else 80 % of what is available when it is first needed.
    """
    if isinstance(size, bool) or not isinstance(size, (str, numbers.Integral)):
        raise TypeError(f"size is {size!r:.100}, but a number of bytes or a size such as \"4G\" is expected")
    _native.set_max_memory(size if isinstance(size, str) else str(int(size)))


def get_max_memory() -> int:
    """The maximum memory of this process, in bytes."""
    return _native.get_max_memory()


if os.environ.get("LPGNN_MAX_MEMORY"):
    set_max_memory(os.environ["LPGNN_MAX_MEMORY"])
