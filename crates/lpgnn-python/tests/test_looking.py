"""What a model shows of its training and of its states."""

import sys

import lpgnn
import matplotlib
import numpy as np
import pandas
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


@pytest.fixture(scope="module")
def clique():
    return lpgnn.read("clique")


@pytest.fixture(scope="module")
def model(clique):
    return lpgnn.train(clique, epochs=60, seed=1)


def test_the_history_is_a_data_frame(clique, tmp_path):
    model = lpgnn.train(clique, epochs=10, eval_every=5, out=tmp_path / "run")
    for history in (model.history, lpgnn.Run(tmp_path / "run").history, lpgnn.load(tmp_path / "run").history):
        assert isinstance(history, pandas.DataFrame) and history["epoch"].tolist() == list(range(1, 11))
        assert history["val_accuracy"].notna().tolist() == [False] * 4 + [True] + [False] * 4 + [True]
        assert history.dtypes.map(lambda dtype: dtype.kind in "iuf").all()


def test_training_is_drawn(model, tmp_path):
    figure = model.plot()
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["mean loss", "accuracy in %", "residual |x − f(x)|", "cheating gap in points"]
    loss, accuracy, residual, _ = figure.axes
    drawn = {line.get_label(): line.get_ydata() for line in accuracy.lines}
    assert drawn["val"] == pytest.approx(100 * model.history["val_accuracy"].dropna())
    assert {"train", "val", "test"} <= set(drawn) and {"maximum", "mean"} <= {line.get_label() for line in residual.lines}
    figure.savefig(tmp_path / "training.png")
    picture = pyplot.imread(tmp_path / "training.png")
    assert picture.shape[1] > 3 * picture.shape[0] and len(np.unique(picture.reshape(-1, 4), axis=0)) > 20
    # Into axes of one's own.
    own, axes = pyplot.subplots(2, 2)
    assert model.plot(axes) is own and axes[1, 1].get_title() == "cheating gap in points"
    with pytest.raises(lpgnn.Error, match="axes has 1 axes, but 4 are needed"):
        model.plot(axes[0, 0])
    real = lpgnn.train(lpgnn.from_arrays([[0, 1, 2, 3], [1, 2, 3, 4]], y=np.arange(5) / 3), epochs=3, split={"train": range(5)})
    assert [axis.get_title() for axis in real.plot().axes] == titles[::2]
    pyplot.close("all")


def test_states_residuals_and_multipliers_of_nodes(model, clique):
    found = model.predict(clique)
    states, residuals, multipliers = model.states(clique), model.residuals(clique), model.multipliers(clique)
    assert (states[0] == found.states[0]).all() and residuals.shape == (2100,)
    of = np.repeat(np.arange(len(clique)), np.diff(clique.ptr))
    largest = np.array([residuals[of == graph].max() for graph in range(len(clique))])
    assert largest == pytest.approx(found.residuals, abs=1e-6)
    assert [layer.shape for layer in multipliers] == [layer.shape for layer in states]
    # A node without a target, in a graph without any, pulls at nothing.
    few = clique[:2]
    known = lpgnn.from_arrays(few.edge_index, batch=np.repeat([0, 1], 7), y=[0, 1, 0, 1, 0, 1, 0] + [None] * 7)
    other = lpgnn.train(known, epochs=3, split={"level": "node", "train": range(7)})
    pulled = other.multipliers(known)[0]
    assert np.abs(pulled[:7]).max() > 0 and (pulled[7:] == 0).all()
    with pytest.raises(lpgnn.Error, match="the nodes have no targets, which multipliers depend on"):
        other.multipliers(lpgnn.from_arrays(few.edge_index, batch=np.repeat([0, 1], 7)))


def test_training_stops_early_by_default_and_by_the_metric_that_is_asked_for(clique):
    assert lpgnn.train(clique, epochs=600, eval_every=1).stop_reason == {"reason": "no-improvement"}
    assert lpgnn.train(clique, epochs=60, eval_every=1, settings={"training.patience": None}).stop_reason == {"reason": "epochs"}
    for monitor in ("accuracy", "balanced-accuracy", "macro-f1", "auc", "loss"):
        model = lpgnn.train(clique, epochs=40, eval_every=2, monitor=monitor)
        if monitor in ("accuracy", "loss"):
            values = model.history.dropna(subset="val_loss").set_index("epoch")[f"val_{monitor}"]
            best = values.idxmax() if monitor == "accuracy" else values.idxmin()
            assert values[model.epoch] == values[best]
    with pytest.raises(lpgnn.Error, match="training.monitor is r2"):
        lpgnn.train(clique, epochs=2, monitor="r2")


def test_a_notebook_trains_and_shows(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "import lpgnn\ndata = lpgnn.read('clique')\ndata",
        "model = lpgnn.train(data, epochs=5)\nmodel.history.tail(2)",
        "estimator = lpgnn.GraphClassifier(epochs=2).fit([[0.0], [1.0], [0.2], [0.9]], [0, 1, 0, 1])\nestimator",
        "import threading, os, signal\nthreading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    lpgnn.train(data, epochs=10**7, settings={'training.patience': None})\n"
        "except lpgnn.Interrupted as stop:\n    print(stop.model.epoch > 0)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python", "language": "python"}
    if sys.platform == "win32":
        notebook.cells.pop()
    client.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [[output for output in cell.outputs] for cell in notebook.cells]
    html = [cell[-1]["data"]["text/html"] for cell in shown[:3]]
    assert "lpgnn.Dataset" in html[0] and "val_accuracy" in html[1] and "GraphClassifier" in html[2]
    # Progress goes to the notebook, and Ctrl-C leaves the model.
    assert any("epoch" in str(output) or "loss" in str(output) for output in shown[1])
    if sys.platform != "win32":
        assert any("True" in output.get("text", "") for output in shown[3])
