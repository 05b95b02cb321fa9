"""Reports and event files: what Python writes is what the program writes."""

import json
import re

import lpgnn
import pytest


@pytest.fixture(scope="module")
def clique():
    return lpgnn.read("clique")[:60].with_split({"train": range(30), "val": range(30, 45), "test": range(45, 60)})


def data_of(path):
    """The data in a page."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_a_model_has_a_report_with_and_without_its_data(clique, tmp_path):
    model = lpgnn.train(clique, epochs=6, eval_every=2)
    model.report(tmp_path / "model.html")
    (run,) = data_of(tmp_path / "model.html")["runs"]
    assert run["history"]["epoch"] == [1, 2, 3, 4, 5, 6] and run["items"] is None
    assert ["training.epochs", "6"] in run["settings"]
    model.report(tmp_path / "model.html", clique)
    (run,) = data_of(tmp_path / "model.html")["runs"]
    assert len(run["items"]["pca_x"]) == clique.num_nodes and run["drawings"]
    with pytest.raises(lpgnn.Error, match="trained on other data"):
        model.report(tmp_path / "other.html", clique[:20])
    assert not (tmp_path / "other.html").exists()


def test_a_run_has_a_report_and_is_compared_with_others(clique, tmp_path):
    for name in "ab":
        lpgnn.train(clique, epochs=2, out=tmp_path / name)
    run = lpgnn.Run(tmp_path / "a")
    run.report(tmp_path / "a.html", clique)
    assert data_of(tmp_path / "a.html")["runs"][0]["drawings"]
    run.report(tmp_path / "both.html", compare=[lpgnn.Run(tmp_path / "b")])
    assert [run["name"] for run in data_of(tmp_path / "both.html")["runs"]] == ["a", "b"]
    with pytest.raises(lpgnn.Error, match="is neither a run nor"):
        run.report(tmp_path / "none.html", compare=[tmp_path])


def test_tensorboard_reads_scalars_histograms_and_settings(clique, tmp_path):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="TensorBoard is not installed"
    )
    metadata = pytest.importorskip("tensorboard.plugins.hparams.metadata", reason="TensorBoard is not installed")
    events = tmp_path / "events"
    stop = lambda epoch: epoch["epoch"] < 7  # noqa: E731
    lpgnn.train(clique, epochs=10, eval_every=2, out=tmp_path / "run", tensorboard=events, on_epoch=stop)
    model = lpgnn.resume(tmp_path / "run", clique, tensorboard=events)
    assert len(list(events.iterdir())) == 2, "a run that is resumed adds a file"
    read = accumulator.EventAccumulator(str(events), size_guidance={"scalars": 0, "histograms": 0})
    read.Reload()

    loss = read.Scalars("objective/loss")
    assert [event.step for event in loss] == list(range(1, 11)), "every epoch once, also those behind the checkpoint"
    assert [event.value for event in loss] == pytest.approx([epoch["loss_sum"] for epoch in model.epoch_records], rel=1e-6)
    accuracy = {event.step: event.value for event in read.Scalars("accuracy/val")}
    assert accuracy == pytest.approx({e["epoch"]: e["val_accuracy"] for e in model.epoch_records if "val_accuracy" in e})
    assert {"residual/mean", "multipliers/largest", "gradient_norm/states", "lr", "seconds"} <= set(
        read.Tags()["scalars"]
    )

    nodes = sum(len(graph_nodes) for graph_nodes in clique_nodes(clique, range(30)))
    residuals = read.Histograms("residual/log10")
    assert [event.step for event in residuals] == [2, 4, 6, 8, 10]
    last = residuals[-1].histogram_value
    assert last.num == sum(last.bucket) == nodes
    assert last.bucket_limit[-1] == pytest.approx(last.max) and last.min < last.max < 0
    assert read.Histograms("multipliers")[-1].histogram_value.num % nodes == 0

    content = read.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    settings = metadata.parse_session_start_info_plugin_data(content).hparams
    assert settings["training.epochs"].number_value == 10
    assert settings["model.transition"].string_value == model.settings["model"]["transition"]
    content = read.SummaryMetadata("_hparams_/session_end_info").plugin_data.content
    assert metadata.parse_session_end_info_plugin_data(content).status == 1


def clique_nodes(data, graphs):
    return [range(data.ptr[graph], data.ptr[graph + 1]) for graph in graphs]


def test_training_in_memory_writes_events_too_and_says_where_it_cannot(clique, tmp_path):
    lpgnn.train(clique, epochs=2, tensorboard=tmp_path / "events")
    (file,) = (tmp_path / "events").iterdir()
    assert b"objective/loss" in file.read_bytes()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        lpgnn.train(clique, epochs=2, tensorboard=tmp_path / "file/events")
