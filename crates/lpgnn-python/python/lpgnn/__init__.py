"""Lagrangian Propagation GNNs: graph neural networks whose states are found by constrained optimisation.

    import lpgnn

    data = lpgnn.read("clique")            # a folder, a file, or the name of a built-in data set
    model = lpgnn.train(data, epochs=300)
    print(model.evaluation["test"]["accuracy"])
    print(model.predict(data).y)

Your own graphs come from arrays and data frames (:func:`from_arrays`), NetworkX (:func:`from_networkx`) or PyTorch
Geometric (:func:`from_pyg`). Settings that you leave out get defaults that fit the data; :func:`settings` shows them all.
"""

from ._graphs import Dataset, from_arrays, from_networkx, from_pyg, read
from ._model import Model, Prediction, load, settings, train
from ._native import Error, __version__

__all__ = [
    "Dataset",
    "Error",
    "Model",
    "Prediction",
    "__version__",
    "from_arrays",
    "from_networkx",
    "from_pyg",
    "load",
    "read",
    "settings",
    "train",
]
