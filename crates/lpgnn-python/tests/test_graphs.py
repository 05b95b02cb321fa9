"""Data sets are made from what other libraries have."""

import pickle
from types import SimpleNamespace

import lpgnn
import networkx
import numpy as np
import pandas
import pytest
import scipy.sparse

TRIANGLE_AND_EDGE = np.array([[0, 1, 1, 2, 2, 0, 3, 4], [1, 0, 2, 1, 0, 2, 4, 3]])
OF = np.array([0, 0, 0, 1, 1])


def test_arrays_become_graphs():
    data = lpgnn.from_arrays(
        TRIANGLE_AND_EDGE,
        batch=OF,
        x={"size": np.arange(5.0), "colour": ["red", "blue", "red", "red", "blue"]},
        y=[1, 0, None, 1, 0],
        graph_y=np.array([0.5, np.nan]),
    )
    assert (len(data), data.num_nodes, data.num_edges) == (2, 5, 8)
    assert data.ptr.tolist() == [0, 3, 5]
    assert sorted(zip(*data.edge_index.tolist())) == sorted(zip(*TRIANGLE_AND_EDGE.tolist()))
    assert data.node_classes.tolist() == [0, 1]
    assert data.graph_classes is None
    assert "2 graphs, 5 nodes, 8 edges" in repr(data)
    assert data.info()["nodes"] == 5


def test_what_is_written_can_be_read_again(tmp_path):
    data = lpgnn.from_arrays(TRIANGLE_AND_EDGE, batch=OF, x=np.eye(5)[:, :2], y=list("abbab"))
    data.write(tmp_path / "written")
    again = lpgnn.read(tmp_path / "written")
    assert (again.ptr == data.ptr).all()
    assert (again.edge_index == data.edge_index).all()
    assert again.node_classes.tolist() == ["a", "b"]
    with pytest.raises(lpgnn.Error, match="written"):
        data.write(tmp_path / "written")
    data.write(tmp_path / "written", force=True)


def test_a_graph_of_networkx_is_the_same_as_its_arrays(tmp_path):
    graph = networkx.karate_club_graph()
    for number, node in enumerate(graph.nodes):
        graph.nodes[node]["number"] = float(number)
    data = lpgnn.from_networkx(graph, x=["number"], y="club", edge_attr="weight")
    assert (len(data), data.num_nodes, data.num_edges) == (1, 34, 156)
    assert set(data.node_classes) == {"Mr. Hi", "Officer"}
    directed = networkx.DiGraph([("a", "b"), ("b", "c"), ("c", "c")])
    assert lpgnn.from_networkx([directed, directed]).num_edges == 6


def test_masks_of_a_single_pyg_graph_become_its_split():
    ones = np.ones((4, 3))
    edges = np.array([[0, 1, 2], [1, 2, 3]])
    mask = np.array([True, False, False, False])
    data = SimpleNamespace(
        num_nodes=4, edge_index=edges, x=ones, y=np.array([0, 1, 0, 1]), train_mask=mask, val_mask=mask[::-1]
    )
    single = lpgnn.from_pyg(data)
    assert single.split["level"] == "node"
    assert single.split["train"].tolist() == [0]
    assert single.split["val"].tolist() == [3]
    assert single.node_classes.tolist() == [0, 1]
    graphs = [SimpleNamespace(num_nodes=4, edge_index=edges, x=ones, y=np.array([k % 2])) for k in range(6)]
    assert lpgnn.from_pyg(graphs).graph_classes.tolist() == [0, 1]
    values = [SimpleNamespace(num_nodes=4, edge_index=edges, x=ones, y=np.array([[k / 2]])) for k in range(6)]
    assert lpgnn.from_pyg(values).graph_classes is None
    several = [SimpleNamespace(**vars(data)), SimpleNamespace(**vars(data))]
    assert lpgnn.from_pyg(several).split["train"].tolist() == [0, 4]
    assert lpgnn.from_pyg([data]).split["train"].tolist() == [0]
    batch = SimpleNamespace(edge_index=edges, num_nodes=24, to_data_list=lambda: graphs)
    assert len(lpgnn.from_pyg(batch)) == 6
    data.train_mask = np.ones((4, 10), dtype=bool)
    with pytest.raises(lpgnn.Error, match=r"data.train_mask\[:, 0\]"):
        lpgnn.from_pyg(data)
    uneven = [SimpleNamespace(num_nodes=n, edge_index=None, y=np.arange(3.0)) for n in (2, 4)]
    assert not lpgnn.from_pyg(uneven)._native.has_node_targets
    graphs[2].x = None
    with pytest.raises(lpgnn.Error, match="graph 2 has no x"):
        lpgnn.from_pyg(graphs)


def test_unknown_classes_are_minus_one_in_pyg():
    y = np.array([0, -1, 1, 0])
    data = SimpleNamespace(edge_index=np.array([[0, 1], [1, 2]]), num_nodes=4, y=y)
    with pytest.warns(lpgnn.DataWarning, match="^y is -1 in 1 of 4 rows, which is read as unknown"):
        found = lpgnn.from_pyg(data)
    assert found.node_classes.tolist() == [0, 1] and "1 of 4 unknown" in found.columns[0]
    data.y = np.array([1, -1, 1, -1])
    assert lpgnn.from_pyg(data).node_classes.tolist() == [-1, 1]


def test_sparse_features_mean_what_dense_ones_do():
    draw = np.random.default_rng(0)
    x = (draw.random((60, 300)) < 0.02).astype(np.float32)
    edges = draw.integers(0, 60, (2, 120))
    y = (x[:, :150].sum(axis=1) > x[:, 150:].sum(axis=1)).astype(int)
    trained = [
        lpgnn.train(lpgnn.from_arrays(edges, x=each, y=y), epochs=5).weights
        for each in (x, scipy.sparse.csr_matrix(x), scipy.sparse.coo_array(x))
    ]
    assert (trained[0] == trained[1]).all() and (trained[0] == trained[2]).all()


def test_a_data_frame_is_read_column_by_column():
    frame = pandas.DataFrame(
        {
            "charge": [0.5, -1.0, 2.0],
            "element": ["C", "H", "C"],
            "number": [6, 1, 6],
            "aromatic": [True, False, True],
            "isotope": pandas.Categorical([12.5, 1.5, 12.5]),
            "mass": pandas.array([12.0, 1.0, 12.0], dtype="Float64"),
        }
    )
    edges = [[0, 1], [1, 2]]

    def columns(x):
        found = lpgnn.from_arrays(edges, x=x)._native.parts()[3]
        values = [] if found["values"] is None else found["values"][0]
        return values, {name: values for name, values, _ in found["categories"]}

    values, categories = columns(frame)
    assert values == ["charge", "mass"]
    assert categories == {
        "element": ["C", "H"],
        "number": ["1", "6"],
        "aromatic": ["False", "True"],
        "isotope": ["1.5", "12.5"],
    }
    # Floats alone keep their names too, and columns without names are numbered.
    assert columns(frame[["charge"]]) == (["charge"], {})
    bare = pandas.DataFrame(np.ones((3, 2)))
    assert columns(bare) == (["x0", "x1"], {})
    assert columns({"a": frame[["charge"]], "b": bare}) == (["charge", "b0", "b1"], {})
    missing = frame.assign(charge=[0.5, np.nan, 1.0])
    with pytest.raises(lpgnn.Error, match="x: charge is nan in row 1, but a finite number is expected"):
        lpgnn.from_arrays(edges, x=missing)
    with pytest.raises(lpgnn.Error, match="column names are strings"):
        lpgnn.from_arrays(edges, x=frame.rename(columns={"charge": ("a", "b")}))


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (pandas.Series(["b", None, "a"]), ["a", "b"]),
        (pandas.Series(["b", "a", "a"], dtype="category"), ["a", "b"]),
        (pandas.Series([3, None, 1], dtype="Int64"), [1, 3]),
        (pandas.Series([3, 2, 1], dtype="Int8"), [1, 2, 3]),
        (pandas.Series([0.5, None, 1], dtype="Float64"), None),
        (pandas.DataFrame({"kind": ["b", "c", "a"]}), ["a", "b", "c"]),
        (pandas.DataFrame({"u": [1.5, 2.0, 3.0], "v": [0.0, 0.0, 1.0]}), None),
    ],
)
def test_targets_may_be_columns_of_pandas(y, classes):
    data = lpgnn.from_arrays([[0, 1], [1, 2]], y=y)
    assert data._native.has_node_targets
    assert (data.node_classes if classes is None else data.node_classes.tolist()) == classes


def test_numbers_beside_categories_are_read_too():
    draw = np.random.default_rng(1)
    edges, value = draw.integers(0, 80, (2, 100)), draw.normal(size=80)
    data = lpgnn.from_arrays(edges, x={"colour": draw.integers(0, 2, 80), "value": value}, y=value > 0)
    assert lpgnn.train(data, epochs=60).evaluate(data)["accuracy"] > 0.9


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([True, False, None], [False, True]),
        (["1", "0", "1"], [0, 1]),
        (["01", "1", "1"], ["01", "1"]),
        ([3, -2, 10], [-2, 3, 10]),
        (np.array(["b", np.nan, "a"], dtype=object), ["a", "b"]),
        (np.ma.array([1, 2, 3], mask=[False, False, True]), [1, 2]),
        (np.array([b"x", b"y", b"x"]), ["x", "y"]),
        ([1.5, None, 2.5], None),
        (np.array([0.5, 1, np.nan], dtype=object), None),
    ],
)
def test_targets_are_classes_or_values_by_their_type(y, classes):
    found = lpgnn.from_arrays([[0, 1], [1, 2]], y=y).node_classes
    assert classes is None if found is None else found.tolist() == classes


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint64, np.int32])
def test_any_integers_number_nodes(kind):
    assert lpgnn.from_arrays(np.array([[0, 1], [1, 2]], dtype=kind, order="F")).num_nodes == 3


def test_graphs_without_nodes_or_edges_are_graphs():
    empty, path = networkx.Graph(), networkx.path_graph(3)
    data = lpgnn.from_networkx([empty, path, empty], graph_y=[0, 1, 0])
    assert data.ptr.tolist() == [0, 0, 3, 3]
    assert lpgnn.from_arrays(np.zeros((2, 0)), num_nodes=4).num_edges == 0
    bare = SimpleNamespace(num_nodes=2, edge_index=None, x=np.ones((2, 1)), y=np.array([1]))
    assert len(lpgnn.from_pyg([bare, bare])) == 2


def test_duplicate_edges_are_counted():
    data = lpgnn.from_arrays([[0, 0, 1], [1, 1, 0]], edge_attr=[1.0, 2.0, 3.0])
    assert data.num_edges == 2 and data.duplicates == (1, 1)


def test_a_data_set_can_be_pickled():
    for data in (
        lpgnn.read("karate"),
        lpgnn.from_arrays(
            TRIANGLE_AND_EDGE,
            batch=OF,
            x={"a": [1.0, 2, 3, 4, 5], "b": list("xyxyx"), "c": scipy.sparse.eye(5)},
            edge_attr=np.arange(8.0),
            graph_y=[0.5, 1.5],
        ),
    ):
        again = pickle.loads(pickle.dumps(data))
        assert repr(again) == repr(data) and (again.edge_index == data.edge_index).all()
        settings = {"training.epochs": 2}
        assert (lpgnn.train(again, settings=settings).weights == lpgnn.train(data, settings=settings).weights).all()


def test_folds_divide_everything_once():
    data = lpgnn.read("clique")
    folds = data.folds(5, seed=3, val=10)
    tested = np.concatenate([fold["test"] for fold in folds])
    assert sorted(tested) == list(range(len(data)))
    for fold in folds:
        together = np.concatenate([fold["train"], fold["val"], fold["test"]])
        assert sorted(together) == list(range(len(data)))
        assert 0 < len(fold["val"]) < len(fold["train"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edge_index": [[0, 1]]}, r"shape \[1, 2\], but integers of shape \[2, edges\]"),
        ({"edge_index": [[0.0], [1.0]]}, "float64"),
        ({"edge_index": [[0], [5]], "num_nodes": 3}, r"edge 0 joins nodes \[0, 5\], but there are 3 nodes"),
        ({"edge_index": [[0], [-1]], "num_nodes": 3}, "edge 0 joins nodes"),
        ({"edge_index": [[0], [1]], "batch": [1, 0]}, "ascending"),
        ({"edge_index": [[0], [2]], "batch": [0, 0, 1]}, "edge 0 joins a node of graph 0 to a node of graph 1"),
        ({"edge_index": [[0], [1]], "num_nodes": 2, "x": [[1.0]]}, "num_nodes has 2, x has 1"),
        ({"edge_index": [[0], [1]], "x": [[1.0], [np.inf]]}, "x: x is inf in row 1"),
        ({"edge_index": [[0], [1]], "y": [0, 1], "split": {"trian": [0]}}, "trian"),
        ({"edge_index": [[0], [1]], "y": [0, 1], "split": {"train": [7]}}, "indices of nodes, from 0 and below 2"),
        ({"edge_index": [[0], [1]], "y": [0, 1], "split": {"train": [True]}}, "one entry per node is expected: 2"),
        ({"edge_index": [[0], [1]], "y": [0, 1], "split": {"train": [0], "test": [0]}}, "0"),
        ({"edge_index": [[0], [1]], "y": [0, 1], "split": {"level": "edge"}}, "edge"),
        ({"edge_index": [[0], [1]], "y": [0, 1], "split": [("train", [0])]}, "a dictionary with train"),
        ({"edge_index": [[0], [1]], "x": {"a": [[0, 1], [0, 1]], "a0": [1.0, 2.0]}}, "two columns called a0"),
        ({"edge_index": [[0], [1]], "x": {1: [0, 1]}}, "names are strings"),
        ({"edge_index": [[0], [1]], "x": [[1.0], [1.0, 2.0]]}, "x is not an array"),
        ({"edge_index": [[0], [1]], "x": 3.0}, "an array is expected"),
        ({"edge_index": [[0], [1]], "x": np.zeros((2, 2, 2))}, "rows of one or more columns"),
        ({"edge_index": [[0], [1]], "x": [1j, 2j]}, "numbers or strings are expected"),
        ({"edge_index": [[0], [1]], "y": [np.inf, 1.0]}, "infinite"),
        ({"edge_index": [[0], [1]], "num_nodes": -1}, "num_nodes is -1"),
        ({"edge_index": [[0], [1]], "batch": [0, 3], "num_graphs": 2}, "batch has a graph 3"),
        ({"edge_index": [[0], [1]], "batch": np.array([1, 0], dtype=np.uint16)}, "ascending"),
        ({"edge_index": [[0], [1]], "x": {"a": scipy.sparse.eye(2), "b": scipy.sparse.eye(2)}}, "hstack"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(arguments, message):
    with pytest.raises(lpgnn.Error, match=message) as raised:
        lpgnn.from_arrays(arguments.pop("edge_index"), **arguments)
    assert "\n" not in str(raised.value)


def test_missing_and_broken_files_are_what_python_calls_them(tmp_path):
    with pytest.raises(FileNotFoundError):
        lpgnn.read("no-such-set")
    (tmp_path / "X_A.txt").write_text("1, 2\n2, x\n")
    (tmp_path / "X_graph_indicator.txt").write_text("1\n1\n")
    with pytest.raises(lpgnn.Error, match="line 2"):
        lpgnn.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        lpgnn.load(tmp_path / "no-model")


def test_a_number_of_graphs_needs_to_know_who_is_in_them():
    for graphs, message in ((3, "batch, the graph of every node"), (2.5, "an integer"), ("3", "an integer")):
        with pytest.raises(lpgnn.Error, match=message):
            lpgnn.from_arrays([[0], [1]], num_graphs=graphs)
    assert len(lpgnn.from_arrays([[0], [1]], num_graphs=1)) == 1


def test_names_of_tables_are_kept(tmp_path):
    (tmp_path / "nodes.csv").write_text("graph,id,kind\nb,x,p\na,y,q\nb,z,q\n")
    (tmp_path / "edges.csv").write_text("graph,source,target\nb,x,z\n")
    data = lpgnn.read(tmp_path)
    assert (data.graph_names, data.node_names) == (["b", "a"], ["x", "z", "y"])
    data.write(tmp_path / "again")
    again = lpgnn.read(tmp_path / "again")
    assert (again.graph_names, again.node_names) == (["b", "a"], ["x", "z", "y"])
    assert pickle.loads(pickle.dumps(again)).node_names == ["x", "z", "y"]
    assert lpgnn.read("clique").graph_names is None
    with pytest.warns(UserWarning) as said:
        data.write(tmp_path / "tu", "tu")
    assert "names of graphs and nodes become numbers" in map(str, (each.message for each in said))


def test_columns_of_tables_are_all_read(tmp_path):
    (tmp_path / "nodes.csv").write_text("kind,size,y\np,0.5,yes\nq,1.5,no\np,2.5,no\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    assert 'source = "all"' in lpgnn.settings(lpgnn.read(tmp_path))


def test_labels_and_attributes_of_tu_files_are_both_read(tmp_path):
    x = {"kind": [0, 1, 0, 1, 1], "size": np.arange(5) / 2}
    lpgnn.from_arrays(TRIANGLE_AND_EDGE, batch=OF, x=x, graph_y=[0, 1]).write(tmp_path / "both", "tu")
    assert 'source = "all"' in lpgnn.settings(lpgnn.read(tmp_path / "both"))
