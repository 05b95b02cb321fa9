"""Live graphs: changes, predictions with bounds, refusals."""

import numpy as np
import pytest

import lpgnn


@pytest.fixture(scope="module")
def trained():
    data = lpgnn.read("karate")
    return lpgnn.train(data, epochs=20, seed=0), data


def test_a_live_graph_predicts_what_the_model_predicts(trained):
    model, data = trained
    live = lpgnn.LiveGraph(model, data, tol=0.01)
    found = model.predict(data)
    for node in range(34):
        prediction = live.predict(node)
        assert np.linalg.norm(prediction.outputs - found.outputs[node]) <= prediction.bound + 0.01
        assert not prediction.final or prediction.y == found.y[node]
    assert live.changed() == {}


def test_edges_that_go_and_come_back_leave_predictions_within_their_bounds(trained):
    model, data = trained
    live = lpgnn.LiveGraph(model, data, tol=0.01)
    before = [live.predict(node) for node in range(34)]
    edges = live.stats().edges
    live.remove_edges([(0, 1), (0, 2)])
    assert live.stats().edges == edges - 4
    assert live.touched > 0
    live.add_edges([(0, 2), (0, 1)])
    assert live.stats().edges == edges
    for node, was in enumerate(before):
        now = live.predict(node)
        assert np.linalg.norm(now.outputs - was.outputs) <= now.bound + was.bound


def test_changes_that_cannot_be_are_named_and_the_others_are_made(trained):
    model, data = trained
    live = lpgnn.LiveGraph(model, data, tol=0.01)
    with pytest.raises(lpgnn.Error, match="change 1: there is no node 99"):
        live.remove_edges([(0, 1), (0, 99)])
    with pytest.raises(lpgnn.Error, match="there is no edge from node 0 to node 1"):
        live.remove_edges([(0, 1)])
    with pytest.raises(lpgnn.Error, match="none of the known values"):
        live.update_features([3], [{"member": "nobody"}])
    with pytest.raises(lpgnn.Error, match="1 rows of features where 2"):
        live.update_features([3, 4], [{"member": "5"}])


def test_a_node_that_is_removed_is_gone(trained):
    model, data = trained
    live = lpgnn.LiveGraph(model, data, tol=0.01)
    live.remove_nodes([33])
    with pytest.raises(lpgnn.Error, match="there is no node 33"):
        live.predict(33)
    live.add_nodes([33], features=[{"member": "33"}])
    assert 33 in live.changed()
    assert live.stats().nodes == 34


def test_a_smaller_tolerance_makes_more_classes_final(trained):
    model, data = trained
    coarse = lpgnn.LiveGraph(model, data, tol=0.5)
    refined = lpgnn.LiveGraph(model, data, tol=0.5, final_tol=1e-3)
    final = [sum(live.predict(node).final for node in range(34)) for live in (coarse, refined)]
    assert final[0] < final[1], final
    with pytest.raises(lpgnn.Error, match="final-tol is 1"):
        lpgnn.LiveGraph(model, data, tol=0.5, final_tol=1.0)
