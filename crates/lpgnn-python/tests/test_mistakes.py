"""Easy mistakes that would give an answer, and a wrong one, are refused or warned of."""

import pickle
import time
import warnings

import lpgnn
import networkx
import numpy as np
import pandas
import polars
import pytest
import scipy.sparse

EDGES = {"source": [0, 1, 2, 3], "target": [1, 2, 3, 0]}
NODES = {"id": [0, 1, 2, 3], "size": [0.1, 0.2, 0.3, 0.4], "y": ["a", "b", "a", "b"], "split": ["train", "train", "test", "test"]}


@pytest.fixture(scope="module")
def clique():
    return lpgnn.read("clique")


@pytest.fixture(scope="module")
def model(clique):
    return lpgnn.train(clique, epochs=2, seed=0)


def renamed(columns, **names):
    return {names.get(name, name): column for name, column in columns.items()}


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame, dict])
def test_columns_of_frames_are_recognised_in_upper_and_lower_case(frame):
    expected = lpgnn.from_frames(frame(EDGES), frame(NODES))
    edges = frame(renamed(EDGES, source="Source", target="TARGET"))
    found = lpgnn.from_frames(edges, frame(renamed(NODES, id="ID", y=" Y ", split="Split")))
    assert found.columns == expected.columns and found.columns[0].startswith("x")
    assert found.split["train"].tolist() == [0, 1] and found.node_classes.tolist() == ["a", "b"]
    several = renamed(NODES | {"Y.b": [1.5, 2.5, 3.5, 4.5]}, size="Y.a")
    del several["y"]
    assert [line.split()[1] for line in lpgnn.from_frames(frame(EDGES), frame(several)).columns] == ["a", "b"]


@pytest.mark.parametrize(
    "frames, message",
    [
        ((EDGES, NODES | {"split": [0, 0, 1, 1]}), "the column split has 0, but train, val or test is expected"),
        ((EDGES, NODES | {"target": [1, 2, 3, 4]}), "nodes has the column 'target', but only these have a meaning there: id, graph, y, split"),
        ((EDGES | {"Y": [1.5, 2, 3, 4]}, NODES), "edges has the column 'Y', but only these"),
        ((EDGES, NODES | {"Y": ["c", "d", "c", "d"]}), "nodes has two columns 'y'"),
        ((EDGES, NODES | {"id": [0, 1, 2, "0"]}), "nodes: the id '0' of row 3 is the same text as another one"),
        ((EDGES, NODES, {"graph": [0], "y": ["a"], "split": ["train"]}), "nodes has a column split, and so has graphs"),
        ((EDGES, NODES | {"size": 1.7e9 + np.arange(4.0)}), "x: size has values from 1700000000 to 1700000003, which single precision"),
        (({"source": [0], "target": [1]}, {"id": [0, 1], "y": [0.5, 1], "y.a": [1.5, 2]}), "nodes has the columns y and y.a"),
        (({"source": [0], "target": [1]}, {"id": [0, 1], "Graph_ID": [0, 1]}), "nodes has the column 'Graph_ID', which would be"),
        (({"source": [0], "target": [1]}, {"id": [0, 1], "train_mask": [True, False]}), "nodes has the column 'train_mask'"),
    ],
)
def test_frames_that_would_be_misread_are_refused(frames, message):
    with pytest.raises(lpgnn.Error, match=message):
        lpgnn.from_frames(*frames)


def test_two_columns_of_the_same_name_are_refused():
    edges = pandas.DataFrame([[0, 1, 2], [1, 2, 0]], columns=["source", "target", "target"])
    with pytest.raises(lpgnn.Error, match="edges has two columns 'target'"):
        lpgnn.from_frames(edges)


@pytest.mark.parametrize(
    "values", [1.7e9 + np.arange(40.0), 1e-50 * np.arange(40.0), np.array([2**53 + at for at in range(40)])]
)
def test_values_that_single_precision_cannot_tell_apart_are_refused(values):
    empty = np.zeros((2, 0), dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lpgnn.DataWarning)
        with pytest.raises(lpgnn.Error, match="^x: a has values from .*, which single precision cannot distinguish"):
            lpgnn.from_arrays(empty, x={"a": values})
        for y in (values.astype(float), np.where(np.arange(40) == 3, np.nan, values)):
            with pytest.raises(lpgnn.Error, match="^y has values from .*, which single precision cannot distinguish"):
                lpgnn.from_arrays(empty, y=y)
        x = np.arange(40.0)[:, None]
        with pytest.raises(lpgnn.Error, match="^y has values from"):
            lpgnn.GraphRegressor(epochs=1).fit(x, values.astype(float))
        lpgnn.from_arrays(empty, x={"a": values - values.mean() if values.min() > 1 else 1e50 * values})
    with pytest.raises(ValueError, match="y has values that are too large"):
        lpgnn.GraphRegressor(epochs=1).fit(x, 1e39 * x[:, 0])


def test_rows_in_another_order_are_warned_of():
    x = pandas.DataFrame({"a": [0.1, 0.2, 0.3, 0.4]}, index=[3, 2, 1, 0])
    y = pandas.Series(["p", "q", "p", "q"])
    with pytest.warns(lpgnn.DataWarning, match="the same index in another order") as told:
        lpgnn.from_arrays([[0], [1]], x=x, y=y)
    assert told[0].filename == __file__
    with pytest.warns(lpgnn.DataWarning, match="the same index in another order") as told:
        lpgnn.GraphClassifier(epochs=1).fit(x, y)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lpgnn.from_arrays([[0], [1]], x=x, y=y[::-1])
        lpgnn.from_arrays([[0], [1]], x=x, y=y.set_axis(list("abcd")))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"graph_y": {0: "a", 1: "b"}}, "graph_y is {0: 'a', 1: 'b'}, but the name of an attribute or a list"),
        ({"graph_y": {"a", "b"}}, "but the name of an attribute or a list"),
        ({"y": ["a", "b"]}, r"y is \['a', 'b'\], but the name of a node attribute is expected"),
    ],
)
def test_targets_of_networkx_graphs_are_a_name_or_a_list(arguments, message):
    with pytest.raises(lpgnn.Error, match=message):
        lpgnn.from_networkx([networkx.path_graph(2), networkx.path_graph(3)], **arguments)


@pytest.mark.parametrize("convert", [lpgnn.from_networkx, lpgnn.from_pyg])
@pytest.mark.parametrize(
    "graphs, message",
    [
        (None, "is None, but a"),
        (3, "is 3, but a"),
        (["a"], r"\[0\] is a str, but a"),
        ([networkx.path_graph(2), None], "a NoneType, but a|is a Graph, but a"),
        ({"train": 1}, r"\[0\] is a str, but a"),
        ([], "there are no graphs"),
    ],
)
def test_what_is_no_graph_is_named(convert, graphs, message):
    with pytest.raises(lpgnn.Error, match=message):
        convert(graphs)


def test_attributes_of_any_node_or_edge_are_warned_of():
    graph = networkx.path_graph(3)
    graph.nodes[2]["charge"] = 1.0
    graph.edges[1, 2]["bond"] = "single"
    with pytest.warns(lpgnn.DataWarning, match="the node attributes charge are not used"):
        with pytest.warns(lpgnn.DataWarning, match="the edge attributes bond are not used"):
            lpgnn.from_networkx(graph)


def test_entries_of_a_sparse_matrix_at_the_same_place_are_added_up():
    twice = scipy.sparse.coo_matrix(([1.0, 1.0, 1.0], ([0, 0, 1], [1, 1, 2])), shape=(3, 3))
    assert lpgnn.from_arrays(twice).to_pandas().edges["weight"].tolist() == [2, 1]
    rows = scipy.sparse.csr_matrix((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 3))
    assert lpgnn.from_arrays([[0], [1]], x=rows).to_pandas().nodes["sparse1"].tolist() == [3, 0]
    assert rows.nnz == 2


def test_targets_are_not_compared_with_the_outputs_of_others():
    x = np.random.default_rng(0).random((30, 1))
    y = pandas.DataFrame({"p": x[:, 0], "q": 100 * x[:, 0]})
    data, swapped = (lpgnn.from_arrays([[0], [1]], x=x, y=targets) for targets in (y, y[["q", "p"]]))
    model = lpgnn.train(data, epochs=2)
    with pytest.raises(lpgnn.Error, match="the targets are q, p, but the model predicts p, q, in this order"):
        model.evaluate(swapped)
    assert (model.predict(swapped).outputs == model.predict(data).outputs).all()
    assert model.evaluate(data) == model.evaluate(lpgnn.from_arrays([[0], [1]], x=x, y=y.to_numpy()))


def test_single_missing_targets_of_a_data_set_are_no_reason_to_drop_a_sample():
    rng = np.random.default_rng(0)
    x = rng.random((40, 1))
    y = np.column_stack([x[:, 0], 1 - 2 * x[:, 0]])
    y[::2, 0] = np.nan
    y[3] = np.nan
    data = lpgnn.from_arrays(np.zeros((2, 0), dtype=np.int64), batch=np.arange(40), x=x, graph_y=y)
    regressor = lpgnn.GraphRegressor(epochs=100, random_state=0).fit(data)
    assert len(regressor.model_.split["train"]) == 39
    assert regressor.score(data) > 0.9 and regressor.predict(data).shape == (40, 2)
    with pytest.raises(ValueError, match="NaN"):
        regressor.fit(x, y)


def test_a_pickled_estimator_has_no_training_data():
    rng = np.random.default_rng(0)
    sizes = []
    for rows in (200, 400):
        X = rng.random((rows, 400))
        fitted = lpgnn.GraphClassifier(epochs=1, state_dim=5, random_state=0).fit(X, np.arange(rows) % 2)
        sizes.append(len(pickle.dumps(fitted)))
    # States and multipliers, from which partial_fit goes on, but not 200 rows of 400 numbers.
    assert sizes[1] - sizes[0] < 200 * 400 * 4 / 2, sizes


def test_zeros_and_ones_for_all_are_no_indices(model, clique):
    mask = (np.arange(clique.num_nodes) >= 20).astype(int)
    with pytest.raises(lpgnn.Error, match="convert a mask to booleans"):
        model.evaluate(clique, mask)
    with pytest.raises(lpgnn.Error, match="subset names node 3 twice"):
        model.evaluate(clique, [3, 4, 3])


def test_a_node_or_graph_that_is_named_twice_is_found_at_once(model):
    many = lpgnn.from_arrays([[0], [1]], num_nodes=10**5, y=["0", "1"] * 50_000)
    begun = time.monotonic()
    with pytest.raises(lpgnn.Error, match="subset names node 99999 twice"):
        model.evaluate(many, [*range(10**5), 99_999])
    assert time.monotonic() - begun < 5


def test_the_graphs_of_a_split_are_not_taken_for_nodes(model, clique):
    with pytest.raises(lpgnn.Error, match="pass split='test'"):
        model.evaluate(clique, model.split["test"])


def test_frames_whose_order_or_ids_mislead_are_noticed():
    nodes = pandas.DataFrame({"graph": ["A", "B"] * 3, "id": [0, 0, 1, 1, 2, 2], "f": [0.0, 1.0] * 3})
    edges = pandas.DataFrame({"graph": ["A", "B"], "source": [0, 0], "target": [1, 2]})
    with pytest.warns(lpgnn.DataWarning, match="another order"):
        lpgnn.from_frames(edges, nodes)
    with pytest.raises(lpgnn.Error, match="edges: row 1 has no source"):
        lpgnn.from_frames(pandas.DataFrame({"source": ["a", None], "target": ["b", "c"]}))


def test_labels_that_are_not_the_positions_of_a_split_are_noticed():
    graph = networkx.relabel_nodes(networkx.path_graph(6), {at: at + 1 for at in range(6)})
    with pytest.warns(lpgnn.DataWarning, match="the nodes are called 1, 2, …, but split has their positions") as told:
        lpgnn.from_networkx(graph, split={"level": "node", "train": [1, 2]})
    assert told[0].filename == __file__
    with pytest.warns(lpgnn.DataWarning, match="the nodes are called 1, 2, …, but X has their positions"):
        lpgnn.NodeClassifier(graph, epochs=1).fit([1, 2, 3, 4], [0, 1, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lpgnn.from_networkx(graph)
        lpgnn.from_networkx(networkx.path_graph(6), split={"level": "node", "train": [1, 2]})


def test_labels_in_another_order_are_noticed_and_kept():
    graph = networkx.Graph([(2, 0), (0, 1)])
    with pytest.warns(lpgnn.DataWarning, match="0 to 2 in another order"):
        data = lpgnn.from_networkx(graph)
    assert data.node_names == ["2", "0", "1"]


def test_edges_that_are_zero_or_differ_are_noticed():
    matrix = scipy.sparse.csr_matrix(np.ones((3, 3)))
    matrix.setdiag(0)
    with pytest.warns(lpgnn.DataWarning, match="3 stored entries"):
        lpgnn.from_arrays(matrix)
    edges = pandas.DataFrame({"source": [0, 0], "target": [1, 1], "amount": [1.0, 5.0]})
    with pytest.warns(lpgnn.DataWarning, match="1 duplicate edge"):
        lpgnn.from_frames(edges)


def test_features_that_are_called_like_structure_keep_their_values():
    data = lpgnn.from_arrays(np.array([[0, 1], [1, 2]]), num_nodes=4, x={"id": [2, 0, 3, 1], "f": [0.1, 0.2, 0.3, 0.4]}, y=list("pqpq"))
    with pytest.warns(lpgnn.DataWarning, match="feature id is called id_"):
        frames = data.to_pandas()
    again = lpgnn.from_frames(*frames)
    assert again.edge_index.tolist() == data.edge_index.tolist()
    karate = lpgnn.read("karate")
    assert lpgnn.from_frames(*karate.to_pandas()).columns[0].split() == karate.columns[0].split()
