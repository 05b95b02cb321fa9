from collections.abc import Callable
from typing import Any

import numpy as np

__version__: str

class Error(ValueError): ...

_Split = tuple[str, list[int], list[int], list[int]]

class Dataset:
    @staticmethod
    def read(data: str, format: str | None = None) -> Dataset: ...
    @staticmethod
    def of_parts(
        name: str,
        node_starts: list[int],
        edge_index: np.ndarray,
        node_columns: dict[str, Any],
        edge_columns: dict[str, Any],
        node_target: tuple[Any, ...] | None,
        graph_target: tuple[Any, ...] | None,
        split: _Split | None,
        names: tuple[list[str] | None, list[str] | None],
        chosen: bool,
    ) -> Dataset: ...
    name: str
    graphs: int
    nodes: int
    edges: int
    node_starts: np.ndarray
    edge_index: np.ndarray
    split: _Split | None
    graph_names: list[str] | None
    node_names: list[str] | None
    node_classes: list[str] | None
    graph_classes: list[str] | None
    def parts(self) -> tuple[Any, ...]: ...
    def info(self) -> str: ...
    duplicates: tuple[int, int]
    has_node_targets: bool
    has_graph_targets: bool
    def folds(self, level: str, count: int, seed: int, val: int | None) -> list[_Split]: ...
    def write(self, folder: str, format: str, force: bool) -> list[str]: ...

class Model:
    @staticmethod
    def load(path: str) -> Model: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Model: ...
    def to_bytes(self) -> bytes: ...
    def save(self, path: str) -> None: ...
    task: str
    epoch: int
    classes: list[str] | None
    value_names: list[str]
    weights: np.ndarray
    settings: str
    def predict(
        self, data: Dataset, threads: int
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray, list[np.ndarray]]: ...
    def evaluate(self, data: Dataset, rows: list[int], threads: int) -> str: ...

def train(
    data: Dataset,
    toml: tuple[str, str] | None,
    json: str,
    split: _Split | None,
    threads: int,
    on_epoch: Callable[[str], bool] | None,
) -> tuple[Model, list[str], str]: ...
def arguments() -> list[tuple[str, str]]: ...
def settings(data: Dataset, toml: tuple[str, str] | None, json: str) -> str: ...
