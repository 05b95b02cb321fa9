"""Live graphs: changes, predictions with bounds, refusals."""

import multiprocessing
import os
import re

import numpy as np
import pandas
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


def test_names_are_those_of_the_data_whatever_their_type(trained):
    model, data = trained
    live = lpgnn.LiveGraph(model, data, tol=0.01)
    live.add_nodes([-1], features=[{"member": "33"}])
    live.add_edges([(-1, np.int64(2))])
    live.update_features([5], [{"member": "7"}])
    assert live.predict(-1).y == live.predict("-1").y
    live.changed()
    live.update_features([-1], [{"member": "1"}])
    live.remove_nodes([-1])
    assert -1 not in live.changed()


def test_booleans_are_the_categories_that_they_are_in_frames():
    nodes = pandas.DataFrame({"id": range(20), "flag": [True, False] * 10, "y": ["a", "b"] * 10})
    data = lpgnn.from_frames(pandas.DataFrame({"source": range(19), "target": range(1, 20)}), nodes)
    live = lpgnn.LiveGraph(lpgnn.train(data, epochs=5, seed=0), data, tol=0.01)
    live.update_features([3], [{"flag": True}])
    live.update_features([3], [{"flag": np.bool_(False)}])
    with pytest.raises(lpgnn.Error, match="none of the known values"):
        live.update_features([3], [{"flag": "maybe"}])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked there")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_can_go_on_with_a_live_graph(trained):
    model, data = trained
    live = lpgnn.LiveGraph(model, data, tol=0.01)
    live.remove_edges([(0, 1)])

    def change(queue):
        live.remove_edges([(0, 2), (0, 3)])
        queue.put(live.predict(0).outputs.tolist())

    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=change, args=(queue,))
    child.start()
    child.join(30)
    if child.is_alive():
        child.kill()
    assert child.exitcode == 0
    live.remove_edges([(0, 2), (0, 3)])
    assert queue.get() == live.predict(0).outputs.tolist()


def test_features_are_rows_of_any_kind_and_numbers_are_finite(trained):
    model, data = trained
    live = lpgnn.LiveGraph(model, data, tol=0.01)
    live.update_features([0, 1], features=pandas.DataFrame({"member": ["2", "1"]}))
    live.update_features([0, 1], features=[{"member": "1"}, {"member": "2"}])
    for change, message in [
        (lambda: live.add_edges([(0, 1, 2)]), "an edge is (0, 1, 2), but a pair"),
        (lambda: live.add_edges("ab"), "an edge is 'a', but a pair"),
        (lambda: live.remove_nodes("0"), "nodes is '0', but a list of nodes"),
        (lambda: live.update_features([0], features="1"), "features is '1', but a row per change"),
        (lambda: live.update_features([0], features=[{"member": None}]), "features has None, but a number"),
        (lambda: live.update_features([0], features=[{"member": float("nan")}]), "features have values that are not finite"),
        (lambda: lpgnn.LiveGraph(model, "karate"), "model and data are a Model and a str"),
    ]:
        with pytest.raises(lpgnn.Error, match=re.escape(message)):
            change()
    assert live.predict(0).y == lpgnn.LiveGraph(model, data, tol=0.01).predict(0).y
