"""Lagrangian Propagation GNNs: graph neural networks whose states are found by constrained optimisation.

    import lpgnn

    data = lpgnn.read("clique")            # a folder, a file, or the name of a built-in data set
    model = lpgnn.train(data, epochs=300)
    print(model.evaluation["test"]["accuracy"])
    print(model.predict(data).y)

Your own graphs come from arrays and data frames (:func:`from_arrays`, :func:`from_frames`), NetworkX (:func:`from_networkx`) or
PyTorch Geometric (:func:`from_pyg`). Settings that you leave out get defaults that fit the data; :func:`settings` shows them
all. :func:`crossval` and :func:`search` do what the program does; :class:`Run` reads what it leaves behind.
"""

from ._columns import DataWarning
from ._convert import Frames
from ._dataset import Dataset, concat
from ._frames import from_frames
from ._graphs import from_arrays, from_networkx, from_pyg, read
from ._live import LiveGraph, LivePrediction, LiveStats
from ._model import Model, Prediction, load
from ._native import Error, __version__
from ._records import CrossvalReport, FoldRecord, MeanAndStd, RunRecord, SearchResult, SearchTrial, TrialRecord
from ._runs import Run
from ._train import Interrupted, crossval, resume, search, settings, train

__all__ = [
    "CrossvalReport",
    "DataWarning",
    "Dataset",
    "Error",
    "FoldRecord",
    "Frames",
    "Interrupted",
    "LiveGraph",
    "LivePrediction",
    "LiveStats",
    "MeanAndStd",
    "Model",
    "Prediction",
    "Run",
    "RunRecord",
    "SearchResult",
    "SearchTrial",
    "TrialRecord",
    "__version__",
    "concat",
    "crossval",
    "from_arrays",
    "from_frames",
    "from_networkx",
    "from_pyg",
    "load",
    "read",
    "resume",
    "search",
    "settings",
    "train",
]

# Messages and tracebacks name classes as users import them.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
del _name
