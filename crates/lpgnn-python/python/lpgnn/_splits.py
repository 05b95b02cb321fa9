"""Splits as dictionaries, and as the extension module takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._columns import array_of, shape_of
from ._native import Error

#: ``"node"`` or ``"graph"``, and the indices of the train, val and test splits.
SplitTuple = tuple[str, list[int], list[int], list[int]]
SPLITS = ("train", "val", "test")


def split_tuple(split: Mapping[str, Any], graphs: int, nodes: int, level: str) -> SplitTuple:
    """A split as the extension module takes it."""
    if not isinstance(split, Mapping):
        raise Error("a split has to be a dictionary with train, val and test")
    unknown = [key for key in split if key not in ("level", *SPLITS)]
    if unknown:
        raise Error(f"a split has {unknown}, but level, train, val and test are expected")
    level = split.get("level") or level
    if level not in ("node", "graph"):
        raise Error(f"the level of a split is {level!r:.100}, but \"node\" or \"graph\" is expected")
    count = graphs if level == "graph" else nodes
    return level, *(indices(split.get(name, []), name, count, level) for name in SPLITS)


def indices(found: Any, what: str, count: int, level: str) -> list[int]:
    """The indices of nodes or graphs, from indices or from a mask."""
    found = array_of(list(found) if isinstance(found, range) else found, what)
    if found.dtype == bool or (found.dtype == np.uint8 and found.shape == (count,) and found.max(initial=0) <= 1):
        if found.shape != (count,):
            raise Error(f"{what} is a mask, {shape_of(found)}, but one entry per {level} is expected: {count}")
        return np.flatnonzero(found).tolist()
    if found.size == 0:
        return []
    if found.dtype.kind in "iu" and found.shape == (count,) and count > 2 and set(np.unique(found)) <= {0, 1}:
        raise Error(f"{what} has {count} zeros and ones, which as indices are two {level}s: convert a mask to booleans")
    if found.ndim != 1 or found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= count:
        raise Error(f"{what} has to be a mask or indices of {level}s, from 0 and below {count}")
    return found.tolist()


def split_dict(split: SplitTuple) -> dict[str, Any]:
    """A split as Python users see it."""
    level, *found = split
    arrays = (np.array(each, dtype=np.int64) for each in found)
    return {"level": level, **dict(zip(SPLITS, arrays))}


def level_of(graphs: int, of_nodes: bool) -> str:
    """What is split unless it is said: graphs, unless there is only one."""
    return "node" if graphs == 1 and of_nodes else "graph"
