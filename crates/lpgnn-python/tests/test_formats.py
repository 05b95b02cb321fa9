"""Files that other libraries write are read, and mean what they mean there."""

import gzip
import json

import networkx as nx
import numpy as np
import pytest

import lpgnn


def described(data):
    """What does not depend on where a data set comes from."""
    parts = data._native.parts()
    return data.edge_index.tolist(), data.ptr.tolist(), *({k: repr(v) for k, v in part.items()} for part in parts[3:5])


def molecules():
    graphs = []
    for size in range(3, 9):
        graph = nx.cycle_graph(size) if size % 2 else nx.path_graph(size)
        for node in graph.nodes:
            graph.nodes[node].update(element="CNO"[node % 3], charge=0.5 * node, number=node % 3, ring=bool(size % 2), x=[0.5, node])
        for u, v in graph.edges:
            graph.edges[u, v]["length"] = 1.0 + u
        graph.graph.update(name=f"m{size}", y="ring" if size % 2 else "chain")
        graphs.append(graph)
    return graphs


def test_node_link_json_is_what_from_networkx_makes_of_the_graphs(tmp_path):
    graphs = molecules()
    features = {"x": ["element", "charge", "number", "ring", "x"], "edge_attr": ["length"]}
    expected = lpgnn.from_networkx(graphs, **features, graph_y="y")
    path = tmp_path / "graphs.json"
    for edges in ("edges", "links"):
        path.write_text(json.dumps([nx.node_link_data(graph, edges=edges) for graph in graphs]))
        data = lpgnn.read(path)
        assert described(data) == described(expected)
        assert data.graph_classes.tolist() == ["chain", "ring"]
        assert data.graph_names == [f"m{size}" for size in range(3, 9)]
    # Back and forth.
    path.write_text("\n".join(json.dumps(nx.node_link_data(graph, edges="edges")) for graph in data.to_networkx()))
    assert described(lpgnn.read(path)) == described(data)
    model = lpgnn.train(data, epochs=5, progress=False)
    assert set(model.predict(data).y) <= {"chain", "ring"}


def test_npz_graphs_of_both_layouts_are_read(tmp_path):
    n = 40
    draw = np.random.default_rng(0)
    x = draw.normal(size=(n, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    edges = np.array([[u, (u + 1) % n] for u in range(n)])
    masks = draw.permuted(np.tile(np.arange(n) % 4, (3, 1)), axis=1)
    dense = tmp_path / "dense.npz"
    np.savez_compressed(
        dense,
        edges=edges,
        node_features=x,
        node_labels=y,
        train_masks=np.asfortranarray(masks > 1),
        val_masks=masks == 1,
        test_masks=masks == 0,
        names=np.array(["ignored"], dtype=object),
    )
    data = lpgnn.read(dense)
    expected = lpgnn.from_arrays(np.concatenate([edges, edges[:, ::-1]]).T, x=x, y=y)
    assert described(data)[:2] == described(expected)[:2]
    assert (data._native.parts()[3]["values"][1] == x).all()
    assert data.split["train"].tolist() == np.flatnonzero(masks[0] > 1).tolist()

    scipy = pytest.importorskip("scipy.sparse")
    matrix = scipy.csr_matrix((np.ones(n), edges.T), shape=(n, n))
    features = scipy.csr_matrix(np.where(x > 0.5, x, 0))
    arrays = {"labels": y, "train_idx": np.arange(20), "val_idx": np.arange(20, 30), "test_idx": np.arange(30, n)}
    for name, part in (("adj", matrix), ("attr", features)):
        arrays |= {f"{name}_{key}": getattr(part, key) for key in ("data", "indices", "indptr", "shape")}
    sparse = tmp_path / "sparse.npz"
    np.savez(sparse, **arrays)
    data = lpgnn.read(sparse)
    assert described(data) == described(lpgnn.from_arrays(matrix, x=features, y=y))
    assert data.split["val"].tolist() == list(range(20, 30))


def test_the_raw_files_of_ogb_are_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    graphs = molecules()

    def write(name, rows):
        path = tmp_path / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        pandas.DataFrame(rows).to_csv(path, header=False, index=False, compression="gzip")

    write("raw/num-node-list", [len(graph) for graph in graphs])
    write("raw/num-edge-list", [graph.number_of_edges() for graph in graphs])
    write("raw/edge", [edge for graph in graphs for edge in graph.edges])
    write("raw/node-feat", [(graph.nodes[node]["number"], 1) for graph in graphs for node in graph])
    write("raw/edge-feat", [length for graph in graphs for _, _, length in graph.edges(data="length")])
    write("raw/graph-label", [[0.5, None], [None, 1.0]] * 3)
    for name, members in (("train", [0, 1, 2, 3]), ("valid", [4]), ("test", [5])):
        write(f"split/scaffold/{name}", members)
    data = lpgnn.read(tmp_path)
    expected = lpgnn.from_networkx(graphs, x="number", edge_attr="length")
    assert described(data)[:2] == described(expected)[:2]
    assert data.split["train"].tolist() == [0, 1, 2, 3]
    labels = data._native.parts()[6][1]
    assert np.isnan(labels[0]).tolist() == [False, True]
    (tmp_path / "raw" / "edge.csv.gz").write_bytes(gzip.compress(b"0,9\n"))
    with pytest.raises(lpgnn.Error, match=r"edge\.csv\.gz, line 1: names node 9, but graph 0 has 3 nodes"):
        lpgnn.read(tmp_path)
