"""Arrays, data frames and sparse matrices as columns: numbers, categories, sparse rows.

How a column is read depends only on its own dtype:

- floats are numbers;
- integers are a category if they have at most :data:`FEW_VALUES` distinct values, otherwise a number, and so is every one
  of at least :data:`TABLE` integer columns of an array or a data frame, which are a table of counts: this is a guess, and says so;
- booleans, strings and pandas' or Polars' categories are categories;
- dates, durations and mixed types are rejected.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._native import Error

#: The code of a row without a class.
NO_TARGET = np.uint32(2**32 - 1)
#: A float array with at least this many columns is stored as sparse rows if less than this share is non-zero.
WIDE, FEW = 256, 0.05
#: An integer column with more distinct values than this is a number.
FEW_VALUES = 20
#: How the names of the dtypes of categories begin, of pandas, Polars and Arrow.
CATEGORIES = ("category", "categorical", "enum", "dictionary")
#: Integer columns of an array or a data frame that are at least as many are a table of counts.
TABLE = 32


class DataWarning(UserWarning):
    """The meaning of data was guessed, or some data are not used."""


class Guesses(dict[tuple[str, str], str]):
    """What was guessed of a column, by the argument it belongs to and its name."""

    def warn(self, stacklevel: int) -> None:
        """Warns of every guess."""
        for (place, name), guess in self.items():
            column = place if name == place else f"{place}: column {name}"
            warnings.warn(f"{column} {guess}", DataWarning, stacklevel=stacklevel + 1)


def array_of(data: Any, name: str) -> np.ndarray:
    """An array, tensor, series or list as an array; masked and missing entries become NaN or ``None``."""
    if hasattr(data, "detach"):
        data = data.detach().cpu()
        data = data.to_dense() if str(getattr(data, "layout", "")) not in ("", "torch.strided") else data
        data = data.float() if str(data.dtype) == "torch.bfloat16" else data
    elif hasattr(data, "to_numpy") and (hasattr(data, "dtype") or hasattr(data, "null_count")):
        data = _series(data, name)
    if isinstance(data, np.ma.MaskedArray):
        mask, real = np.ma.getmaskarray(data), data.dtype.kind == "f"
        data = data.data.astype(data.dtype if real else object)
        data[mask] = np.nan if real else None
    try:
        array = np.asarray(data)
    except (TypeError, ValueError) as error:
        raise Error(f"{name} is not an array: {' '.join(str(error).split())}") from error
    if array.dtype.kind == "U" and not isinstance(data, np.ndarray):
        # NumPy would turn numbers and NaN beside strings into strings, without a word.
        objects = np.asarray(data, dtype=object)
        array = array if all(isinstance(value, str) for value in objects.flat) else objects
    if array.dtype.kind in "Mm":
        raise _no_dates(name, str(array.dtype))
    if array.dtype.kind not in "biufUSO":
        raise Error(f"{name} is {shape_of(array)}, but numbers or strings are expected")
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def _no_dates(name: str, kind: str) -> Error:
    return Error(f"{name} has dates or durations ({kind}), but numbers or strings are expected: convert them, for instance to days")


def _series(series: Any, name: str) -> np.ndarray:
    """A series of pandas, Polars or Arrow as an array of what its dtype stands for."""
    dtype = str(getattr(series, "dtype", getattr(series, "type", "")))
    if dtype.lower().startswith(("date", "time", "duration", "period", "interval")):
        raise _no_dates(name, dtype)
    if dtype.lower().startswith(CATEGORIES):
        # Categories are names, even if they look like numbers.
        return np.array([None if is_missing(value) else str(value) for value in _list(series)], dtype=object)
    if not hasattr(series, "isna"):
        # Polars and Arrow would turn integers and booleans beside a missing value into floats.
        missing = series.null_count() if callable(series.null_count) else series.null_count
        whole = dtype.lower().startswith(("int", "uint", "bool"))
        words = dtype.lower().startswith(("str", "utf8", "large_str", "object"))
        if words or (missing and whole):
            return np.array(_list(series), dtype=object)
        return np.asarray(series.to_numpy())
    if isinstance(series.dtype, np.dtype):
        return series.to_numpy()
    # pandas' own dtypes: Float64, Int64, boolean, string, …
    if getattr(series.dtype, "kind", "O") == "f":
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    if not series.isna().any() and getattr(series.dtype, "kind", "O") in "iub":
        return series.to_numpy(dtype=series.dtype.numpy_dtype)
    return series.to_numpy(dtype=object, na_value=None)


def _list(series: Any) -> list[Any]:
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(series, name):
            return getattr(series, name)()
    return list(series)


def is_missing(value: Any) -> bool:
    """``None``, NaN, pandas' NA and NaT."""
    # NA is neither equal nor unequal to anything, and only NaN differs from itself.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, numbers.Real) and value != value)


def is_frame(data: Any) -> bool:
    """Whether this is a data frame of pandas or Polars."""
    return hasattr(data, "columns") and hasattr(data, "dtypes")


def frame_of(data: Any, name: str) -> Any:
    """Whatever else exports Arrow tables, as a dictionary of its columns; all other things as they are."""
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):
        raise Error(f"{name} is a {type(data).__name__}, whose rows are not computed yet: pass {name}.collect()")
    if is_frame(data) or hasattr(data, "dtype") or not hasattr(data, "__arrow_c_stream__") or hasattr(data, "null_count"):
        return data
    try:
        import pyarrow
    except ImportError:
        kind = type(data).__name__
        raise ImportError(f"a {kind} is read as an Arrow table, which needs pyarrow, and that is not installed: pip install pyarrow") from None
    table = pyarrow.table(data)
    # Polars exports strings as views, of which pyarrow cannot select some.
    columns = (pyarrow.array(column.to_pylist(), "string") if "string_view" in str(column.type) else column for column in table.columns)
    return dict(zip(table.column_names, columns))


def note_order(x: Any, y: Any) -> None:
    """Warns of features and targets of pandas with the same index in another order, because rows are matched by their position."""
    rows, targets = getattr(x, "index", None), getattr(y, "index", None)
    if not (hasattr(x, "iloc") and hasattr(y, "iloc")) or len(rows) != len(targets) or rows.equals(targets):
        return
    if rows.is_unique and targets.is_unique and targets.isin(rows).all():
        text = "the features and the targets have the same index in another order, but rows are matched by their position"
        warnings.warn(text, DataWarning, stacklevel=4)


def shape_of(array: np.ndarray) -> str:
    """A description of an array, for messages."""
    return f"an array of {array.dtype} of shape {list(array.shape)}"


def rows_of(data: Any, name: str) -> int | None:
    """The number of rows; ``None`` if there is nothing."""
    if data is None or (isinstance(data, Mapping) and not data):
        return None
    if isinstance(data, Mapping):
        first = next(iter(data))
        return rows_of(data[first], f"{name}: {first}")
    if hasattr(data, "tocsr") or is_frame(data):
        return data.shape[0]
    if hasattr(data, "num_rows"):
        return data.num_rows
    array = array_of(data, name)
    if array.ndim == 0:
        raise Error(f"{name} is {data!r:.100}, but an array is expected")
    return array.shape[0]


def check_integer(name: str, value: Any, minimum: int) -> None:
    """Raises an error unless the value is an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not minimum <= value < 2**63:
        raise Error(f"{name} is {value!r:.100}, but an integer of at least {minimum} is expected")


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


def feature_columns(data: Any, what: str, rows: int, guesses: Guesses) -> dict[str, Any]:
    """The features of nodes or edges: categorical columns, real-valued columns, sparse rows."""
    found: dict[str, Any] = {"categories": [], "values": None, "sparse": None}
    names: list[str] = []
    values: list[tuple[str, np.ndarray]] = []
    tables: list[tuple[str, np.ndarray]] = []
    for name, column in _named_columns(data, what):
        if not hasattr(column, "tocsr"):
            tables += _unboxed(name, _table(column, name if name == what else f"{what}: {name}", rows))
        elif found["sparse"] is None:
            found["sparse"] = _sparse(column, name, rows)
        else:
            raise Error(f"{what} has two sparse matrices, but only one is supported: join them with scipy.sparse.hstack")
    for name, table in _counts_as_numbers(tables, what, guesses):
        wide = table.dtype.kind == "f" and table.shape[1] >= WIDE and np.count_nonzero(table) < FEW * table.size
        if wide and found["sparse"] is None:
            row, place = np.nonzero(table)
            starts = np.searchsorted(row, np.arange(rows + 1))
            found["sparse"] = _sparse_rows(starts, place, table[row, place], table.shape[1], name)
            continue
        own = [name] if table.shape[1] == 1 else [f"{name}{at}" for at in range(table.shape[1])]
        names += own
        for each, words in zip(own, table.T):
            if words.dtype.kind == "f" or _are_numbers(words, what, each, guesses):
                values.append((each, words.astype(np.float64)))
            else:
                found["categories"].append(_known_categories(words, each, what))
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise Error(f"{what} has two columns called {twice}")
    if values:
        found["values"] = ([name for name, _ in values], single(np.stack([column for _, column in values], axis=1)))
        _check_known(found["values"], what)
        for name, column in values:
            check_precision(column, what if name == what else f"{what}: {name}")
    return found


def _unboxed(name: str, table: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Columns of objects one by one, each as what its own entries are; all other arrays as they are."""
    if table.dtype != object:
        return [(name, table)]
    several = table.shape[1] > 1
    return [(f"{name}{at}" if several else name, _of_one_type(column)[:, None]) for at, column in enumerate(table.T)]


def _of_one_type(column: np.ndarray) -> np.ndarray:
    """Objects that are all integers, all booleans, or all numbers as an array of these."""
    types = {type(value) for value in column.tolist()}
    if types and all(issubclass(of, (bool, np.bool_)) for of in types):
        return column.astype(bool)
    if types and all(issubclass(of, numbers.Integral) and not issubclass(of, bool) for of in types):
        return column.astype(np.int64) if all(abs(value) < 2**63 for value in column.tolist()) else column
    return _as_floats(column)


def _counts_as_numbers(tables: list[tuple[str, np.ndarray]], what: str, guesses: Guesses) -> list[tuple[str, np.ndarray]]:
    """The same with floats for tables of counts: an array of many integer columns, or as many by themselves."""

    def integers(table: np.ndarray) -> int:
        return table.shape[1] if table.dtype.kind in "iu" else 0

    single_columns = sum(integers(table) == 1 for _, table in tables)
    found = []
    for name, table in tables:
        count = single_columns if integers(table) == 1 else integers(table)
        if count >= TABLE:
            guesses[what, what if table.shape[1] == 1 else name] = f"has {count} integer columns, read as numbers; pass floats to say so"
            table = table.astype(np.float64 if table.shape[1] == 1 else np.float32)
        found.append((name, table))
    return found


def _known_categories(column: np.ndarray, name: str, what: str) -> tuple[str, list[str], np.ndarray]:
    """A categorical feature, of which no row may be missing."""
    found = _categories(column, name, f"{what}: {name}")
    missing = np.flatnonzero(found[2] == NO_TARGET)
    if missing.size:
        raise Error(f"{what}: row {missing[0]} has no {name}")
    return found


def _are_numbers(column: np.ndarray, what: str, name: str, guesses: Guesses) -> bool:
    """Whether integers are numbers, not the codes of a category."""
    if column.dtype.kind not in "iu":
        return False
    count = len(np.unique(column))
    if count <= FEW_VALUES:
        return False
    guesses[what, name] = f"has {count} distinct integers, read as numbers; pass floats for numbers or strings for a category to say which"
    return True


def _check_known(values: tuple[list[str], np.ndarray], what: str) -> None:
    """Raises an error that names the first entry that is missing or not finite."""
    names, table = values
    wrong = ~np.isfinite(table)
    if wrong.any():
        row, column = (int(at) for at in np.argwhere(wrong)[0])
        raise Error(f"{what}: {names[column]} is {table[row, column]} in row {row}, but a finite number is expected")


def _named_columns(data: Any, what: str) -> Iterator[tuple[str, Any]]:
    """Columns, or arrays of several columns, by name; a data frame column by column."""
    data = frame_of(data, what)
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


def target_column(data: Any, name: str, rows: int, guesses: Guesses) -> tuple[Any, ...] | None:
    """Targets: a column of classes, or one column of real values or more."""
    if data is None:
        return None
    names = None
    data = frame_of(data, name)
    if is_frame(data) or isinstance(data, Mapping):
        pairs = list(_named_columns(data, name))
        names = [each for each, _ in pairs]
        if len(set(names)) < len(names):
            raise Error(f"{name} has two columns called {next(each for at, each in enumerate(names) if each in names[:at])}")
        columns = dict(pairs)
        tables = [_table(column, f"{name}: {each}", rows) for each, column in columns.items()]
        if len(tables) == 1:
            table = tables[0]
        elif tables and all(each.dtype.kind in "fiu" for each in tables):
            table = np.concatenate([each.astype(np.float64) for each in tables], axis=1)
        else:
            raise Error(f"{name} has the columns {', '.join(names)}, but one class or numbers are expected per row")
    else:
        table = _table(data, name, rows)
    if table.dtype.kind == "f":
        if np.isinf(table).any():
            raise Error(f"{name} has infinite values; use NaN for unknown targets")
        names = names or ([name] if table.shape[1] == 1 else [f"{name}{at}" for at in range(table.shape[1])])
        for each, column in zip(names, table.T):
            there = column[~np.isnan(column)]
            known = np.unique(there)
            # pandas makes floats of integers beside a missing value.
            like_classes = len(known) <= FEW_VALUES and len(known) < len(column) or len(known) < min(len(there), len(column) - 1)
            if len(known) and like_classes and (known == np.floor(known)).all():
                values = ", ".join(f"{value:g}" for value in known[:4]) + (", …" if len(known) > 4 else "")
                guesses[name, each] = f"has the values {values} only and is read as numbers (regression); pass integers or strings for classes"
            check_precision(column, name if each == name else f"{name}: {each}")
        return names, single(table)
    if table.shape[1] != 1:
        raise Error(f"{name} has {table.shape[1]} columns, but one class per row is expected")
    each = names[0] if names else name
    found = _categories(table[:, 0], each, name)
    if len(found[1]) == 1:
        guesses[name, each] = f"has one class only: {found[1][0]}"
    elif {"-1", "0"} <= set(found[1]):
        guesses[name, each] = "has the class -1, a class like the others; None, NaN or masked is an unknown target"
    elif (become := class_values(found[1])).dtype.kind in "ib" and _has_strings(table, data, names):
        kind = "booleans" if become.dtype.kind == "b" else "integers"
        guesses[name, each] = f"has strings that are all {kind}, and predicted classes will be {kind}"
    elif table.dtype.kind in "iu" and len(found[1]) > FEW_VALUES:
        guesses[name, each] = f"has {len(found[1])} distinct integers, read as classes; pass floats for regression"
    return found


def _has_strings(table: np.ndarray, data: Any, names: list[str] | None) -> bool:
    """Whether a column has strings, and not categories, which are strings whatever they were."""
    column = data[names[0]] if names else data
    dtype = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    return not dtype.startswith(CATEGORIES) and any(isinstance(value, str) for value in table.flat)


def single(table: np.ndarray) -> np.ndarray:
    """In single precision; values that are too large become infinite, and are rejected where they are read."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(table, dtype=np.float32)


def check_precision(column: np.ndarray, name: str) -> None:
    """Raises an error if single precision makes one of different values, and moves them by more than 1/32 of their range."""
    known = column[np.isfinite(column)].astype(np.float64)
    if known.size == 0 or np.abs(known - single(known)).max() <= (known.max() - known.min()) / 32:
        return
    if len(np.unique(known)) > len(np.unique(single(known))):
        between = f"values from {known.min():.17g} to {known.max():.17g}"
        raise Error(f"{name} has {between}, which single precision cannot distinguish: subtract a constant or multiply by one")


def _table(column: Any, name: str, rows: int) -> np.ndarray:
    """One column or more, with a row per node, edge or graph."""
    array = array_of(column, name)
    table = array[:, None] if array.ndim == 1 else array
    if table.ndim != 2 or table.shape[0] != rows:
        raise Error(f"{name} is {shape_of(array)}, but {rows} rows of one or more columns are expected")
    return _as_floats(table) if table.dtype == object else table


def _as_floats(table: np.ndarray) -> np.ndarray:
    """Objects as floats if all of them are numbers and at least one is not an integer."""
    known = [value for value in table.flat if not is_missing(value)]
    real = all(isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) for value in known)
    if real and any(not isinstance(value, numbers.Integral) for value in known):
        floats = [np.nan if is_missing(value) else float(value) for value in table.flat]
        return np.array(floats).reshape(table.shape)
    return table


def _categories(column: np.ndarray, name: str, where: str) -> tuple[str, list[str], np.ndarray]:
    """A categorical column; ``None``, NaN and the empty string are missing."""
    if column.dtype.kind in "iub":
        values, place = np.unique(column, return_inverse=True)
        return name, [str(value) for value in values.tolist()], place.reshape(-1).astype(np.uint32)
    _check_types(column, where)
    words = ["" if is_missing(value) else str(value) for value in column.tolist()]
    values = sorted(set(words) - {""}, key=_order)
    place = {value: at for at, value in enumerate(values)}
    return name, values, np.array([place.get(word, NO_TARGET) for word in words], dtype=np.uint32)


def _check_types(column: np.ndarray, where: str) -> None:
    """Raises an error unless all entries that are not missing are strings, all booleans or all integers."""
    types = {type(value) for value in column.tolist() if not is_missing(value)}

    def kind(of: type) -> str:
        if issubclass(of, (str, np.str_)):
            return "strings"
        if issubclass(of, (bool, np.bool_)):
            return "booleans"
        return "numbers" if issubclass(of, numbers.Real) else f"{of.__name__} objects"

    kinds = sorted({kind(of) for of in types})
    if len(kinds) > 1:
        raise Error(f"{where} mixes {' and '.join(kinds)}, but values of one type are expected")
    if kinds and kinds[0].endswith("objects"):
        raise Error(f"{where} has {kinds[0]}, but numbers or strings are expected")


def _order(word: str) -> tuple[int, int, str]:
    """Integers by size, and before words."""
    return (0, int(word), word) if word.lstrip("-").isdecimal() and word.isascii() else (1, 0, word)


def _sparse(matrix: Any, name: str, rows: int) -> tuple[Any, ...]:
    if len(matrix.shape) != 2 or matrix.shape[0] != rows:
        raise Error(f"{name} has the shape {list(matrix.shape)}, but {rows} rows are expected")
    matrix = summed(matrix)
    return _sparse_rows(matrix.indptr, matrix.indices, matrix.data, matrix.shape[1], name)


def summed(matrix: Any) -> Any:
    """A sparse matrix by rows; entries at the same place are added up, as is SciPy's rule."""
    matrix = matrix.tocsr(copy=True)
    matrix.sum_duplicates()
    return matrix


def _sparse_rows(starts: Any, columns: Any, values: Any, width: int, name: str) -> tuple[Any, ...]:
    values = np.asarray(values, dtype=np.float32)
    if not np.isfinite(values).all():
        raise Error(f"{name} has entries that are not finite")
    return np.asarray(starts, dtype=np.uint64), np.asarray(columns, dtype=np.uint32), values, width
