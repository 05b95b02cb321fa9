"""Models are trained, used, saved and loaded."""

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import lpgnn
import networkx
import numpy as np
import pytest


@pytest.fixture(scope="module")
def clique():
    return lpgnn.read("clique")


@pytest.fixture(scope="module")
def model(clique):
    return lpgnn.train(clique, epochs=60, seed=1)


def test_a_model_learns_and_says_how_well(model, clique):
    assert model.stop_reason == {"reason": "epochs"}
    assert len(model.history) == 60
    assert model.epoch_records[-1]["loss_sum"] < model.epoch_records[0]["loss_sum"]
    assert model.evaluation["test"]["accuracy"] > 0.8
    assert abs(model.evaluation["cheating_gap"]) < 0.1
    split = clique.split
    nodes = np.concatenate([np.arange(*clique.ptr[graph : graph + 2]) for graph in split["test"]])
    metrics = model.evaluate(clique, nodes)
    assert metrics == model.evaluate(clique, split) == model.evaluate(clique, np.isin(np.arange(2100), nodes))
    assert metrics["accuracy"] == pytest.approx(model.evaluation["test"]["accuracy"])
    assert sum(map(sum, metrics["confusion"])) == len(nodes) == metrics["count"]
    assert model.evaluate(clique, split, split="train")["count"] == 700
    for rows, message in (([True] * 3, "one entry per node"), ([-1], "from 0"), ([2100], "below 2100"), (3, "subset")):
        with pytest.raises(lpgnn.Error, match=message):
            model.evaluate(clique, rows)
    with pytest.raises(lpgnn.Error, match="no targets"):
        model.evaluate(lpgnn.from_arrays([[0], [1]], x={"attribute 0": [1.0, 2.0]}))


def test_systems_that_lpgnn_is_compared_with_are_known_by_name(clique, tmp_path):
    model = lpgnn.train(clique, transition="chebyshev", epochs=20, out=tmp_path / "run")
    model.save(tmp_path / "model.safetensors")
    expected = model.predict(clique).outputs
    for again in (lpgnn.load(tmp_path / "run"), lpgnn.load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(model))):
        assert again.settings["model"]["transition"] == "chebyshev"
        assert (again.predict(clique).outputs == expected).all()
    with pytest.raises(lpgnn.Error, match="chebyshev"):
        lpgnn.train(clique, transition="magic")


def test_an_ensemble_predicts_the_mean_of_its_members(clique, tmp_path):
    members = [lpgnn.train(clique, epochs=10, seed=seed) for seed in range(3)]
    ensemble = lpgnn.ensemble(iter(members))
    assert (ensemble.members, members[0].members) == (3, 1)
    mean = np.mean([member.predict(clique).probabilities for member in members], axis=0)
    assert ensemble.predict(clique).probabilities == pytest.approx(mean, abs=1e-6)
    ensemble.save(tmp_path / "ensemble.safetensors")
    for again in (lpgnn.load(tmp_path / "ensemble.safetensors"), pickle.loads(pickle.dumps(ensemble))):
        assert again.members == 3
        assert (again.predict(clique).outputs == ensemble.predict(clique).outputs).all()
    assert 0.5 < ensemble.evaluate(clique, clique.split, split="test")["accuracy"] <= 1
    for wrong, message in (
        (members[:1], "at least two members, but there is 1"),
        ([], "there is none"),
        ([members[0], members[0]], "members 1 and 2 of the ensemble have the same seed, 0"),
        ([members[0], "model"], "made of models, but there is a str"),
        ([members[0], lpgnn.train(clique, epochs=10, state_dim=3)], "model.state-dim is 3, that of the first 10"),
    ):
        with pytest.raises(lpgnn.Error, match=message):
            lpgnn.ensemble(wrong)
    with pytest.raises(lpgnn.Error, match="an explanation needs a single model"):
        ensemble.explain(clique, 0)


def test_a_cross_validation_tells_what_an_ensemble_is_worth(clique, tmp_path):
    small = clique[:30]
    report = lpgnn.crossval(small, folds=2, epochs=6, ensemble=2, protocol="nested", out=tmp_path)
    assert 0 < report.test.mean < 1 and len(report.values) == 2
    assert (report.ensemble, report.records[0].trial.ensemble) == (2, 2)
    with pytest.raises(lpgnn.Error, match="ensemble is 0"):
        lpgnn.crossval(small, folds=2, epochs=6, ensemble=0)


def test_predictions_are_rows_of_arrays(model, clique):
    found = model.predict(clique)
    assert found.y.shape == (clique.num_nodes,) and set(found.y) <= {0, 1}
    assert found.probabilities.shape == (clique.num_nodes, 2)
    assert np.allclose(found.probabilities.sum(axis=1), 1)
    assert (found.probabilities.argmax(axis=1) == found.y).all()
    assert found.converged.shape == found.residuals.shape == (len(clique),)
    assert found.converged.all() and found.residuals.max() < 1e-3
    assert found.states[0].shape == (clique.num_nodes, model.settings["model"]["state-dim"])


def test_the_same_seed_gives_the_same_bits_at_any_number_of_threads(clique):
    weights = [lpgnn.train(clique, epochs=10, seed=7, threads=threads).weights for threads in (1, 2, 3)]
    assert (weights[0] == weights[1]).all() and (weights[0] == weights[2]).all()
    assert (weights[0] != lpgnn.train(clique, epochs=10, seed=8).weights).any()


def test_a_model_survives_a_file_and_a_pickle(model, clique, tmp_path):
    model.save(tmp_path / "model.safetensors")
    said = model.predict(clique).outputs
    for other in (lpgnn.load(tmp_path / "model.safetensors"), lpgnn.load(tmp_path), pickle.loads(pickle.dumps(model))):
        assert (other.predict(clique).outputs == said).all()
        assert repr(other) == repr(model)
        assert other.epoch_records == model.epoch_records and len(other.history) == 60
        assert other.evaluation == model.evaluation and other.stop_reason == model.stop_reason
        assert (other.split["test"] == model.split["test"]).all()
    (tmp_path / "broken").write_bytes(b"no model")
    with pytest.raises(lpgnn.Error, match="broken"):
        lpgnn.load(tmp_path / "broken")


def test_values_of_graphs_are_predicted_as_values():
    sizes = np.arange(3, 23)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ring = [[start + k, start + (k + 1) % size] for start, size in zip(starts, sizes) for k in range(size)]
    edges = np.array(ring).T
    data = lpgnn.from_arrays(
        np.concatenate([edges, edges[::-1]], axis=1),
        batch=np.repeat(np.arange(20), sizes),
        graph_y=sizes / 10.0,
    )
    model = lpgnn.train(data, epochs=40, split={"train": sizes % 2 == 0, "test": sizes % 2 == 1})
    assert model.classes is None and model.task == "graph"
    found = model.predict(data)
    assert found.y.shape == (20,) and found.probabilities is None
    assert "mean_squared_error" in model.evaluate(data, sizes % 2 == 1)
    # All nodes are alike, and yet nothing is divided by how little they differ.
    assert model.stop_reason == {"reason": "epochs"} and model.epoch_records[0]["residual_mean"] < 1


@pytest.mark.parametrize("solver", ["one-shot", "bdmm", "implicit", "unrolled", "sse", "augmented-lagrangian"])
@pytest.mark.parametrize("transition", ["gnn-sum", "gin", "sage-max"])
def test_every_solver_and_transition_can_be_asked_for(clique, solver, transition):
    model = lpgnn.train(clique, epochs=2, solver=solver, transition=transition, state_dim=4, hidden_dims=[5], layers=2)
    assert model.settings["training"]["solver"]["kind"] == solver
    assert model.settings["model"]["transition"] == transition
    assert [states.shape[1] for states in model.predict(clique).states] == [4, 4]


def test_settings_go_by_name_and_by_file(clique, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[model]\nstate-dim = 3\nhidden-dims = [4]\n")
    settings = {"training": {"lipschitz": None}, "model.state-dim": np.int64(6)}
    model = lpgnn.train(clique, epochs=1, config=file, settings=settings)
    assert model.settings["model"]["state-dim"] == 6
    assert model.settings["model"]["hidden-dims"] == [4]
    assert model.settings["training"]["lipschitz"] is None
    assert "state-dim = 3" in lpgnn.settings(clique, config=file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"modl.state-dim": 3}}, "did you mean model.state-dim"),
        ({"settings": {"model.state-dim": "many"}}, "model.state-dim"),
        ({"solver": "newton"}, "newton"),
        ({"lr": -1.0}, "lr"),
        ({"split": {"train": [300]}}, "below 300"),
        ({"threads": -1}, "threads is -1"),
        ({"threads": 10**5}, "threads is 100000"),
        ({"lr": float("nan")}, "lr is nan"),
        ({"settings": [1]}, "a dictionary of settings"),
        ({"state_dim": 0}, "state"),
    ],
)
def test_what_cannot_be_trained_is_said_in_a_sentence(clique, arguments, message):
    with pytest.raises(lpgnn.Error, match=message) as raised:
        lpgnn.train(clique, epochs=1, **arguments)
    assert "\n" not in str(raised.value)


def test_new_graphs_have_to_fit_the_model(model):
    with pytest.raises(lpgnn.Error):
        model.predict(lpgnn.from_arrays([[0], [1]], x=[["red"], ["blue"]]))


def test_a_constant_feature_is_no_obstacle():
    graphs = [networkx.gnp_random_graph(12, 0.1 + 0.3 * (number % 2), seed=number) for number in range(60)]
    for graph in graphs:
        networkx.set_node_attributes(graph, 1.0, "one")
    data = lpgnn.from_networkx(graphs, x="one", graph_y=[number % 2 for number in range(60)])
    assert lpgnn.train(data, epochs=40).evaluate(data)["accuracy"] > 0.9


def test_only_data_sets_are_trained_on():
    with pytest.raises(TypeError, match="data is a str, but a Dataset"):
        lpgnn.train("clique")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked there")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_can_predict(model, clique):
    said = model.predict(clique).outputs
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put((model.predict(clique).outputs == said).all()))
    child.start()
    child.join(30)
    if child.is_alive():
        child.kill()
    assert child.exitcode == 0 and queue.get()


def test_a_spawned_process_trains_and_predicts_the_same(model, clique):
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        predicted = pool.submit(model.predict, clique)
        trained = pool.submit(lpgnn.train, clique, epochs=60, seed=1)
        assert (predicted.result(120).outputs == model.predict(clique).outputs).all()
        assert (trained.result(120).weights == model.weights).all()


def test_several_threads_can_train_at_once(clique):
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        weights = list(threads.map(lambda _: lpgnn.train(clique, epochs=5, seed=2).weights, range(6)))
    assert all((each == weights[0]).all() for each in weights)


def test_somebody_may_watch_and_end_it(clique):
    seen = []
    model = lpgnn.train(clique, epochs=50, on_epoch=lambda report: seen.append(report["epoch"]) or seen[-1] < 7)
    assert seen == list(range(1, 8))
    assert model.stop_reason == {"reason": "stopped"}
    assert len(lpgnn.train(clique, epochs=9, on_epoch=lambda report: np.False_).history) == 1
    with pytest.raises(ZeroDivisionError):
        lpgnn.train(clique, epochs=50, on_epoch=lambda report: 1 / 0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_ends_a_training():
    code = "import lpgnn; print('begun', flush=True); lpgnn.train(lpgnn.read('clique'), epochs=10**7, settings={'training.patience': None})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as training:
        training.stdout.readline()
        time.sleep(1)
        training.send_signal(signal.SIGINT)
        _, said = training.communicate(timeout=30)
    assert "lpgnn.Interrupted: training was interrupted; the best model so far" in said.decode()
    assert training.returncode != 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_keeps_the_best_model_so_far(clique, tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for out in (None, tmp_path / "run"):
            timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with pytest.raises(lpgnn.Interrupted, match="the best model so far") as stopped:
                lpgnn.train(clique, epochs=10**6, eval_every=1, out=out, settings={"training.patience": None})
            assert isinstance(stopped.value, KeyboardInterrupt)
            model = stopped.value.model
            assert model.stop_reason == {"reason": "stopped"} and len(model.history) >= model.epoch > 0
            best = max(epoch["val_accuracy"] for epoch in model.epoch_records)
            assert model.evaluate(clique, split="val")["accuracy"] == pytest.approx(best)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not lpgnn.Run(tmp_path / "run").finished and stopped.value.out == str(tmp_path / "run")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_ends_a_prediction():
    code = """
import os, signal, threading, time
import lpgnn, numpy as np
data = lpgnn.read('clique')
model = lpgnn.train(data, epochs=1)
edges = np.random.default_rng(0).integers(0, 200_000, (2, 800_000))
many = lpgnn.from_arrays(edges, x={'node attribute': np.ones(200_000)})
threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
model.predict(many)
time.sleep(30)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip().endswith("KeyboardInterrupt") and "panicked" not in done.stderr
    assert done.returncode != 0


def test_neither_the_unit_of_a_target_nor_its_zero_matters():
    rng = np.random.default_rng(3)
    edges, batch, sizes = [], [], []
    for number in range(60):
        nodes = int(rng.integers(4, 12))
        start = len(batch)
        batch += [number] * nodes
        pairs = rng.integers(start, start + nodes, (2 * nodes, 2)).tolist()
        own = {tuple(sorted(pair)) for pair in pairs if len(set(pair)) > 1}
        edges += [edge for u, v in own for edge in ((u, v), (v, u))]
        sizes.append(float(len(own)))
    sizes = np.array(sizes)
    for unit, zero in ((1.0, 0.0), (1.0, 1000.0), (0.001, 0.0)):
        data = lpgnn.from_arrays(np.array(edges).T, batch=batch, graph_y=zero + unit * sizes)
        model = lpgnn.train(data, epochs=100)
        assert model.evaluate(data)["r_squared"] > 0.9
        assert np.abs(model.predict(data).y.ravel() - (zero + unit * sizes)).mean() < 3 * unit


def test_features_are_read_dense_or_sparse_whatever_they_were_at_training():
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 40, (2, 160))
    few, many = ((rng.random((40, 300)) < share).astype(float) for share in (0.02, 0.3))
    y = rng.integers(0, 2, 40)
    for trained, new in ((few, many), (many, few), (many, np.zeros((40, 300)))):
        model = lpgnn.train(lpgnn.from_arrays(edges, x=trained, y=y), epochs=2)
        assert model.predict(lpgnn.from_arrays(edges, x=new)).y.shape == (40,)
        with pytest.raises(lpgnn.Error, match="300"):
            model.predict(lpgnn.from_arrays(edges, x=new[:, :299]))


def test_graphs_without_edges_fit_a_model_that_reads_their_features():
    def molecule(*bonds):
        graph = networkx.Graph()
        graph.add_node(0, element="C", charge=0.5)
        for number, bond in enumerate(bonds, 1):
            graph.add_node(number, element="O", charge=-0.5)
            graph.add_edge(0, number, bond=bond)
        return graph

    read = {"x": ["element", "charge"], "edge_attr": ["bond"]}
    known = [molecule("single"), molecule("double", "single"), molecule("single", "single"), molecule("double")]
    model = lpgnn.train(lpgnn.from_networkx(known, graph_y=[0, 1, 0, 1], **read), epochs=2, hidden_dims=7)
    assert model.settings["model"]["hidden-dims"] == [7]
    alone = model.predict(lpgnn.from_networkx([molecule()], **read))
    together = model.predict(lpgnn.from_networkx([molecule(), molecule("single")], **read))
    assert alone.y.shape == (1,) and alone.outputs[0] == pytest.approx(together.outputs[0], abs=1e-5)
    # Whole numbers are numbers to a model that reads the column as such.
    whole = molecule("single")
    networkx.set_node_attributes(whole, 1, "charge")
    assert model.predict(lpgnn.from_networkx([whole], **read)).y.shape == (1,)


def test_what_is_named_is_read_beside_a_file_of_settings_too(tmp_path):
    graph = networkx.path_graph(6)
    networkx.set_node_attributes(graph, {v: {"kind": "ab"[v % 2], "size": v / 2, "y": v % 2} for v in graph})
    data = lpgnn.from_networkx(graph, x=["kind", "size"], y="y")
    (tmp_path / "epochs.toml").write_text("[training]\nepochs = 1\n")
    plain = lpgnn.train(data, epochs=1)
    assert lpgnn.train(data, config=tmp_path / "epochs.toml").weights.size == plain.weights.size
    (tmp_path / "words.toml").write_text("[training]\nepochs = 1\n[features]\nsource = 'categories'\n")
    assert lpgnn.train(data, config=tmp_path / "words.toml").weights.size < plain.weights.size


def test_a_training_that_diverges_warns(clique):
    with pytest.warns(RuntimeWarning, match="diverged in epoch"):
        lpgnn.train(clique, epochs=5, lr=1e30)
