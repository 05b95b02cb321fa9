"""What the program can, Python can: run folders, resuming, cross-validation and search."""

import dataclasses
import functools
import json
import os
import signal
import sys
import threading

import lpgnn
import numpy as np
import pytest


@pytest.fixture(scope="module")
def clique():
    return lpgnn.read("clique")[:60].with_split({"train": range(30), "val": range(30, 45), "test": range(45, 60)})


def test_a_run_folder_has_what_training_in_memory_has(clique, tmp_path):
    model = lpgnn.train(clique, epochs=12, seed=3)
    kept = lpgnn.train(clique, epochs=12, seed=3, out=tmp_path / "run")
    run = lpgnn.Run(tmp_path / "run")
    for other in (kept, run.model, lpgnn.load(tmp_path / "run")):
        assert (other.weights == model.weights).all()
        assert other.evaluation == model.evaluation and other.stop_reason == model.stop_reason

        def timeless(history):
            return [{key: value for key, value in epoch.items() if key != "seconds"} for epoch in history]

        assert timeless(other.epoch_records) == timeless(model.epoch_records)
        assert (other.split["train"] == model.split["train"]).all()
    assert run.finished and run.settings["training"]["seed"] == 3
    assert run.record.epochs == 12 and run.record.metrics["test"] == model.evaluation["test"]
    assert "finished" in repr(run)
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.record.epochs = 13
    with pytest.raises(lpgnn.Error, match="already a run"):
        lpgnn.train(clique, epochs=1, out=tmp_path / "run")
    assert len(lpgnn.train(clique, epochs=1, out=tmp_path / "run", force=True).history) == 1
    with pytest.raises(lpgnn.Error, match="is not a run"):
        lpgnn.Run(tmp_path)


def test_the_fields_of_records_are_those_of_the_files(clique, tmp_path):
    lpgnn.train(clique, epochs=2, out=tmp_path / "run")
    written = json.loads((tmp_path / "run/record.json").read_text())
    # It has changes only if there are any.
    assert set(written) | {"changes"} == {field.name for field in dataclasses.fields(lpgnn.RunRecord)}
    lpgnn.crossval(clique, folds=2, epochs=2, out=tmp_path / "cv")
    report = json.loads((tmp_path / "cv/result.json").read_text())
    assert set(report) | {"records"} == {field.name for field in dataclasses.fields(lpgnn.CrossvalReport)}
    fold = json.loads((tmp_path / "cv/fold-01.json").read_text())
    assert set(fold) == {field.name for field in dataclasses.fields(lpgnn.FoldRecord)}
    assert set(fold["trial"]) <= {field.name for field in dataclasses.fields(lpgnn.TrialRecord)}


def test_a_stopped_run_is_resumed_with_the_same_bits(clique, tmp_path):
    split = {"train": range(0, 60, 2), "val": range(1, 60, 4), "test": range(3, 60, 4)}
    whole = lpgnn.train(clique, epochs=20, split=split)
    stopped = lpgnn.train(clique, epochs=20, split=split, out=tmp_path / "run", on_epoch=lambda epoch: epoch["epoch"] < 7)
    assert stopped.stop_reason == {"reason": "stopped"} and not lpgnn.Run(tmp_path / "run").finished
    # The split is that of the run, whatever the data have.
    model = lpgnn.resume(tmp_path / "run", clique)
    assert (model.weights == whole.weights).all() and len(model.history) == 20
    assert model.split["train"].tolist() == list(range(0, 60, 2))
    assert (lpgnn.resume(tmp_path / "run", clique).weights == model.weights).all()
    longer = lpgnn.resume(tmp_path / "run", clique, epochs=25)
    assert len(longer.history) == 25 and lpgnn.Run(tmp_path / "run").finished
    with pytest.raises(lpgnn.Error, match="other data"):
        lpgnn.resume(tmp_path / "run", lpgnn.read("clique")[60:120], epochs=30)
    with pytest.raises(lpgnn.Error, match="data is missing"):
        lpgnn.train(lpgnn.from_arrays([[0, 1, 2], [1, 2, 3]], y=[0, 1, 0, 1]), epochs=1, out=tmp_path / "own")
        lpgnn.resume(tmp_path / "own")
    lpgnn.train(lpgnn.read("karate"), epochs=2, out=tmp_path / "named")
    assert len(lpgnn.resume(tmp_path / "named", epochs=4).history) == 4


def test_cross_validation_follows_its_protocol_and_continues(clique, tmp_path):
    done = []
    arguments = {"folds": 3, "epochs": 6, "eval_every": 2, "out": tmp_path / "cv"}
    report = lpgnn.crossval(clique, **arguments, on_fold=done.append)
    assert sorted(fold.number for fold in done) == [1, 2, 3] == [fold.number for fold in report.records]
    assert report.protocol == "best-mean-epoch" and report.epoch in (2, 4, 6)
    assert report.test.mean == pytest.approx(np.mean(report.values)) and "±" in str(report.test)
    place = report.records[0].trial.epochs.index(report.epoch)
    assert report.values == [fold.trial.test[place] for fold in report.records]
    # What is complete is not repeated; other settings are other results.
    assert lpgnn.crossval(clique, **arguments, on_fold=lambda fold: pytest.fail("again")) == report
    with pytest.raises(lpgnn.Error, match="other settings"):
        lpgnn.crossval(clique, **{**arguments, "epochs": 7})
    # The same folds, made by hand, give the same values; nothing remains without a folder.
    assert lpgnn.crossval(clique, **{**arguments, "folds": clique.folds(3), "out": None}).values == report.values
    nested = lpgnn.crossval(clique, protocol="nested", folds=2, epochs=4, space={"state_dim": [3, 5]})
    assert nested.epoch is None and {fold.candidate for fold in nested.records} <= {0, 1}
    seeds = lpgnn.crossval(clique, protocol="split", seeds=[1, 2], epochs=4)
    assert [(fold.kind, fold.number) for fold in seeds.records] == [("seed", 1), ("seed", 2)]
    one = lpgnn.train(clique, epochs=4, seed=2)
    assert seeds.values[1] == pytest.approx(one.evaluation["test"]["accuracy"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"protocol": "best"}, "best"),
        ({"folds": 1}, "folds is 1"),
        ({"folds": "ten"}, "folds is 'ten', but an integer, or a list of splits"),
        ({"folds": [([0, 1], [2])]}, "folds of scikit-learn are"),
        ({"protocol": "split", "seeds": "0"}, "seeds is '0', but a list of integers"),
        ({"protocol": "split", "seeds": [0.5]}, "seeds is 0.5"),
        ({"seeds": [1]}, "protocol"),
        ({"space": {"lr": [0.1]}}, "nested"),
        ({"protocol": "nested", "space": {"lr": 0.1}}, "space: lr is 0.1, but a list"),
        ({"protocol": "nested", "space": {"learning_rate": [0.1]}}, "learning_rate"),
    ],
)
def test_what_cannot_be_cross_validated_is_said_in_a_sentence(clique, arguments, message):
    with pytest.raises(lpgnn.Error, match=message):
        lpgnn.crossval(clique, epochs=2, **arguments)


def test_a_search_ranks_by_validation_and_leaves_its_model(clique, tmp_path):
    space = {"lr": [0.0001, 0.01], "state_dim": [4], "training.lipschitz": [None, 0.9]}
    seen = []
    found = lpgnn.search(clique, space, epochs=9, min_epochs=3, out=tmp_path / "search", on_trial=seen.append)
    assert found.complete and len(found.ranked) == 4 and len(seen) > 4
    assert found.val == found.ranked[0].value and found.ranked[0].trial == found.trial
    assert found.ranked[0].value >= found.ranked[1].value
    assert {trial.settings["training.solver.weights.lr"] for trial in found.ranked} == {"0.0001", "0.01"}
    assert "state-dim = 4" in found.best_settings
    test = found.model.evaluate(clique, split="test")
    assert test["accuracy"] == pytest.approx(found.test_of_the_winner) == found.model.evaluation["test"]["accuracy"]
    again = lpgnn.search(clique, space, epochs=9, min_epochs=3, out=tmp_path / "search")
    assert again.ranked == found.ranked
    drawn = lpgnn.search(clique, {"lr": {"low": 1e-4, "high": 0.1, "log": True}}, budget=3, epochs=4, min_epochs=4)
    assert len(drawn.ranked) == 3
    for space, message in (({}, "space is"), ("no-such-space", "built-in spaces"), ({"lr": {"lo": 1}}, "space")):
        with pytest.raises(lpgnn.Error, match=message):
            lpgnn.search(clique, space)


def test_experiments_are_watched_stopped_and_continued(clique, tmp_path):
    seen = []

    def some(epoch):
        seen.append((epoch["kind"], epoch["number"], epoch["epoch"]))
        return len(seen) < 5

    arguments = {"folds": 2, "epochs": 8, "out": tmp_path / "cv", "threads": 1}
    assert lpgnn.crossval(clique, **arguments, on_epoch=some) is None
    assert seen == [("fold", 1, epoch) for epoch in range(1, 6)]
    continued = lpgnn.crossval(clique, **arguments)
    assert continued.values == lpgnn.crossval(clique, folds=2, epochs=8).values
    with pytest.raises(ZeroDivisionError):
        lpgnn.crossval(clique, folds=2, epochs=8, on_fold=lambda fold: 1 / 0)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="signals are sent otherwise there")
def test_ctrl_c_ends_a_cross_validation_that_can_be_continued(clique, tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(lpgnn.Interrupted, match="the same call continues"):
            lpgnn.crossval(clique, folds=2, epochs=10**6, out=tmp_path / "cv")
    finally:
        signal.signal(signal.SIGINT, before)
    assert list((tmp_path / "cv").glob("*.checkpoint.safetensors"))


def test_a_split_counts_the_same_wherever_it_is_passed():
    draw = np.random.default_rng(0)
    words = (draw.random((300, 400)) < 0.02).astype(np.float32)
    split = {"train": range(20), "val": range(20, 60), "test": range(60, 300)}
    arrays = {"x": words, "y": draw.integers(0, 3, 300)}
    edges = draw.integers(0, 300, (2, 900))
    own, passed = lpgnn.from_arrays(edges, **arrays, split=split), lpgnn.from_arrays(edges, **arrays)
    first = lpgnn.train(own, epochs=3)
    assert first.settings["model"]["transition"] == "gcn"
    for model in (lpgnn.train(passed, epochs=3, split=split), lpgnn.train(passed.with_split(split), epochs=3)):
        assert model.settings["model"] == first.settings["model"] and (model.weights == first.weights).all()
    assert 'transition = "gcn"' in lpgnn.settings(passed, split=split)
    assert 'transition = "gcn"' not in lpgnn.settings(passed)
    # The drawn split is there, and what is called test was not trained on.
    drawn = lpgnn.train(passed, epochs=3)
    assert not set(drawn.split["train"]) & set(drawn.split["test"]) and len(drawn.split["test"]) == 30


def test_what_was_trained_on_is_never_called_test(clique, tmp_path):
    split = {"train": range(0, 40), "val": range(40, 50), "test": range(50, 60)}
    model = lpgnn.train(clique, epochs=4, split=split)
    assert model.split["test"].tolist() == list(range(50, 60))
    nodes = int(clique.ptr[60] - clique.ptr[50])
    assert model.evaluate(clique, split="test")["count"] == nodes
    assert model.evaluate(clique, split="test") == model.evaluation["test"]
    assert model.evaluate(clique)["count"] == clique.num_nodes
    model.save(tmp_path / "model.safetensors")
    assert lpgnn.load(tmp_path / "model.safetensors").evaluate(clique, split="test")["count"] == nodes
    with pytest.raises(lpgnn.Error, match="other data"):
        model.evaluate(lpgnn.read("clique"), split="test")
    with pytest.raises(lpgnn.Error, match="both given"):
        model.evaluate(clique, [0], split="test")
    with pytest.raises(lpgnn.Error, match="'val', but that part is empty"):
        lpgnn.train(clique, epochs=1, split={"train": range(60)}).evaluate(clique, split="val")


def test_history_is_a_table(clique):
    seen = []
    model = lpgnn.train(clique, epochs=10, eval_every=5, on_epoch=seen.append)
    table = model.history
    assert len(table) == 10 and seen == model.epoch_records
    assert not any(isinstance(value, (dict, list)) for epoch in model.epoch_records for value in epoch.values())
    assert table["val_accuracy"].notna().tolist() == [False] * 4 + [True] + [False] * 4 + [True]
    assert {"loss_sum", "train_loss", "residual_mean", "gradient_norm_weights", "seconds"} <= set(table.columns)


def test_progress_is_one_line(clique, capsys, monkeypatch):
    auto = pytest.importorskip("tqdm.auto")
    # By itself tqdm draws ten times per second, which is less often than a small training ends.
    monkeypatch.setattr(auto, "tqdm", functools.partial(auto.tqdm, mininterval=0))
    lpgnn.train(clique, epochs=40, progress=True)
    said = capsys.readouterr().err
    assert "/40" in said and "loss" in said and "\n" not in said.strip()
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    lpgnn.train(clique, epochs=3, progress=True)
    said = capsys.readouterr().err
    assert "epoch 3 of 3" in said and "loss" in said and "\n" not in said
    lpgnn.train(clique, epochs=3)
    assert capsys.readouterr().err == ""


def test_numbers_that_are_not_finite_are_numbers():
    from lpgnn._history import flat, numbers

    report = {"epoch": 1, "loss": "Infinity", "gradient_norms": ["NaN", 0.0, 1.0], "trained_accuracy": None}
    record = flat(report | {"evaluation": None, "constraints": {"nodes_within": 3, "graphs_within": 1}})
    assert record["loss_sum"] == float("inf") and np.isnan(record["gradient_norm_weights"])
    assert record["nodes_within"] == 3 and "lr" not in record
    assert numbers({"values": ["-Infinity", 2.0]}) == {"values": [-float("inf"), 2.0]}
