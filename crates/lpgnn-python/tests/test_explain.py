"""Explanations name what matters."""

import lpgnn
import networkx as nx
import numpy as np
import pytest


def rings_and_chains(sizes=range(5, 17)):
    graphs = [nx.cycle_graph(n) for n in sizes] + [nx.path_graph(n) for n in sizes]
    classes = ["ring"] * len(sizes) + ["chain"] * len(sizes)
    for graph in graphs:
        nx.set_node_attributes(graph, {v: 0.5 + float(graph.degree(v) == 1) for v in graph}, "end")
    return graphs, classes


@pytest.fixture(scope="module")
def trained():
    graphs, classes = rings_and_chains()
    data = lpgnn.from_networkx(graphs, x="end", graph_y=classes)
    return lpgnn.train(data, epochs=30, seed=0, progress=False), data, graphs, classes


def test_an_explanation_is_about_what_is_predicted(trained):
    model, data, graphs, _ = trained
    found = model.explain(data, 3)
    predicted = model.predict(data)
    assert found.output == predicted.y[3] and found.graph == 3
    c = list(model.classes).index(found.output)
    others = np.delete(predicted.outputs[3], c).astype(float)
    assert found.score == pytest.approx(predicted.outputs[3, c] - np.log(np.exp(others).sum()), abs=1e-3)
    assert found.gradient.shape[0] == len(found.nodes) == graphs[3].number_of_nodes()
    assert {frozenset(edge) for edge in found.edges.tolist()} == {frozenset(edge) for edge in graphs[3].edges}
    assert np.all(np.diff(np.abs(found.edge_effects)) <= 0) and found.edge_converged.all()
    other = next(name for name in model.classes if name != found.output)
    assert model.explain(data, 3, output=other).score == pytest.approx(-found.score, abs=1e-3)
    assert "Explanation of" in repr(found)


def test_without_the_edge_that_is_named_the_score_is_what_was_told(trained):
    model, data, graphs, classes = trained
    item = classes.index("chain") + 4
    found = model.explain(data, item)
    (u, v, effect), *_ = found.top_edges(1)
    without = graphs[item].copy()
    without.remove_edge(u, v)
    again = model.explain(lpgnn.from_networkx([without], x="end"), 0, output=found.output, max_edges=0)
    assert found.score - again.score == pytest.approx(effect, abs=5e-3)
    assert len(again.edges) == 0


def test_nodes_of_one_graph_are_explained_by_their_number():
    graph = nx.karate_club_graph()
    clubs = [graph.nodes[v]["club"] for v in graph]
    x = np.eye(len(graph), dtype=np.float32)
    edges = np.array(graph.edges).T
    data = lpgnn.from_arrays(edges, x=x, y=clubs)
    model = lpgnn.train(data, epochs=20, seed=0, progress=False)
    found = model.explain(data, 33, max_edges=20)
    assert found.graph == 0 and len(found.nodes) == 34 and len(found.edges) == 20
    assert found.output in set(clubs)


def test_states_that_have_not_converged_explain_nothing(trained):
    _, data, *_ = trained
    never = {"training.inference.tol": 1e-12, "training.inference.max-iter": 1}
    model = lpgnn.train(data, epochs=1, seed=0, progress=False, settings=never)
    with pytest.raises(lpgnn.Error, match="the states of graph 0 have not converged"):
        model.explain(data, 0)


def test_what_cannot_be_explained_is_said(trained):
    model, data, *_ = trained
    with pytest.raises(lpgnn.Error, match="graph 99 does not exist: there are 24 graphs"):
        model.explain(data, 99)
    with pytest.raises(lpgnn.Error, match="output is 'square', but one of"):
        model.explain(data, 0, output="square")
    with pytest.raises(lpgnn.Error, match="item is -1"):
        model.explain(data, -1)
