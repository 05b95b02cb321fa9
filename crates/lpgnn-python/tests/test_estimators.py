"""Estimators do what scikit-learn expects of them, on graphs of every kind."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from types import SimpleNamespace

import joblib
import lpgnn
import networkx
import numpy as np
import pandas
import polars
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

QUICK = {"epochs": 40, "layers": 1, "lr": 0.02, "state_dim": 8, "hidden_dims": 16, "random_state": 0}


def molecule(size, nitro, rng):
    """A ring of carbon atoms with substituents, of which one may be a nitro group, as in MUTAG."""
    graph = networkx.cycle_graph(size)
    networkx.set_edge_attributes(graph, "aromatic", "bond")
    networkx.set_node_attributes(graph, "C", "element")
    others = rng.choice(size, 3, replace=False)
    for at, (atom, group) in enumerate(zip(others, ["N" if nitro else "C", "O", "Cl"])):
        graph.add_node(size + at, element=group)
        graph.add_edge(atom, size + at, bond="single")
    for oxygen in (size + 3, size + 4):
        graph.add_node(oxygen, element="O")
        graph.add_edge(size, oxygen, bond="double" if oxygen == size + 3 else "single")
    networkx.set_node_attributes(graph, {v: float(rng.normal()) for v in graph}, "charge")
    return graph


@pytest.fixture(scope="module")
def molecules():
    rng = np.random.default_rng(0)
    y = np.array(["mutagenic", "harmless"])[np.arange(48) % 2]
    return [molecule(int(rng.integers(5, 9)), label == "mutagenic", rng) for label in y], y


def as_pyg(graph):
    """What from_pyg reads of a ``Data``, without PyTorch."""
    nodes = {node: at for at, node in enumerate(graph)}
    ends = [(nodes[u], nodes[v]) for u, v in graph.edges]
    x = np.array([[graph.nodes[v]["element"] == element for element in ("C", "N", "O", "Cl")] for v in graph], dtype=np.float32)
    return SimpleNamespace(edge_index=np.array(ends + [(v, u) for u, v in ends]).T, num_nodes=len(nodes), x=x)


KINDS = {
    "networkx": (lambda graphs: graphs, {"x": ["element", "charge"], "edge_attr": "bond"}),
    "series": (pandas.Series, {"x": ["element"], "edge_attr": []}),
    "dataset": (lambda graphs: lpgnn.from_networkx(graphs, x=["element", "charge"], edge_attr="bond"), {}),
    "pyg": (lambda graphs: [as_pyg(graph) for graph in graphs], {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_scikit_learn_takes_graphs_of_every_kind(kind, molecules):
    convert, read = KINDS[kind]
    graphs, y = convert(molecules[0]), molecules[1]
    estimator = lpgnn.GraphClassifier(**QUICK, **read)
    scores = cross_val_score(estimator, graphs, y, cv=StratifiedKFold(4, shuffle=True, random_state=0))
    assert scores.mean() > 0.85, scores
    train, test, y_train, y_test = train_test_split(graphs, y, test_size=0.25, stratify=y, random_state=1)
    assert type(train) is type(graphs) and len(train) == 36
    search = GridSearchCV(make_pipeline(FunctionTransformer(), estimator), {"graphclassifier__state_dim": [2, 8]}, cv=3, n_jobs=2)
    search.fit(train, y_train)
    assert search.score(test, y_test) > 0.8 and search.predict(test).dtype == y.dtype
    assert set(search.cv_results_["param_graphclassifier__state_dim"]) == {2, 8}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    probabilities = cross_val_predict(estimator, graphs, y, cv=3, method="predict_proba")
    assert probabilities.shape == (48, 2) and probabilities.sum(axis=1) == pytest.approx(np.ones(48))


@pytest.mark.parametrize("kind", [lpgnn.GraphClassifier, lpgnn.GraphRegressor, lpgnn.NodeClassifier, lpgnn.NodeRegressor])
def test_all_checks_of_scikit_learn_pass(kind):
    estimator = kind(**{name: value for name, value in QUICK.items() if name != "random_state"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {each["check_name"]: each["exception"] for each in results if each["status"] == "failed"}
    # The array API needs SciPy to be started with a variable set.
    skipped = {each["check_name"] for each in results if each["status"] == "skipped"} - {"check_array_api_input"}
    assert not failed and not skipped and len(results) > 50


def test_rows_of_an_array_are_graphs_of_one_node():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), lpgnn.GraphClassifier(**QUICK))
    assert cross_val_score(pipeline, X, y, cv=StratifiedKFold(5)).mean() > 0.93
    frame = load_iris(as_frame=True)
    estimator = lpgnn.GraphClassifier(**QUICK).fit(frame.data, frame.target_names[frame.target])
    assert estimator.feature_names_in_.tolist() == list(frame.data.columns) and estimator.n_features_in_ == 4
    assert estimator.classes_.tolist() == estimator.model_.classes.tolist() == ["setosa", "versicolor", "virginica"]
    X, y = load_diabetes(return_X_y=True)
    assert cross_val_score(lpgnn.GraphRegressor(**QUICK), X, y, cv=5).mean() > 0.35
    two = lpgnn.GraphRegressor(**QUICK).fit(X, np.column_stack([y, -1000 * y]))
    assert two.predict(X).shape == (442, 2) and two.score(X, np.column_stack([y, -1000 * y])) > 0.4
    node = lpgnn.NodeRegressor(**QUICK).fit(X, y)
    assert node.score(X, y) > 0.4 and node.predict(X).shape == (442,)


def test_rows_of_a_frame_may_have_words():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"size": rng.normal(size=60), "kind": rng.choice(["p", "q", "r"], 60)})
    y = (frame["kind"] == "q") ^ (frame["size"] > 0.5)
    for X in (frame, polars.from_pandas(frame)):
        estimator = lpgnn.GraphClassifier(**QUICK | {"epochs": 80}).fit(X, y)
        assert estimator.score(X, y) > 0.9 and estimator.feature_names_in_.tolist() == ["size", "kind"]
        assert cross_val_score(estimator, X, y, cv=3).mean() > 0.7
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame[["kind", "size"]])
    with pytest.raises(lpgnn.Error, match="node 0 of graph 0 has kind “new”"):
        estimator.predict(frame.replace({"kind": {"p": "new", "q": "new", "r": "new"}}))


def test_what_an_integer_column_is_does_not_depend_on_the_rows():
    frame = pandas.DataFrame({"size": np.arange(60) % 4, "kind": pandas.Categorical([1, 2] * 30)})
    y = frame["size"] > 1
    estimator = lpgnn.GraphClassifier(**QUICK | {"epochs": 60}).fit(frame, y)
    assert estimator.score(frame, y) > 0.95
    # A size that no row of training has is a number like the others, not an unknown category.
    assert estimator.predict(frame.assign(size=np.full(60, 9))).all()


@pytest.fixture(scope="module")
def karate():
    graph = networkx.karate_club_graph()
    return graph, np.array([graph.nodes[v]["club"] for v in graph])


@pytest.mark.parametrize("form", ["networkx", "dataset", "adjacency"])
def test_nodes_are_cross_validated_by_their_indices(form, karate):
    graph, y = karate
    if form == "dataset":
        graph = lpgnn.from_networkx(graph, x=[], edge_attr=[])
    elif form == "adjacency":
        graph = scipy.sparse.csr_array(networkx.to_scipy_sparse_array(graph, weight=None))
    # Nodes have no features, but who they are.
    estimator = lpgnn.NodeClassifier(graph, epochs=60, x=[], edge_attr=[], random_state=0)
    nodes = np.arange(34)
    assert cross_val_score(estimator, nodes, y, cv=StratifiedKFold(4, shuffle=True, random_state=0)).mean() > 0.55
    train, test, y_train, y_test = train_test_split(nodes, y, test_size=10, stratify=y, random_state=0)
    search = GridSearchCV(estimator, {"lr": [0.005, 0.02]}, cv=2, n_jobs=2).fit(train, y_train)
    assert search.predict(test).shape == (10,) and search.score(test, y_test) == (search.predict(test) == y_test).mean()
    mask = np.isin(nodes, train)
    by_index = clone(estimator).fit(train, y_train).predict_proba(nodes)
    for target in (y[mask], y, pandas.Series(y)):
        assert (clone(estimator).fit(mask, target).predict_proba(nodes) == by_index).all()
    assert clone(estimator).fit(mask, y).predict(mask).shape == (24,)


def test_nodes_are_selected_by_masks_of_the_graphs_that_are_passed(karate):
    graph, y = karate
    data = lpgnn.from_networkx(graph, x=[], edge_attr=[], y="club")
    mask = np.arange(34) % 3 > 0
    estimator = lpgnn.NodeClassifier(epochs=60, x=[], edge_attr=[], random_state=0)
    first = estimator.fit(graph, y, nodes=mask).predict_proba(graph)
    for X, target, nodes in ((data, None, mask), (data, y[mask], np.flatnonzero(mask)), ([graph], [y], mask)):
        assert (clone(estimator).fit(X, target, nodes=nodes).predict_proba(X) == first).all()
    assert estimator.score(graph, y, nodes=~mask) == estimator.score(data, nodes=~mask) == (estimator.predict(graph) == y)[~mask].mean()
    few = lpgnn.from_networkx(graph, x=[], edge_attr=[]), [club if known else None for club, known in zip(y, mask)]
    few = lpgnn.from_arrays(few[0].edge_index, y=few[1])
    assert (clone(estimator).fit(few).predict_proba(few) == first).all()
    # Targets outside of the mask are not seen.
    wrong = np.where(mask, y, "Officer")
    assert (clone(estimator).fit(graph, wrong, nodes=mask).predict_proba(graph) == first).all()


def test_nodes_of_several_graphs_are_predicted():
    rng = np.random.default_rng(1)
    graphs = [networkx.gnp_random_graph(int(rng.integers(6, 12)), 0.4, seed=at) for at in range(30)]
    y = [np.array([graph.degree(v) for v in graph], dtype=float) for graph in graphs]
    estimator = lpgnn.NodeRegressor(epochs=150, random_state=0)
    assert cross_val_score(estimator, graphs, y, cv=KFold(3)).min() > 0.8
    estimator.fit(graphs, np.concatenate(y))
    assert estimator.predict(graphs[:2]).shape == (len(y[0]) + len(y[1]),)
    both = [np.column_stack([each, -each]) for each in y]
    assert lpgnn.NodeRegressor(epochs=2).fit(graphs, both).predict(graphs[:1]).shape == (len(y[0]), 2)
    assert lpgnn.NodeRegressor(epochs=2).fit(graphs[0], both[0].tolist()).predict(graphs[0]).shape == (len(y[0]), 2)


def test_the_targets_of_a_data_set_are_enough(molecules):
    graphs, y = molecules
    data = lpgnn.from_networkx(graphs, x="element", edge_attr=[], graph_y=y)
    estimator = lpgnn.GraphClassifier(**QUICK).fit(data)
    assert estimator.score(data) == estimator.score(data, y) > 0.9
    again = lpgnn.GraphClassifier(**QUICK).fit(data, y)
    assert (again.predict_proba(data) == estimator.predict_proba(data)).all()
    assert cross_val_score(estimator, data, y, cv=3).shape == (3,)
    some = lpgnn.from_networkx(graphs, x="element", edge_attr=[], graph_y=[None, *y[1:]])
    alone = lpgnn.GraphClassifier(**QUICK).fit(data[1:])
    assert (lpgnn.GraphClassifier(**QUICK).fit(some).predict_proba(data) == alone.predict_proba(data)).all()
    assert alone.score(some) == alone.score(data[1:])
    # So are its weights.
    weights = np.arange(48) % 3
    own = lpgnn.GraphClassifier(**QUICK).fit(data.with_sample_weight(weights)).predict_proba(data)
    assert (own == lpgnn.GraphClassifier(**QUICK).fit(data, sample_weight=weights).predict_proba(data)).all()
    with pytest.raises(lpgnn.Error, match="y is None, and graphs has no targets of graphs"):
        estimator.fit(lpgnn.from_networkx(graphs, x="element", edge_attr=[]))


def test_a_split_that_is_not_used_is_told():
    graph = networkx.path_graph(8)
    split = {"level": "node", "train": [0, 1, 2, 3], "test": [4, 5, 6, 7]}
    networkx.set_node_attributes(graph, {node: node % 2 for node in graph}, "y")
    data = lpgnn.from_networkx(graph, y="y", split=split)
    with pytest.warns(lpgnn.DataWarning, match="all nodes with a target are trained on; pass nodes=") as told:
        lpgnn.NodeClassifier(epochs=1).fit(data)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lpgnn.NodeClassifier(epochs=1).fit(data, nodes=split["train"])


def test_an_estimator_is_copied_and_kept(molecules, tmp_path):
    graphs, y = molecules
    estimator = lpgnn.GraphClassifier(**QUICK, x="element", edge_attr="bond", settings={"training.lipschitz": 0.9})
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params() and copy.settings is not estimator.settings
    with pytest.raises(NotFittedError):
        copy.predict(graphs)
    estimator.fit(graphs, y)
    expected = estimator.predict_proba(graphs)
    joblib.dump(estimator, tmp_path / "estimator.joblib")
    for other in (pickle.loads(pickle.dumps(estimator)), joblib.load(tmp_path / "estimator.joblib")):
        assert (other.predict_proba(graphs) == expected).all()
        # It goes on where it was.
        assert (other.partial_fit(graphs, y).model_.weights == clone(copy).set_params(epochs=41).fit(graphs, y).model_.weights).all()
    estimator.set_params(epochs=3, lr=0.1).fit(graphs, y)
    assert estimator.n_iter_ == 3 and len(estimator.model_.history) == 3
    assert "GraphClassifier" in estimator._repr_html_() and "state_dim=8" in repr(estimator)
    assert "class_weight" in lpgnn.GraphClassifier.__doc__ and "training.epochs" in lpgnn.NodeRegressor.__doc__


def test_the_random_state_decides(molecules):
    with pytest.raises(lpgnn.Error, match="training.seed has no effect: random_state is the seed"):
        lpgnn.GraphClassifier(**QUICK, settings={"training": {"seed": 5}}).fit(np.eye(4), [0, 1, 0, 1])
    graphs, y = molecules
    data = lpgnn.from_networkx(graphs, x="element", edge_attr=[])

    def weights(random_state):
        return lpgnn.GraphClassifier(**QUICK | {"epochs": 2, "random_state": random_state}).fit(data, y).model_.weights

    assert (weights(3) == weights(3)).all() and (weights(3) != weights(4)).any() and (weights(None) != weights(None)).any()
    assert (weights(np.random.RandomState(5)) == weights(np.random.RandomState(5))).all()
    # The seed of lpgnn.train.
    kept = {name: value for name, value in QUICK.items() if name not in ("epochs", "random_state")}
    trained = lpgnn.train(lpgnn.from_networkx(graphs, x="element", edge_attr=[], graph_y=y), epochs=2, seed=3, split={"train": range(48)}, **kept)
    assert (weights(3) == trained.weights).all()


def test_partial_fit_keeps_weights_and_states(molecules):
    graphs, y = molecules
    data = lpgnn.from_networkx(graphs, x="element", edge_attr="bond")
    whole = lpgnn.GraphClassifier(**QUICK | {"epochs": 6}).fit(data, y)
    parts = lpgnn.GraphClassifier(**QUICK | {"epochs": 6})
    for _ in range(6):
        parts.partial_fit(data, y)
    # Nothing is lost between calls, states and optimiser included.
    assert (parts.model_.weights == whole.model_.weights).all()
    assert parts.model_.history["epoch"].tolist() == whole.model_.history["epoch"].tolist() == [1, 2, 3, 4, 5, 6]
    warm = lpgnn.GraphClassifier(**QUICK | {"epochs": 3}, warm_start=True)
    assert (warm.fit(data, y).fit(data, y).model_.weights == whole.model_.weights).all() and warm.n_iter_ == 6
    # As many as the data suggest, every time.
    default = lpgnn.GraphClassifier(**QUICK | {"epochs": None}, warm_start=True).fit(data[:6], y[:6])
    first = default.n_iter_
    assert [default.fit(data[:6], y[:6]).n_iter_ for _ in range(2)] == [2 * first, 3 * first]
    cold = lpgnn.GraphClassifier(**QUICK | {"epochs": 3})
    assert cold.fit(data, y).fit(data, y).n_iter_ == 3

    # Graphs that come in parts, of which none has all classes or all categories.
    stream = lpgnn.GraphClassifier(**QUICK)
    order = np.argsort(y, kind="stable")
    stream.partial_fit(data[order[:24]], y[order[:24]], classes=np.unique(y))
    before = stream.score(data, y)
    for _ in range(10):
        for part in (order[::2], order[1::2]):
            stream.partial_fit(data[part], y[part])
    assert before < 0.6 and stream.score(data, y) > 0.9
    with pytest.raises(ValueError, match="y has the class .*'new'.*, but the classes that training began with are harmless, mutagenic"):
        stream.partial_fit(data[:2], ["new", "harmless"])
    with pytest.raises(lpgnn.Error, match="the same model"):
        stream.set_params(state_dim=3).partial_fit(data, y)


def test_weights_weigh(molecules):
    graphs, y = molecules
    data = lpgnn.from_networkx(graphs, x="element", edge_attr=[])
    wrong = np.arange(48) < 30
    labels = np.where(wrong, "harmless", y)
    estimator = lpgnn.GraphClassifier(**QUICK)
    assert clone(estimator).fit(data, labels).score(data[18:], y[18:]) < 0.9
    weighed = clone(estimator).fit(data, labels, sample_weight=np.where(wrong, 0, 1.5))
    assert weighed.score(data, y) > 0.9
    # A weight of 0 is as if it were not there.
    assert (weighed.predict(data) == clone(estimator).fit(data[~wrong], y[~wrong], sample_weight=np.full(18, 1.5)).predict(data)).all()
    # A weight of 3 is three times the graph.
    plain = lpgnn.GraphClassifier(**QUICK | {"epochs": 10}, settings={"model.dropout": 0, "training.standardize": False})
    often = np.flatnonzero(y == "harmless")
    repeated = np.concatenate([np.arange(48), often, often])
    thrice = clone(plain).fit(data[repeated], y[repeated]).predict_proba(data)
    weighed = clone(plain).fit(data, y, sample_weight=np.where(y == "harmless", 3, 1)).predict_proba(data)
    assert weighed == pytest.approx(thrice, abs=0.002)
    assert np.abs(clone(plain).fit(data, y).predict_proba(data) - thrice).max() > 0.02

    X = np.random.default_rng(0).normal(size=(200, 2))
    noise = (X[:, 0] + np.random.default_rng(1).normal(size=200) > 1.2).astype(int)
    shares = [lpgnn.GraphClassifier(**QUICK, class_weight=each).fit(X, noise).predict(X).mean() for each in (None, "balanced", {0: 1, 1: 50})]
    assert shares[0] < shares[1] < shares[2]
    for wrong in ({0: -1}, "heavy", {0: 1, 7: 2}):
        with pytest.raises(lpgnn.Error, match="class_weight"):
            lpgnn.GraphClassifier(**QUICK, class_weight=wrong).fit(X, noise)
    bagging = BaggingClassifier(lpgnn.GraphClassifier(**QUICK), n_estimators=2, random_state=0).fit(X, noise)
    assert bagging.score(X, noise) > 0.7


def test_weights_of_a_data_set_are_weights_of_the_loss(tmp_path):
    data = lpgnn.read("clique")
    with pytest.raises(lpgnn.Error, match="one number per node is expected: 2100"):
        data.with_sample_weight([1.0, 2.0])
    weighed = data.with_sample_weight(np.arange(2100) % 3)
    assert weighed.sample_weight.tolist() == (np.arange(2100) % 3).tolist() and data.sample_weight is None
    assert "sample weights of nodes, 0 to 2" in repr(weighed)
    for other in (pickle.loads(pickle.dumps(weighed)), weighed[:10] + weighed[10:]):
        assert (other.sample_weight == weighed.sample_weight).all()
    assert weighed[[1]].sample_weight.tolist() == (np.arange(7, 14) % 3).tolist()
    models = [lpgnn.train(each, epochs=3) for each in (data, weighed, data.with_sample_weight(np.ones(2100)))]
    assert (models[0].weights != models[1].weights).any() and (models[0].weights == models[2].weights).all()
    # It is a training on other data.
    run = lpgnn.train(weighed, epochs=2, out=tmp_path / "run", on_epoch=lambda epoch: False)
    with pytest.raises(lpgnn.Error):
        lpgnn.resume(tmp_path / "run", data)
    assert lpgnn.resume(tmp_path / "run", weighed).epoch >= run.epoch
    with pytest.warns(UserWarning, match="sample weights are not written"):
        weighed.write(tmp_path / "tables")


def test_some_samples_are_held_out_to_stop_early(molecules):
    graphs, y = molecules
    data = lpgnn.from_networkx(graphs, x="element", edge_attr=[])
    estimator = lpgnn.GraphClassifier(**QUICK | {"epochs": 400}, early_stopping=True, validation_fraction=0.25, patience=2)
    estimator.fit(data, y)
    assert estimator.n_iter_ < 400 and len(estimator.model_.split["val"]) == 12 and len(estimator.model_.split["test"]) == 0
    assert lpgnn.GraphClassifier(**QUICK).fit(data, y).model_.split["train"].tolist() == list(range(48))
    with pytest.raises(lpgnn.Error, match="validation_fraction is 2"):
        estimator.set_params(validation_fraction=2).fit(data, y)
    with pytest.raises(lpgnn.Error, match="early_stopping holds out 0 of 48"):
        estimator.set_params(validation_fraction=0.001).fit(data, y)


def test_only_nodes_that_are_passed_are_trained_on_or_held_out(molecules):
    graphs, _ = molecules
    data = lpgnn.from_networkx(graphs, x="charge", edge_attr=[], y="element")
    nodes = np.arange(0, data.num_nodes, 2)
    estimator = lpgnn.NodeClassifier(**QUICK, early_stopping=True, validation_fraction=0.25, patience=2)
    split = estimator.fit(data, nodes=nodes).model_.split
    assert split["level"] == "node" and len(split["test"]) == 0 and len(split["val"]) == round(0.25 * len(nodes))
    assert sorted([*split["train"], *split["val"]]) == nodes.tolist()


def test_the_confusion_matrix_is_displayed(molecules):
    graphs, y = molecules
    estimator = lpgnn.GraphClassifier(**QUICK, x="element", edge_attr=[]).fit(graphs, y)
    import matplotlib

    matplotlib.use("Agg")
    display = ConfusionMatrixDisplay.from_estimator(estimator, graphs, y)
    assert display.confusion_matrix.sum() == 48 and display.display_labels.tolist() == ["harmless", "mutagenic"]


def test_progress_is_shown_if_asked_for(molecules, capsys):
    graphs, y = molecules
    lpgnn.GraphClassifier(**QUICK, x="element", edge_attr=[]).fit(graphs, y)
    assert capsys.readouterr().err == ""
    lpgnn.GraphClassifier(**QUICK, x="element", edge_attr=[], verbose=1).fit(graphs, y)
    said = capsys.readouterr().err
    assert "/40" in said or "of 40" in said


def fitted(molecules):
    graphs, y = molecules
    return lpgnn.GraphClassifier(**QUICK, x=["element", "charge"], edge_attr="bond").fit(graphs, y)


def changed(graph, **attributes):
    other = graph.copy()
    for name, value in attributes.items():
        other.nodes[0][name] = value
    return other


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda graph: changed(graph, element="Xe"), "node 0 of graph 0 has element “Xe”, which is none of the known values"),
        (lambda graph: changed(graph, charge=np.nan), "x: charge is nan in row 0"),
        (lambda graph: changed(graph, charge="much"), "x: charge mixes numbers and strings"),
        (lambda graph: networkx.path_graph(3), "node 0 has no attribute element"),
        (lambda graph: "C1CC1", r"X\[1\] is a str, but a NetworkX graph is expected, as X\[0\] is one"),
    ],
)
def test_graphs_that_do_not_fit_are_refused_in_a_sentence(change, message, molecules):
    estimator, graph = fitted(molecules), molecules[0][0]
    new = [change(graph)] if not isinstance(change(graph), str) else [graph, change(graph)]
    with pytest.raises(lpgnn.Error, match=message) as raised:
        estimator.predict(new)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "X is empty, but at least one graph is expected"),
        (np.zeros((4, 2)), [0, 0, 0, 0], "y has one class only, 0, but"),
        (np.zeros((4, 2)), [0, 1, 0], "inconsistent numbers of samples"),
        (np.zeros((4, 2)), [0, 0], "inconsistent numbers of samples"),
        (np.zeros((4, 2)), ["a", "b", None, "b"], "y is None in row 2"),
        (np.zeros((4, 2)), [0, 1, np.nan, 1], "y contains NaN"),
        (np.zeros((4, 2)), [0.5, 1.5, 2.25, 1], "Unknown label type"),
        (np.array([[0, np.nan], [1, 1]]), [0, 1], "X contains NaN"),
        (np.zeros(4), [0, 1, 0, 1], "Expected 2D array"),
        (scipy.sparse.eye_array(4, format="csr"), [0, 1, 0, 1], "[Ss]parse"),
        (np.zeros((4, 2)), None, "y is None"),
    ],
)
def test_data_that_do_not_fit_are_refused_in_a_sentence(X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        lpgnn.GraphClassifier(**QUICK).fit(X, y)


def test_nodes_that_do_not_exist_are_refused_in_a_sentence(karate):
    graph, y = karate
    for X, message in (([40], "X has to be a mask or indices of nodes"), ([True] * 3, "one entry per node"), ([graph], "X has graphs")):
        with pytest.raises(lpgnn.Error, match=message):
            lpgnn.NodeClassifier(graph, epochs=1, x=[], edge_attr=[]).fit(X, y[:1])
    with pytest.raises(lpgnn.Error, match="graph is a str"):
        lpgnn.NodeClassifier("karate", epochs=1).fit([0, 1], y[:2])
    with pytest.raises(lpgnn.Error, match="nodes has no nodes"):
        lpgnn.NodeClassifier(epochs=1, x=[], edge_attr=[]).fit(graph, y, nodes=np.zeros(34, dtype=bool))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_leaves_the_model_so_far():
    X, y = load_iris(return_X_y=True)
    estimator = lpgnn.GraphClassifier(**QUICK | {"epochs": 10**6})
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X, y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert estimator.n_iter_ > 10 and estimator.score(X, y) > 0.9


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_workers_of_joblib_predict_the_same(backend, molecules):
    estimator, graphs = fitted(molecules), molecules[0]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(estimator.predict_proba)(graphs[at : at + 16]) for at in range(0, 48, 16))
    assert np.concatenate(found) == pytest.approx(estimator.predict_proba(graphs), abs=1e-4)


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import lpgnn
data = lpgnn.read('clique')
model = lpgnn.train(data, epochs=2)
assert len(model.epoch_records) == 2 and len(model.predict(data).y) == 2100
for use in (lambda: lpgnn.GraphClassifier, lambda: model.history, lambda: model.plot(), lambda: data.to_networkx()):
    try:
        use()
    except ImportError as error:
        print(error)
from lpgnn import *
assert 'GraphClassifier' in dir(lpgnn)
"""


def test_without_scikit_learn_and_others_the_rest_works():
    code = WITHOUT.format(missing={"sklearn", "pandas", "matplotlib", "networkx", "tqdm", "scipy"})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0] == "lpgnn.GraphClassifier needs scikit-learn, which is not installed: pip install lpgnn[sklearn]"
    assert said[1].startswith("history is a pandas DataFrame, and pandas is not installed; epoch_records has the same")
    assert said[2].startswith("model.plot needs matplotlib, which is not installed") and len(said) == 4
    # It is not even loaded, until it is needed.
    code = "import sys, lpgnn; assert not {'sklearn', 'pandas', 'matplotlib'} & {name.partition('.')[0] for name in sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
