"""What arrays say: numbers, categories, sparse rows."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._native import Error

#: The place of a row without a class.
UNLABELLED = np.uint32(2**32 - 1)
#: Columns from which on rows of few numbers are kept as such, and how few.
WIDE, FEW = 256, 0.05


def array_of(data: Any, name: str) -> np.ndarray:
    """An array of what is one, or a tensor, or a list; what is masked is not known."""
    if hasattr(data, "detach"):
        data = data.detach().cpu()
        data = data.to_dense() if str(getattr(data, "layout", "")) not in ("", "torch.strided") else data
        data = data.float() if str(data.dtype) == "torch.bfloat16" else data
    if isinstance(data, np.ma.MaskedArray):
        mask, real = np.ma.getmaskarray(data), data.dtype.kind == "f"
        data = data.data.astype(data.dtype if real else object)
        data[mask] = np.nan if real else None
    try:
        array = np.asarray(data)
    except (TypeError, ValueError) as error:
        raise Error(f"{name} is no array: {' '.join(str(error).split())}") from error
    if array.dtype.kind not in "biufUSO":
        raise Error(f"{name} is {shape_of(array)}, but numbers or words are expected")
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def shape_of(array: np.ndarray) -> str:
    """What an array is, for messages."""
    return f"an array of {array.dtype} of shape {list(array.shape)}"


def rows_of(data: Any, name: str) -> int | None:
    """How many rows something has; none if there is nothing."""
    if data is None or (isinstance(data, Mapping) and not data):
        return None
    if isinstance(data, Mapping):
        return rows_of(next(iter(data.values())), name)
    if hasattr(data, "tocsr"):
        return data.shape[0]
    array = array_of(data, name)
    if array.ndim == 0:
        raise Error(f"{name} is {data!r}, but an array is expected")
    return array.shape[0]


def whole(name: str, value: Any, least: int) -> None:
    """Refuses what is no whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not least <= value < 2**63:
        raise Error(f"{name} is {value!r}, but a whole number from {least} on is expected")


def labels(names: list[str] | None) -> np.ndarray | None:
    """Names of classes: whole numbers and truth values if they all are."""
    if names is None:
        return None
    if set(names) <= {"False", "True"}:
        return np.array([name == "True" for name in names])
    try:
        whole_numbers = [int(name) for name in names]
    except ValueError:
        return np.array(names)
    fit = all(str(number) == name and abs(number) < 2**63 for number, name in zip(whole_numbers, names))
    return np.array(whole_numbers, dtype=np.int64) if fit else np.array(names)


def said(data: Any, what: str, rows: int) -> dict[str, Any]:
    """What is said of nodes or edges: columns of words, columns of numbers, sparse rows."""
    found: dict[str, Any] = {"words": [], "numbers": None, "sparse": None}
    named = data if isinstance(data, Mapping) else {} if data is None else {what: data}
    names: list[str] = []
    values: list[np.ndarray] = []
    for name, column in named.items():
        if not isinstance(name, str):
            raise Error(f"{what} has a column {name!r}, but names are words")
        if hasattr(column, "tocsr"):
            if found["sparse"] is not None:
                raise Error(f"{what} has two sparse tables, but one is read; scipy.sparse.hstack joins them")
            found["sparse"] = _sparse(column.tocsr(), name, rows)
            continue
        table = _table(column, name, rows)
        wide = table.dtype.kind == "f" and table.shape[1] >= WIDE and np.count_nonzero(table) < FEW * table.size
        if wide and found["sparse"] is None:
            row, place = np.nonzero(table)
            starts = np.searchsorted(row, np.arange(rows + 1))
            found["sparse"] = _sparse_rows(starts, place, table[row, place], table.shape[1], name)
            continue
        own = [name] if table.shape[1] == 1 else [f"{name}{at}" for at in range(table.shape[1])]
        names += own
        if table.dtype.kind == "f":
            values.append(table)
        else:
            found["words"] += [_words(words, each) for each, words in zip(own, table.T)]
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise Error(f"{what} has two columns that are called {twice}")
    if values:
        words = {word[0] for word in found["words"]}
        found["numbers"] = ([name for name in names if name not in words], _single(np.concatenate(values, axis=1)))
    return found


def target(data: Any, name: str, rows: int) -> tuple[Any, ...] | None:
    """What is to be predicted: a column of classes, or values."""
    if data is None:
        return None
    table = _table(data, name, rows)
    if table.dtype.kind == "f":
        if np.isinf(table).any():
            raise Error(f"{name} has infinite values; what is not known is NaN")
        names = [name] if table.shape[1] == 1 else [f"{name}{at}" for at in range(table.shape[1])]
        return names, _single(table)
    if table.shape[1] != 1:
        raise Error(f"{name} has {table.shape[1]} columns, but one class each is expected")
    return _words(table[:, 0], name)


def _single(table: np.ndarray) -> np.ndarray:
    """In single precision; what is too large is infinite, and refused where it is read."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(table, dtype=np.float32)


def _table(column: Any, name: str, rows: int) -> np.ndarray:
    """A column, or some, with a row per node, edge or graph."""
    array = array_of(column, name)
    table = array[:, None] if array.ndim == 1 else array
    if table.ndim != 2 or table.shape[0] != rows:
        raise Error(f"{name} is {shape_of(array)}, but {rows} rows of one or more columns are expected")
    return _numbers_if_all_are(table) if table.dtype == object else table


def _numbers_if_all_are(table: np.ndarray) -> np.ndarray:
    """Objects as what they are: floating-point numbers, where all are numbers and one is no whole one."""
    # What is no number, in both meanings, is not equal to itself or None.
    known = [value for value in table.flat if value is not None and value == value]
    real = all(isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) for value in known)
    if real and any(not isinstance(value, numbers.Integral) for value in known):
        numbers_only = [np.nan if value is None else float(value) for value in table.flat]
        return np.array(numbers_only).reshape(table.shape)
    return table


def _words(column: np.ndarray, name: str) -> tuple[str, list[str], np.ndarray]:
    """A column of categories; what is ``None``, not a number or an empty word has none."""
    if column.dtype.kind in "iub":
        values, place = np.unique(column, return_inverse=True)
        return name, [str(value) for value in values.tolist()], place.reshape(-1).astype(np.uint32)
    words = ["" if value is None or value != value else str(value) for value in column.tolist()]
    values = sorted(set(words) - {""}, key=_order)
    place = {value: at for at, value in enumerate(values)}
    return name, values, np.array([place.get(word, UNLABELLED) for word in words], dtype=np.uint32)


def _order(word: str) -> tuple[int, int, str]:
    """Whole numbers by size, and before words."""
    return (0, int(word), word) if word.lstrip("-").isdecimal() and word.isascii() else (1, 0, word)


def _sparse(matrix: Any, name: str, rows: int) -> tuple[Any, ...]:
    if len(matrix.shape) != 2 or matrix.shape[0] != rows:
        raise Error(f"{name} has the shape {list(matrix.shape)}, but {rows} rows are expected")
    return _sparse_rows(matrix.indptr, matrix.indices, matrix.data, matrix.shape[1], name)


def _sparse_rows(starts: Any, columns: Any, values: Any, width: int, name: str) -> tuple[Any, ...]:
    values = np.asarray(values, dtype=np.float32)
    if not np.isfinite(values).all():
        raise Error(f"{name} has entries that are not finite")
    return np.asarray(starts, dtype=np.uint64), np.asarray(columns, dtype=np.uint32), values, width
