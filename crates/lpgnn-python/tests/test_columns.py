"""How columns and targets are read: by one rule, which is told."""

import datetime
import logging
import warnings

import lpgnn
import networkx
import numpy as np
import pandas
import polars
import pyarrow
import pytest
import scipy.sparse

EDGES = [[0, 1, 2], [1, 2, 3]]


def understood(**arguments):
    """The kind of every column, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lpgnn.DataWarning)
        return understood_with_warnings(**arguments)


def understood_with_warnings(**arguments):
    lines = lpgnn.from_arrays(arguments.pop("edges", EDGES), **arguments)._native.columns()
    return {name: text.split(",")[0].split(":")[0] for _, name, text in lines}


MIXED = {
    "charge": [0.5, -1.0, 2.0, 0.0],
    "element": ["C", "H", "C", "O"],
    "number": [6, 1, 6, 8],
    "aromatic": [True, False, True, True],
}
KINDS = {"charge": "number", "element": "category", "number": "category", "aromatic": "category"}


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame, pyarrow.table, dict])
def test_a_column_is_read_by_its_own_dtype_whatever_is_beside_it(frame):
    assert understood(x=frame(MIXED)) == KINDS
    for name, kind in KINDS.items():
        assert understood(x=frame({name: MIXED[name]})) == {name: kind}


def test_the_dtypes_of_frames_say_what_columns_are():
    words = pandas.DataFrame({"a": pandas.Categorical([1.5, 2.5, 1.5, 2.5]), "b": pandas.array([1, 2, 1, 2], "Int64")})
    words["c"] = pandas.array([0.5, 1, 2, 3], "Float64")
    words["d"] = pandas.array(["x", "y", "x", "y"], "string")
    words["e"] = pandas.array([True, False, True, True], "boolean")
    assert understood(x=words) == {"a": "category", "b": "category", "c": "number", "d": "category", "e": "category"}
    words = polars.DataFrame(
        {"a": ["p", "q", "p", "q"], "b": [1, 2, 1, 2]}, schema={"a": polars.Categorical, "b": polars.UInt8}
    )
    assert understood(x=words) == {"a": "category", "b": "category"}
    # A missing value does not turn classes into numbers.
    for y in (polars.Series("y", [1, None, 0, 1]), pyarrow.chunked_array([[1, None, 0, 1]]), pandas.array([1, None, 0, 1], "Int64")):
        assert lpgnn.from_arrays(EDGES, y=y).node_classes.tolist() == [0, 1]
    y = pandas.Series([pandas.NA, "b", "a", None], dtype=object)
    assert lpgnn.from_arrays(EDGES, y=y).node_classes.tolist() == ["a", "b"]


def test_integers_of_many_values_are_numbers_and_that_is_told():
    edges = [list(range(29)), list(range(1, 30))]
    many, few = np.arange(30), np.arange(30) % 20
    with pytest.warns(lpgnn.DataWarning, match="x: column many has 30 distinct integers, read as numbers"):
        data = lpgnn.from_arrays(edges, x={"many": many, "few": few})
    assert "guessed" in repr(data) and "20 values" in repr(data)
    counts = np.random.default_rng(0).integers(0, 3, (30, 300)) * (np.random.default_rng(1).random((30, 300)) < 0.02)
    with pytest.warns(lpgnn.DataWarning, match="x has 300 integer columns, read as numbers"):
        sparse = lpgnn.from_arrays(edges, x=counts.astype(int))
    same = lpgnn.from_arrays(edges, x=counts.astype(float))
    assert sparse._native.parts()[3]["sparse"][3] == 300
    assert (sparse._native.parts()[3]["sparse"][2] == same._native.parts()[3]["sparse"][2]).all()


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame, pyarrow.table, dict])
def test_a_bag_of_words_is_numbers_in_a_frame_as_in_an_array(frame):
    edges = [list(range(29)), list(range(1, 30))]
    words = (np.random.default_rng(0).random((30, 300)) < 0.02).astype(int)
    columns = {**{f"w{at}": words[:, at] for at in range(300)}, "kind": np.array(list("abc" * 10)), "size": np.ones(30)}
    with pytest.warns(lpgnn.DataWarning, match="x has 300 integer columns, read as numbers") as told:
        data = lpgnn.from_arrays(edges, x=frame(columns), y=np.arange(30) % 2)
    assert len(told) == 1 and "guessed" in repr(data)
    parts = data._native.parts()[3]
    assert [name for name, _, _ in parts["categories"]] == ["kind"] and parts["values"][1].shape == (30, 301)
    # Columns are known by their names, whatever their order.
    model = lpgnn.train(data, epochs=2)
    with pytest.warns(lpgnn.DataWarning, match="integer columns"):
        turned = lpgnn.from_arrays(edges, x=frame(dict(reversed(columns.items()))))
    assert (model.predict(turned).outputs == model.predict(data).outputs).all()
    with pytest.warns(lpgnn.DataWarning, match="x has 40 integer columns, read as numbers"):
        assert understood_with_warnings(x=frame({f"w{at}": words[:4, at] for at in range(40)})) == {"w0 … w39": "40 numbers"}
    # Booleans are categories, however many.
    assert understood(x=frame({f"w{at}": words[:4, at] > 0 for at in range(40)})) == {f"w{at}": "category" for at in range(40)}


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({"y": [0.0, 1.0, 1.0, 0.0]}, "y has the values 0, 1 only and is read as numbers"),
        ({"y": [2.0, 5.0, np.nan, 2.0]}, "y has the values 2, 5 only"),
        ({"y": ["a", "a", "a", "a"]}, "y has one class only: a"),
        ({"graph_y": [1]}, "graph_y has one class only: 1"),
        ({"y": ["0", "1", None, "0"]}, "y has strings that are all integers, and predicted classes will be integers"),
        ({"y": pandas.Series(["True", "False"] * 2)}, "y has strings that are all booleans"),
        ({"y": [0, 1, -1, 1]}, "y has the class -1, a class like the others"),
    ],
)
def test_targets_that_were_guessed_are_warned_of(targets, message):
    with pytest.warns(lpgnn.DataWarning, match=message):
        lpgnn.from_arrays(EDGES, **targets)
    with pytest.warns(lpgnn.DataWarning, match="40 distinct integers, read as classes"):
        lpgnn.from_arrays([[0], [1]], y=np.arange(40))
    with pytest.warns(lpgnn.DataWarning, match="no edges"):
        lpgnn.from_arrays(np.zeros((2, 0)), num_nodes=3)


def test_attributes_that_nobody_asked_for_are_warned_of():
    karate = networkx.karate_club_graph()
    with pytest.warns(lpgnn.DataWarning, match=r"the edge attributes weight are not used: edge_attr names those"):
        lpgnn.from_networkx(karate, x=["club"])
    with pytest.warns(lpgnn.DataWarning, match="the node attributes club are not used"):
        lpgnn.from_networkx(karate, edge_attr=[])


def test_what_is_clear_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lpgnn.from_networkx(networkx.karate_club_graph(), y="club", x=[], edge_attr=[])
        lpgnn.from_arrays(EDGES, x=pandas.DataFrame(MIXED), y=[0, 1, 0, 1])
        lpgnn.from_arrays(EDGES, y=[0.5, 1.5, 1.0, 0.0])
        lpgnn.from_arrays(EDGES, y=pandas.Categorical([3, 1, 3, 1]))


def test_what_was_understood_is_told(caplog):
    data = lpgnn.from_arrays(EDGES, x=MIXED, edge_attr={"bond": ["s", "d", "s"]}, y=["p", None, "q", "p"])
    text = repr(data)
    for line in ("charge   number", "element  category, 3 values: C, H, O", "bond     category", "2 classes: p, q; 1 of 4 unknown"):
        assert line in text, text
    with caplog.at_level(logging.INFO, logger="lpgnn"):
        lpgnn.train(data, epochs=1, split={"train": [0, 2, 3]})
    assert [record.getMessage() for record in caplog.records] == data.columns and len(data.columns) == 6
    html = lpgnn.from_arrays(EDGES, x={"<b>": [0.5] * 4})._repr_html_()
    assert "&lt;b&gt;" in html and "<b>&" not in html


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (pandas.DataFrame({"when": pandas.to_datetime(["2024-01-01"] * 4)}), "x: when has dates"),
        (pandas.DataFrame({"when": pandas.to_datetime(["2024-01-01"] * 4).tz_localize("UTC")}), "x: when has dates"),
        (polars.DataFrame({"when": [datetime.date(2024, 1, 1)] * 4}), "x: when has dates"),
        (pyarrow.table({"when": [datetime.date(2024, 1, 1)] * 4}), "x: when has dates"),
        ({"when": np.array(["2024-01-01"] * 4, dtype="datetime64[D]")}, "x: when has dates"),
        ({"a": [datetime.date(2024, 1, 1)] * 4}, "x: a has date objects"),
        ({"a": np.array([1, "b", 2, "c"], dtype=object)}, "x: a mixes numbers and strings"),
        ({"a": [0.5, "b", 2, "c"]}, "x: a mixes numbers and strings"),
        ({"a": [np.nan, "b", "c", "c"]}, "x: row 0 has no a"),
        (pandas.DataFrame({"a": pandas.array([1, None, 2, 3], "Int64")}), "x: row 1 has no a"),
        (polars.LazyFrame({"a": [1.0, 2.0, 3.0, 4.0]}), r"x is a LazyFrame, .*\.collect\(\)"),
        (pandas.DataFrame({"a": [0.5, None, 2, 3]}), "x: a is nan in row 1"),
    ],
)
def test_columns_that_cannot_be_read_are_refused_in_a_sentence(x, message):
    with pytest.raises(lpgnn.Error, match=message) as raised:
        lpgnn.from_arrays(EDGES, x=x)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edge_index": EDGES, "batch": [1, 1, 2, 2]}, "batch begins with graph 1, but graphs are numbered from 0"),
        ({"edge_index": [[1, 2], [2, 3]], "num_nodes": 3}, "are they numbered from 1"),
        ({"edge_index": EDGES, "graph_y": [0, 1]}, r"graph_y is an array of int64 of shape \[2\], but 1 rows"),
        ({"edge_index": EDGES, "graph_y": pandas.DataFrame({"a": ["x"], "b": ["y"]})}, "graph_y has the columns a, b"),
        (
            {"edge_index": EDGES, "y": pandas.DataFrame([[0.5, 1.5]] * 4, columns=["a", "a"])},
            "y has two columns called a",
        ),
        ({"edge_index": [[0, 10**9], [1, 2]]}, "edge_index names node 1000000000, but has only 4 different nodes"),
        ({"edge_index": EDGES, "num_nodes": 10**10}, "num_nodes makes 10000000000 nodes, but there are at most"),
        ({"edge_index": EDGES, "batch": [0] * 4, "num_graphs": 10**10}, "num_graphs is 10000000000, but there are at most"),
        ({"edge_index": pandas.DataFrame({"from": [0], "to": [1]})}, "edge_index has the columns from, to, but source"),
        ({"edge_index": scipy.sparse.coo_array(np.ones((2, 3)))}, "an adjacency matrix is square"),
    ],
)
def test_a_message_names_the_argument(arguments, message):
    with pytest.raises(lpgnn.Error, match=message):
        lpgnn.from_arrays(arguments.pop("edge_index"), **arguments)


def test_graph_targets_may_be_a_data_frame():
    frame = pandas.DataFrame({"mu": [0.5, 1.5], "alpha": [2.5, None]})
    data = lpgnn.from_arrays([[0], [1]], batch=[0, 0, 1], graph_y=frame)
    assert [(name, text) for _, name, text in data._native.columns()] == [
        ("mu", "number to predict"),
        ("alpha", "number to predict; 1 of 2 unknown"),
    ]
    graphs = [networkx.path_graph(3), networkx.path_graph(4)]
    assert lpgnn.from_networkx(graphs, graph_y=pandas.Series(["a", "b"])).graph_classes.tolist() == ["a", "b"]


def rings(sizes, **columns):
    """Rings of these sizes as one data set."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ends = np.array([[s + k, s + (k + 1) % n] for s, n in zip(starts, sizes) for k in range(n)]).T
    edges = np.concatenate([ends, ends[::-1]], axis=1)
    return lpgnn.from_arrays(edges, batch=np.repeat(np.arange(len(sizes)), sizes), **columns)


def test_one_missing_target_does_not_drop_its_row():
    sizes = np.arange(3, 43) % 15 + 3
    first, second = sizes / 10.0, 1000.0 * sizes + 5e4
    known = np.stack([first, second], axis=1)
    known[::2, 0] = np.nan
    known[1::2, 1] = np.nan
    # No row has both targets.
    data = rings(sizes, graph_y=known)
    model = lpgnn.train(data, epochs=100, split={"train": range(40)})
    metrics = model.evaluate(data)
    assert metrics["count"] == 40 and [each["count"] for each in metrics["per_target"]] == [20, 20]
    assert all(each["r_squared"] > 0.9 for each in metrics["per_target"])
    # Of targets in different units, R² is the mean of their own, as in scikit-learn.
    assert metrics["r_squared"] == pytest.approx(np.mean([each["r_squared"] for each in metrics["per_target"]]))
    found = model.predict(data).y
    assert np.abs(found[:, 0] - first).mean() < 0.1 and np.abs(found[:, 1] - second).mean() < 1000
    assert {"r_squared", "mean_absolute_error"} <= set(model.evaluation["train"])


def test_unseen_categories_are_refused_ignored_or_others():
    known = rings([4] * 10, x={"atom": list("CCNO" * 9) + list("CCNF")}, graph_y=[0, 1] * 5)
    new = rings([4, 4], x={"atom": list("CCNN") + ["C", "C", "Xe", "N"]})
    said = "node 6 of graph 1 has atom “Xe”, which is none of the known values: C, F, N, O"
    with pytest.raises(lpgnn.Error, match=said):
        lpgnn.train(known, epochs=1).predict(new)
    split = {"train": range(10)}
    for unseen, inputs in (("ignore", 4), ("other", 4)):
        model = lpgnn.train(known, epochs=2, settings={"features.unseen": unseen}, split=split)
        found = model.predict(new)
        assert found.y.shape == (2,) and np.isfinite(found.outputs).all()
        assert (found.outputs[0] != found.outputs[1]).any()
    # F was seen once, so it looks like what was never seen.
    rare = rings([4], x={"atom": ["C", "C", "F", "N"]})
    assert model.predict(rare).outputs[0] == pytest.approx(found.outputs[1], abs=1e-4)


def test_columns_that_the_model_does_not_read_are_ignored_with_a_note():
    x = {"a": np.linspace(0, 1, 20), "kind": list("ab" * 10)}
    model = lpgnn.train(rings([4] * 5, x=x, graph_y=[0, 1, 0, 1, 0]), epochs=2)
    plain = model.predict(rings([4] * 5, x=x)).outputs
    more = rings([4] * 5, x={"more": np.ones(20), **x, "words": ["z"] * 20})
    with pytest.warns(lpgnn.DataWarning, match="does not read node feature words, node feature more"):
        assert (model.predict(more).outputs == plain).all()


def test_whatever_exports_arrow_is_a_frame():
    class Exported:
        """Nothing but Arrow's capsule interface."""

        def __init__(self, frame):
            self.frame = frame

        def __arrow_c_stream__(self, requested_schema=None):
            return self.frame.__arrow_c_stream__(requested_schema)

    frame = polars.DataFrame({**MIXED, "kind": polars.Series(["p", "q", "p", "q"], dtype=polars.Categorical)})
    assert understood(x=Exported(frame)) == {**KINDS, "kind": "category"}
    assert understood(x=Exported(frame), edge_attr=Exported(frame[:3]), y=Exported(frame[["element"]]))["element"] == "3 classes"
    data = lpgnn.from_frames(
        Exported(polars.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})),
        Exported(polars.DataFrame({"id": ["a", "b", "c"], "y": [1, None, 0], "size": [0.5, 1.0, 2.0]})),
    )
    assert data.node_classes.tolist() == [0, 1] and data.num_edges == 2
    assert lpgnn.from_arrays(Exported(polars.DataFrame({"source": [0, 1], "target": [1, 2]}))).num_nodes == 3


def test_objects_are_what_the_entries_of_their_column_are():
    frame = pandas.DataFrame({"sex": ["m", "f"] * 20, "income": np.linspace(1, 2, 40), "age": range(40), "ok": [True, False] * 20})
    edges = np.zeros((2, 0), dtype=int)
    with pytest.warns(lpgnn.DataWarning):
        kinds = [str(lpgnn.from_arrays(edges, x=x).columns) for x in (frame, frame.to_numpy())]
    for words in ("category, 2 values", "number"):
        assert kinds[0].count(words) == kinds[1].count(words), kinds
