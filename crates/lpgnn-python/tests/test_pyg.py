"""PyTorch Geometric's own objects, where they are installed."""

import lpgnn
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
from torch_geometric.data import Batch, Data, HeteroData  # noqa: E402
from torch_geometric.transforms import ToSparseTensor  # noqa: E402
from torch_geometric.utils import to_undirected  # noqa: E402


def ring_or_chain(size, ring):
    ends = torch.tensor([[at, (at + 1) % size] for at in range(size if ring else size - 1)]).T
    return Data(x=torch.ones(size, 1), edge_index=to_undirected(ends), y=torch.tensor([int(ring)]))


@pytest.fixture(scope="module")
def graphs():
    return [ring_or_chain(size, ring) for size in range(4, 16) for ring in (True, False)]


def test_estimators_take_lists_of_data(graphs):
    y = [int(graph.y) for graph in graphs]
    classifier = lpgnn.GraphClassifier(epochs=60, random_state=0)
    train, test, y_train, y_test = train_test_split(graphs, y, stratify=y, random_state=0)
    assert isinstance(train[0], Data)
    assert classifier.fit(train, y_train).score(test, y_test) > 0.6
    assert cross_val_score(classifier, graphs, y, cv=StratifiedKFold(3)).shape == (3,)
    search = GridSearchCV(classifier, {"lr": [0.005, 0.02]}, cv=2, n_jobs=2).fit(graphs, torch.tensor(y))
    assert search.predict(graphs).shape == (24,)


def test_data_are_there_and_back(graphs):
    data = lpgnn.from_pyg(graphs)
    assert len(data) == 24 and data.graph_classes.tolist() == [0, 1]
    back = data.to_pyg()
    for ours, theirs in zip(back, graphs):
        assert isinstance(ours, Data) and ours.validate()
        assert torch.equal(ours.x, theirs.x) and torch.equal(ours.y, theirs.y)
        assert torch.equal(ours.edge_index, theirs.edge_index)
    again = lpgnn.from_pyg(Batch.from_data_list(back))
    assert (again.edge_index == data.edge_index).all() and again.columns == data.columns
    karate = lpgnn.read("karate")
    graph = karate.to_pyg()[0]
    assert graph.train_mask.dtype == torch.bool and int(graph.train_mask.sum()) == len(karate.split["train"])
    found = lpgnn.from_pyg(graph)
    assert found.split["test"].tolist() == karate.split["test"].tolist()
    assert lpgnn.train(found, epochs=3).task == "node"


def test_several_targets_and_dtypes_of_tensors():
    graphs = [Data(x=torch.rand(3, 2, dtype=torch.float64), edge_index=torch.tensor([[0], [1]]), y=torch.rand(1, 3)) for _ in range(4)]
    assert len(lpgnn.from_pyg(graphs).columns) == 5
    half = [Data(x=graph.x.bfloat16(), edge_index=graph.edge_index, y=graph.y) for graph in graphs]
    assert [line.split()[-1] for line in lpgnn.from_pyg(half).columns][:2] == ["number", "number"]
    graphs[2].x = torch.zeros(3, 2, dtype=torch.long)
    with pytest.raises(lpgnn.Error, match="^x has floats in some graphs and integers in others"):
        lpgnn.from_pyg(graphs)
    with pytest.raises(lpgnn.Error, match="heterogeneous"):
        lpgnn.from_pyg(HeteroData())


def test_what_is_not_read_is_told(graphs):
    sparse = ToSparseTensor()(graphs[0].clone())
    with pytest.raises(lpgnn.Error, match="graph 0 has adj_t but no edge_index"):
        lpgnn.from_pyg([sparse])
    more = graphs[0].clone()
    more.pos, more.edge_weight = torch.rand(more.num_nodes, 3), torch.rand(more.num_edges)
    with pytest.warns(lpgnn.DataWarning, match="the attributes pos, edge_weight are not read: join them to x or edge_attr"):
        lpgnn.from_pyg([more, graphs[1]])


def test_a_model_predicts_tensors_as_it_predicts_arrays(graphs):
    data = lpgnn.from_pyg(graphs)
    model = lpgnn.train(data, epochs=5, seed=0)
    arrays = lpgnn.from_arrays(data.edge_index, batch=np.repeat(np.arange(24), np.diff(data.ptr)), x=np.ones((data.num_nodes, 1)))
    assert (model.predict(data).outputs == model.predict(arrays).outputs).all()
