"""The notebooks of the gallery run from top to bottom."""

import os
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_six_of_them_and_none_keeps_its_output():
    assert len(NOTEBOOKS) == 6
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            assert not cell.get("outputs"), f"{path.name}: clear all outputs"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    before = sum(os.times()[2:4])
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    # Of the processor, as the machine may be busy; Windows does not tell that of children.
    spent = sum(os.times()[2:4]) - before
    assert 0 < spent < 90 or os.name == "nt", f"a notebook of the gallery takes seconds, but this one {spent:.0f}"
    assert any(cell.get("outputs") for cell in notebook.cells)


def test_progress_in_a_notebook_warns_of_nothing(tmp_path):
    cell = nbformat.v4.new_code_cell("import lpgnn\nlpgnn.train(lpgnn.read('clique'), epochs=2, seed=0)")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    written = "".join(output.text for output in notebook.cells[0].outputs if output.output_type == "stream")
    assert "epoch" in written and "Warning" not in written, written
