"""Data sets are sliced, joined, and converted to and from what other libraries have."""

import pickle
import sys
from types import ModuleType, SimpleNamespace

import lpgnn
import networkx
import numpy as np
import pandas
import polars
import pyarrow
import pytest
import scipy.sparse


@pytest.fixture(scope="module")
def data():
    """Three graphs: a triangle, two nodes with one edge, and one node alone."""
    return lpgnn.from_arrays(
        [[0, 1, 1, 2, 2, 0, 3], [1, 0, 2, 1, 0, 2, 4]],
        batch=[0, 0, 0, 1, 1, 2],
        x={"kind": list("aabbab"), "size": np.arange(6) / 2},
        edge_attr={"bond": [1, 1, 2, 2, 1, 1, 2]},
        y=[0, 1, None, 1, 0, 1],
        graph_y=[0.5, np.nan, 2.5],
        split={"train": [0], "val": [1], "test": [2]},
    )


def test_graphs_are_selected(data):
    one = data[1]
    assert (len(one), one.num_nodes, one.edge_index.tolist()) == (1, 2, [[0], [1]])
    assert len(data[-1]) == 1 and data[-1].num_nodes == 1
    for which in (slice(1, 3), [1, 2], np.array([1, 2]), np.array([False, True, True]), range(1, 3)):
        assert data[which].ptr.tolist() == [0, 2, 3]
    assert data[[2, 0, 2]].ptr.tolist() == [0, 1, 4, 5]
    assert [each.num_nodes for each in data] == [3, 2, 1]
    # Parts of the split are kept, as far as there is something to train on.
    assert data[:2].split["val"].tolist() == [1] and data[[1, 0]].split["train"].tolist() == [1]
    assert data[1:].split is None
    assert data[0].to_networkx()[0].nodes[2] == {"kind": "b", "size": 1.0, "y": None}
    with pytest.raises(IndexError, match="graph 3 does not exist: there are 3"):
        data[3]
    with pytest.raises(lpgnn.Error, match="below 3"):
        data[[3]]
    with pytest.raises(lpgnn.Error, match="no graphs are selected"):
        data[3:]


def test_joining_the_graphs_gives_the_whole(data):
    for joined in (lpgnn.concat(data), data[0] + data[1:], lpgnn.concat([data[:2], data[2]])):
        assert joined.ptr.tolist() == data.ptr.tolist()
        assert (joined.edge_index == data.edge_index).all()
        assert joined.columns == data.columns
    assert lpgnn.concat([data, data]).split["test"].tolist() == [2, 5]
    names = lpgnn.from_frames({"source": ["p"], "target": ["q"]})
    assert (names + names).node_names == ["p", "q", "p", "q"]
    with pytest.raises(lpgnn.Error, match="the node features differ"):
        data + lpgnn.from_arrays([[0], [1]], x=[0.5, 1.5])
    with pytest.raises(lpgnn.Error, match="datasets is empty"):
        lpgnn.concat([])
    with pytest.raises(TypeError, match="datasets has a str"):
        lpgnn.concat(["clique"])


def test_a_slice_trains_and_predicts_like_the_whole():
    data = lpgnn.read("clique")
    model = lpgnn.train(data, epochs=3)
    whole = model.predict(data).outputs
    start, end = data.ptr[[10, 20]]
    assert model.predict(data[10:20]).outputs == pytest.approx(whole[start:end], abs=1e-4)
    again = pickle.loads(pickle.dumps(data[10:20]))
    assert repr(again) == repr(data[10:20])


def test_networkx_is_there_and_back(data):
    graphs = data.to_networkx()
    assert [type(graph) for graph in graphs] == [networkx.DiGraph] * 3
    assert graphs[0].edges[1, 2] == {"bond": 2} and graphs[2].graph["y"] == 2.5
    back = lpgnn.from_networkx(graphs, x=["kind", "size"], edge_attr="bond", y="y", graph_y="y")
    assert back.columns == data.columns and (back.edge_index == data.edge_index).all()
    # The triangle alone has all of its edges in both directions.
    assert not data[0].to_networkx()[0].is_directed()
    assert lpgnn.read("karate").to_networkx()[0].number_of_edges() == 78
    assert not lpgnn.read("karate").to_networkx()[0].is_directed()


def test_frames_are_there_and_back(data):
    frames = data.to_pandas()
    assert frames.nodes["kind"].tolist() == list("aabbab") and frames.graphs["split"].tolist() == ["train", "val", "test"]
    assert frames.edges[["graph", "source", "target", "bond"]].iloc[-1].tolist() == [1, 0, 1, 2]
    as_polars = [polars.from_pandas(frame) for frame in frames]
    as_arrow = [pyarrow.Table.from_pandas(frame) for frame in frames]
    for back in (lpgnn.from_frames(*frames), lpgnn.from_frames(*as_polars), lpgnn.from_frames(*as_arrow)):
        assert back.columns == data.columns
        assert (back.edge_index == data.edge_index).all() and back.ptr.tolist() == data.ptr.tolist()
        assert back.split["test"].tolist() == [2]
    several = lpgnn.from_arrays([[0], [1]], y=pandas.DataFrame({"u": [0.5, 1.5], "v": [2.5, 3.5]}))
    assert several.to_pandas().nodes["y.v"].tolist() == [2.5, 3.5]
    assert lpgnn.from_frames(*several.to_pandas()).columns == several.columns


def test_frames_go_by_the_ids_of_nodes():
    edges = pandas.DataFrame({"source": ["ann", "bob"], "target": ["bob", "cid"], "since": [1.5, 2.5]})
    data = lpgnn.from_frames(edges, directed=False)
    assert data.node_names == ["ann", "bob", "cid"] and data.num_edges == 4
    nodes = pandas.DataFrame({"id": ["cid", "bob", "ann"], "y": ["p", "q", None], "age": [0.5, 1.5, 2.5]})
    data = lpgnn.from_frames(edges, nodes)
    assert data.node_names == ["cid", "bob", "ann"] and data.edge_index.tolist() == [[1, 2], [0, 1]]
    # Nodes of a graph need not lie together, and an id counts within its graph.
    nodes = pandas.DataFrame({"graph": ["g", "h", "g"], "id": [1, 1, 2], "x": [0.5, 1.5, 2.5]})
    edges = pandas.DataFrame({"graph": ["g"], "source": [1], "target": [2]})
    data = lpgnn.from_frames(edges, nodes, pandas.DataFrame({"graph": ["h", "g"], "y": [0, 1]}))
    assert data.graph_names == ["h", "g"] and data.ptr.tolist() == [0, 1, 3]
    assert data._native.parts()[3]["values"][1].ravel().tolist() == [1.5, 0.5, 2.5]
    for wrong, message in (
        ((edges.rename(columns={"source": "from"}),), "edges has the columns graph, from, target, but source is missing"),
        ((edges.assign(target=3), nodes), "edges: row 0 names node 3"),
        ((edges.assign(graph="k"), nodes), "edges names a graph 'k'"),
        ((edges, nodes.assign(id=1)), "nodes: the id 1 of row 2 occurs twice"),
        ((edges, nodes.assign(split="tset")), "the column split has 'tset'"),
        (([1, 2],), "edges is a list, but a data frame"),
    ):
        with pytest.raises(lpgnn.Error, match=message):
            lpgnn.from_frames(*wrong)


def test_edges_are_arrays_frames_or_an_adjacency_matrix():
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    frame = {"source": edges[0], "target": edges[1], "weight": [0.5, 1.5, 2.5]}
    matrix = scipy.sparse.coo_array((frame["weight"], tuple(edges)), shape=(4, 4))
    for given in (pandas.DataFrame(frame), polars.DataFrame(frame), pyarrow.table(frame), frame):
        data = lpgnn.from_arrays(given)
        assert (data.edge_index == [[0, 1, 2], [1, 2, 0]]).all() and data.columns == ["edge_attr weight number"]
    for kind in (matrix, matrix.tocsr(), scipy.sparse.csc_matrix(matrix)):
        data = lpgnn.from_arrays(kind)
        assert data.num_nodes == 4 and data.columns == ["edge_attr weight number"]
    assert lpgnn.from_arrays((matrix != 0).astype(int)).columns == []


def test_pyg_is_there_and_back(data, monkeypatch):
    class Data(SimpleNamespace):
        def __setitem__(self, name, value):
            setattr(self, name, value)

    # What is used of them; the conversion itself is NumPy's.
    torch, geometric, inside = ModuleType("torch"), ModuleType("torch_geometric"), ModuleType("torch_geometric.data")
    torch.as_tensor, inside.Data = np.asarray, Data
    for name, module in (("torch", torch), ("torch_geometric", geometric), ("torch_geometric.data", inside)):
        monkeypatch.setitem(sys.modules, name, module)
    graphs = data.to_pyg()
    assert [graph.num_nodes for graph in graphs] == [3, 2, 1]
    assert graphs[0].x.tolist() == [[1, 0, 0], [1, 0, 0.5], [0, 1, 1]]
    assert graphs[0].edge_attr.tolist()[:2] == [[1, 0], [1, 0]] and graphs[1].edge_index.tolist() == [[0], [1]]
    back = lpgnn.from_pyg(graphs)
    assert (back.edge_index == data.edge_index).all() and back.ptr.tolist() == data.ptr.tolist()
    karate = lpgnn.read("karate").to_pyg()[0]
    assert karate.y.dtype == np.int64 and karate.y.shape == (34,)


def test_a_sparse_tensor_without_edge_index_is_refused():
    graph = SimpleNamespace(num_nodes=2, adj_t=object(), x=np.ones((2, 1)), y=np.array([1]))
    with pytest.raises(lpgnn.Error, match="graph 0 has adj_t but no edge_index"):
        lpgnn.from_pyg(graph)
