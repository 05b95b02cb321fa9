"""Arguments that are settings."""

from __future__ import annotations

import json
import numbers
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _native
from ._dataset import Dataset
from ._native import Error
from ._splits import SplitTuple

#: The arguments of :func:`train` that are settings, with what they mean.
ARGUMENTS: dict[str, str] = {name: meaning for name, _, meaning in _native.arguments()}
#: The settings that they are.
PATHS: dict[str, str] = {name: path for name, path, _ in _native.arguments()}
#: A file with its text, settings as JSON, and a split, as the extension module takes them.
Request = tuple[tuple[str, str] | None, str, SplitTuple | None]


def document(function: Any) -> Any:
    """Adds the meaning of arguments that are settings to the documentation of a function."""
    lines = (f"    - ``{name}``: {meaning}" for name, meaning in ARGUMENTS.items())
    function.__doc__ = f"{function.__doc__}\n    Arguments that are settings:\n\n" + "\n".join(lines)
    return function


def request(data: Dataset, given: Mapping[str, Any]) -> Request:
    """What the local variables of a function ask for: ``settings``, ``config``, ``split`` and :data:`ARGUMENTS`."""
    check_dataset(data)
    chosen = {name: given.get(name) for name in ARGUMENTS}
    dims = chosen["hidden_dims"]
    if dims is not None:
        chosen["hidden_dims"] = [dims] if isinstance(dims, numbers.Integral) else list(dims)
    split = given.get("split")
    return *_asked(chosen, given.get("settings"), given.get("config")), None if split is None else data._split_tuple(split)


def _asked(
    chosen: Mapping[str, Any],
    settings: Mapping[str, Any] | None,
    config: str | os.PathLike[str] | None,
) -> tuple[tuple[str, str] | None, str]:
    """The settings that were given: a file with its text, and single settings as JSON, in order of precedence."""
    file = None
    if config is not None:
        with open(config, encoding="utf-8") as text:
            file = (os.fsdecode(config), text.read())
    if settings is not None and not isinstance(settings, Mapping):
        raise Error(f"settings is {settings!r:.100}, but a dictionary of settings is expected")
    arguments = {name: value for name, value in chosen.items() if value is not None}
    asked = {"settings": _flat(settings or {}), "arguments": arguments}
    for name, value in (*asked["settings"].items(), *arguments.items()):
        if isinstance(value, (float, np.floating)) and not np.isfinite(value):
            raise Error(f"{name} is {value}, but a finite number is expected")
    return file, to_json(asked, "settings")


def to_json(value: Any, name: str) -> str:
    """As JSON; NumPy's numbers and arrays as Python's."""
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except ValueError:
        raise Error(f"{name} contains a number that is not finite") from None


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} is not a value of a setting")


def _flat(settings: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Settings by their full names; if two have the same name, the later one counts."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        name = f"{path}{name}"
        found = _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
        for each in found:
            flat.pop(each, None)
        flat |= found
    return flat


def space_request(space: Any) -> tuple[str | None, str | None]:
    """A search space: a name or a file, or a dictionary of settings and what to choose from, as JSON."""
    if isinstance(space, (str, os.PathLike)):
        return os.fsdecode(space), None
    if not isinstance(space, Mapping) or not space:
        raise Error(f"space is {space!r:.100}, but a name, a file or a dictionary of settings with values to choose from is expected")
    if "values" not in space:
        ranges = any(isinstance(choice, Mapping) for choice in space.values())
        space = {"method": "random" if ranges else "grid", "values": space}
    values = {PATHS.get(name, name): _choice(name, choice) for name, choice in space["values"].items()}
    return None, to_json({**space, "values": values}, "space")


def _choice(name: str, choice: Any) -> Any:
    """Values to choose from, or a range; ``None`` is the setting ``none``."""
    if isinstance(choice, Mapping):
        return dict(choice)
    if isinstance(choice, str) or not hasattr(choice, "__iter__"):
        raise Error(f"space: {name} is {choice!r:.100}, but a list of values or a range with low and high is expected")
    return ["none" if value is None else value for value in choice]


def thread_count(threads: Any) -> int:
    """As many as asked for, or as ``LPGNN_THREADS`` says; 0 means all processors."""
    if threads is None:
        threads = os.environ.get("LPGNN_THREADS") or 0
    text = str(threads)
    if isinstance(threads, bool) or not (text.isascii() and text.isdecimal() and len(text) < 4):
        raise Error(f"threads is {threads!r:.100}, but an integer from 0 (all processors) to 999 is expected")
    return int(text)


def worker_threads(threads: Any) -> int:
    """The same, but in a worker process of joblib, which sets ``OMP_NUM_THREADS``, no more than its share of the processors."""
    if threads is None and not os.environ.get("LPGNN_THREADS"):
        share = os.environ.get("OMP_NUM_THREADS", "")
        threads = int(share) if share.isdecimal() and int(share) < 1000 else None
    return thread_count(threads)


def check_dataset(data: Any) -> None:
    """Raises an error unless this is a data set."""
    if not isinstance(data, Dataset):
        kind = type(data).__name__
        raise TypeError(f"data is a {kind}, but a Dataset is expected, as lpgnn.read or lpgnn.from_arrays return it")
