"""Lagrangian Propagation GNNs: graph neural networks whose states are found by constrained optimisation.

    import lpgnn

    data = lpgnn.read("clique")            # a folder, a file, or the name of a built-in data set
    model = lpgnn.train(data, epochs=300)
    print(model.evaluation["test"]["accuracy"])
    print(model.predict(data).y)

Your own graphs come from arrays and data frames (:func:`from_arrays`, :func:`from_frames`), NetworkX (:func:`from_networkx`) or
PyTorch Geometric (:func:`from_pyg`). Settings that you leave out get defaults that fit the data; :func:`settings` shows them
all. :func:`crossval` and :func:`search` do what the program does; :class:`Run` reads the folder of a run. With scikit-learn there are
``GraphClassifier``, ``GraphRegressor``, ``NodeClassifier`` and ``NodeRegressor``, in :mod:`lpgnn.estimators`.
"""

from typing import TYPE_CHECKING

from ._columns import DataWarning
from ._convert import Frames
from ._dataset import Dataset, concat
from ._explain import Explanation
from ._frames import from_frames
from ._graphs import from_arrays, from_networkx, from_pyg, read
from ._live import LiveGraph, LivePrediction, LiveStats
from ._memory import get_max_memory, set_max_memory
from ._model import Model, Prediction, ensemble, load
from ._native import Error, __version__
from ._records import CrossvalReport, FoldRecord, MeanAndStd, RunRecord, SearchResult, SearchTrial, TrialRecord
from ._runs import Run
from ._train import Interrupted, crossval, resume, search, settings, train

# In the order of its documentation.
__all__ = [
    "read",
    "from_networkx",
    "from_pyg",
    "from_frames",
    "from_arrays",
    "Dataset",
    "concat",
    "Frames",
    "DataWarning",
    "train",
    "settings",
    "Model",
    "Prediction",
    "Explanation",
    "load",
    "ensemble",
    "crossval",
    "search",
    "resume",
    "Run",
    "CrossvalReport",
    "FoldRecord",
    "SearchResult",
    "SearchTrial",
    "TrialRecord",
    "RunRecord",
    "MeanAndStd",
    "LiveGraph",
    "LivePrediction",
    "LiveStats",
    "Error",
    "Interrupted",
    "set_max_memory",
    "get_max_memory",
    "__version__",
]

if TYPE_CHECKING:
    from .estimators import GraphClassifier, GraphRegressor, NodeClassifier, NodeRegressor

#: What needs scikit-learn, which is loaded when it is asked for.
ESTIMATORS = ("GraphClassifier", "GraphRegressor", "NodeClassifier", "NodeRegressor")


def __getattr__(name: str) -> object:
    if name not in ESTIMATORS:
        raise AttributeError(f"module 'lpgnn' has no attribute {name!r}")
    try:
        from . import estimators
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "sklearn":
            raise
        raise ImportError(f"lpgnn.{name} needs scikit-learn, which is not installed: pip install lpgnn[sklearn]") from None
    return getattr(estimators, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *ESTIMATORS})


# Messages and tracebacks name classes as users import them.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
del _name
