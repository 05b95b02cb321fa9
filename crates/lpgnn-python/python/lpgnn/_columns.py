"""Arrays, data frames and sparse matrices as columns: real values, categories, sparse rows."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._native import Error

#: The code of a row without a class.
NO_TARGET = np.uint32(2**32 - 1)
#: A float array with at least this many columns is stored as sparse rows if less than this share is non-zero.
WIDE, FEW = 256, 0.05


def array_of(data: Any, name: str) -> np.ndarray:
    """An array, tensor, series or list as an array; masked and missing entries become NaN or ``None``."""
    if hasattr(data, "detach"):
        data = data.detach().cpu()
        data = data.to_dense() if str(getattr(data, "layout", "")) not in ("", "torch.strided") else data
        data = data.float() if str(data.dtype) == "torch.bfloat16" else data
    elif hasattr(data, "to_numpy") and hasattr(data, "dtype"):
        data = _series(data)
    if isinstance(data, np.ma.MaskedArray):
        mask, real = np.ma.getmaskarray(data), data.dtype.kind == "f"
        data = data.data.astype(data.dtype if real else object)
        data[mask] = np.nan if real else None
    try:
        array = np.asarray(data)
    except (TypeError, ValueError) as error:
        raise Error(f"{name} is not an array: {' '.join(str(error).split())}") from error
    if array.dtype.kind not in "biufUSO":
        raise Error(f"{name} is {shape_of(array)}, but numbers or strings are expected")
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def _series(series: Any) -> np.ndarray:
    """A series of pandas or Polars as an array of what its dtype stands for."""
    dtype = str(series.dtype)
    if dtype == "category":
        # Categories are names, even if they look like numbers.
        known = series.notna().to_numpy()
        return np.array([str(value) if there else None for value, there in zip(series, known)], dtype=object)
    if isinstance(series.dtype, np.dtype) or not hasattr(series, "isna"):
        return series.to_numpy()
    # pandas' own dtypes: Float64, Int64, boolean, string, …
    if getattr(series.dtype, "kind", "O") == "f":
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    if not series.isna().any() and getattr(series.dtype, "kind", "O") in "iub":
        return series.to_numpy(dtype=series.dtype.numpy_dtype)
    return series.to_numpy(dtype=object, na_value=None)


def is_frame(data: Any) -> bool:
    """Whether this is a data frame of pandas or Polars."""
    return hasattr(data, "columns") and hasattr(data, "dtypes")


def shape_of(array: np.ndarray) -> str:
    """A description of an array, for messages."""
    return f"an array of {array.dtype} of shape {list(array.shape)}"


def rows_of(data: Any, name: str) -> int | None:
    """The number of rows; ``None`` if there is nothing."""
    if data is None or (isinstance(data, Mapping) and not data):
        return None
    if isinstance(data, Mapping):
        return rows_of(next(iter(data.values())), name)
    if hasattr(data, "tocsr") or is_frame(data):
        return data.shape[0]
    array = array_of(data, name)
    if array.ndim == 0:
        raise Error(f"{name} is {data!r}, but an array is expected")
    return array.shape[0]


def check_integer(name: str, value: Any, minimum: int) -> None:
    """Raises an error unless the value is an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not minimum <= value < 2**63:
        raise Error(f"{name} is {value!r}, but an integer of at least {minimum} is expected")


def class_values(names: list[str] | None) -> np.ndarray | None:
    """The names of classes as integers or booleans if all of them are, else as strings."""
    if names is None:
        return None
    if set(names) <= {"False", "True"}:
        return np.array([name == "True" for name in names])
    try:
        integers = [int(name) for name in names]
    except ValueError:
        return np.array(names)
    fit = all(str(number) == name and abs(number) < 2**63 for number, name in zip(integers, names))
    return np.array(integers, dtype=np.int64) if fit else np.array(names)


def feature_columns(data: Any, what: str, rows: int) -> dict[str, Any]:
    """The features of nodes or edges: categorical columns, real-valued columns, sparse rows."""
    found: dict[str, Any] = {"categories": [], "values": None, "sparse": None}
    names: list[str] = []
    values: list[np.ndarray] = []
    for name, column in _named_columns(data, what):
        if hasattr(column, "tocsr"):
            if found["sparse"] is not None:
                raise Error(f"{what} has two sparse matrices, but only one is supported: join them with scipy.sparse.hstack")
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
            found["categories"] += [_categories(words, each) for each, words in zip(own, table.T)]
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise Error(f"{what} has two columns called {twice}")
    if values:
        words = {column[0] for column in found["categories"]}
        found["values"] = ([name for name in names if name not in words], _single(np.concatenate(values, axis=1)))
    return found


def _named_columns(data: Any, what: str) -> Iterator[tuple[str, Any]]:
    """Columns, or arrays of several columns, by name; a data frame column by column."""
    if data is None:
        return
    if is_frame(data):
        columns = data.items() if hasattr(data, "items") else ((name, data[name]) for name in data.columns)
        for name, column in columns:
            # Columns without names are numbered.
            name = f"{what}{name}" if isinstance(name, numbers.Integral) else name
            if not isinstance(name, str):
                raise Error(f"{what} has a column {name!r}, but column names are strings")
            yield name, column
    elif isinstance(data, Mapping):
        for name, column in data.items():
            if not isinstance(name, str):
                raise Error(f"{what} has a column {name!r}, but column names are strings")
            if is_frame(column):
                yield from _named_columns(column, name)
            else:
                yield name, column
    else:
        yield what, data


def target_column(data: Any, name: str, rows: int) -> tuple[Any, ...] | None:
    """Targets: a column of classes, or one column of real values or more."""
    if data is None:
        return None
    names = None
    if is_frame(data):
        columns = dict(_named_columns(data, name))
        names = list(columns)
        tables = [_table(column, each, rows) for each, column in columns.items()]
        if len(tables) == 1:
            table = tables[0]
        elif tables and all(each.dtype.kind == "f" for each in tables):
            table = np.concatenate(tables, axis=1)
        else:
            raise Error(f"{name} has the columns {', '.join(names)}, but one class or real values are expected per row")
    else:
        table = _table(data, name, rows)
    if table.dtype.kind == "f":
        if np.isinf(table).any():
            raise Error(f"{name} has infinite values; use NaN for unknown targets")
        names = names or ([name] if table.shape[1] == 1 else [f"{name}{at}" for at in range(table.shape[1])])
        return names, _single(table)
    if table.shape[1] != 1:
        raise Error(f"{name} has {table.shape[1]} columns, but one class per row is expected")
    return _categories(table[:, 0], names[0] if names else name)


def _single(table: np.ndarray) -> np.ndarray:
    """In single precision; values that are too large become infinite, and are rejected where they are read."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(table, dtype=np.float32)


def _table(column: Any, name: str, rows: int) -> np.ndarray:
    """One column or more, with a row per node, edge or graph."""
    array = array_of(column, name)
    table = array[:, None] if array.ndim == 1 else array
    if table.ndim != 2 or table.shape[0] != rows:
        raise Error(f"{name} is {shape_of(array)}, but {rows} rows of one or more columns are expected")
    return _as_floats(table) if table.dtype == object else table


def _as_floats(table: np.ndarray) -> np.ndarray:
    """Objects as floats if all of them are numbers and at least one is not an integer."""
    # Only NaN differs from itself.
    known = [value for value in table.flat if value is not None and value == value]
    real = all(isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) for value in known)
    if real and any(not isinstance(value, numbers.Integral) for value in known):
        floats = [np.nan if value is None else float(value) for value in table.flat]
        return np.array(floats).reshape(table.shape)
    return table


def _categories(column: np.ndarray, name: str) -> tuple[str, list[str], np.ndarray]:
    """A categorical column; ``None``, NaN and the empty string are missing."""
    if column.dtype.kind in "iub":
        values, place = np.unique(column, return_inverse=True)
        return name, [str(value) for value in values.tolist()], place.reshape(-1).astype(np.uint32)
    words = ["" if value is None or value != value else str(value) for value in column.tolist()]
    values = sorted(set(words) - {""}, key=_order)
    place = {value: at for at, value in enumerate(values)}
    return name, values, np.array([place.get(word, NO_TARGET) for word in words], dtype=np.uint32)


def _order(word: str) -> tuple[int, int, str]:
    """Integers by size, and before words."""
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
