"""Settings are declared once, in Rust: Python has the same names, and the same messages."""

import inspect

import lpgnn
import pytest
from lpgnn._arguments import ARGUMENTS


@pytest.fixture(scope="module")
def clique():
    return lpgnn.read("clique")


def test_every_setting_with_a_flag_is_an_argument():
    others = {"data", "settings", "config", "split", "out", "threads", "on_epoch", "progress"}
    own = {
        lpgnn.train: {"force", "tensorboard"},
        lpgnn.crossval: {"protocol", "folds", "fold_seed", "fold_files", "seeds", "space", "stages", "ensemble", "on_fold"},
        lpgnn.search: {"space", "budget", "halving", "min_epochs", "on_trial"},
    }
    for function, more in own.items():
        assert set(inspect.signature(function).parameters) == set(ARGUMENTS) | others | more
        for name, meaning in ARGUMENTS.items():
            assert f"``{name}``: {meaning}" in function.__doc__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": "many"}, 'epochs: training.epochs is "many", but a positive integer is expected'),
        ({"state_dim": 0}, "state_dim: model.state-dim is 0, but an integer from 1 to 65536 is expected"),
        ({"solver": "newton"}, 'solver: training.solver.kind is "newton", but one of '),
        ({"settings": {"modl.layers": 3}}, "settings: modl.layers is not a setting; did you mean model.layers?"),
        ({"settings": {"training.seed": None}}, "settings: training.seed is none, but a non-negative integer "),
    ],
)
def test_a_message_names_the_argument(clique, arguments, message):
    with pytest.raises(lpgnn.Error) as raised:
        lpgnn.train(clique, **arguments)
    assert str(raised.value).startswith(message)


def test_a_message_names_the_line_of_a_file(clique, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[training]\nepochs = 0\n")
    with pytest.raises(lpgnn.Error, match="mine.toml, line 2, column 10: training.epochs is 0"):
        lpgnn.train(clique, config=file)


def test_a_choice_with_settings_is_a_table(clique):
    rule = {"training.solver": {"kind": "bdmm", "dual-rule": {"nu-pi": {"nu": 0.5, "kappa": 2.0}}}}
    model = lpgnn.train(clique, epochs=1, settings=rule)
    assert model.settings["training"]["solver"]["dual-rule"] == {"nu-pi": {"nu": 0.5, "kappa": 2.0}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"split.train": 0.5}}, "settings: split.train has no effect: clique comes with a split"),
        ({"settings": {"split.seed": 1}, "split": {"train": [0], "test": [1]}}, "split.seed has no effect: split is an argument"),
        ({"settings": {"data.source": "karate"}}, "settings: data.source has no effect: data has been read already"),
    ],
)
def test_a_setting_without_effect_is_refused(clique, arguments, message):
    with pytest.raises(lpgnn.Error, match=message):
        lpgnn.train(clique, epochs=1, **arguments)


def test_a_complete_file_of_settings_may_have_all_of_them(clique, tmp_path):
    split = {"train": range(100), "val": range(100, 150)}
    for name, given in (("own", None), ("given", split)):
        file = tmp_path / f"{name}.toml"
        file.write_text(lpgnn.settings(clique, {"training.epochs": 1}, split=given))
        assert len(lpgnn.train(clique, config=file, split=given).history) == 1


def test_experiments_refuse_what_has_no_effect(clique):
    with pytest.raises(lpgnn.Error, match="split.seed has no effect: cross-validation has folds"):
        lpgnn.crossval(clique, folds=2, epochs=1, settings={"split.seed": 1})
    with pytest.raises(lpgnn.Error, match="split is given, but the protocol is 'nested', which has folds"):
        lpgnn.crossval(clique, folds=2, epochs=1, protocol="nested", split={"train": [0], "test": [1]})
    with pytest.raises(lpgnn.Error, match="lr: training.solver.weights.lr has no effect: the search space space varies it"):
        lpgnn.search(clique, {"lr": [0.1, 0.2]}, epochs=1, lr=0.3)
    with pytest.raises(lpgnn.Error, match="split.seed cannot be varied"):
        lpgnn.search(clique, {"split.seed": [1, 2]}, epochs=1)


def test_what_cannot_be_learnt_or_has_no_effect_is_a_warning():
    edges = [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]
    data = lpgnn.from_arrays(edges, y=["a", "a", "b", "b", "c", "c"])
    split = {"train": [0, 2], "test": [4, 5]}
    with pytest.warns(UserWarning, match="class “c” is not in the training split, so it is never predicted") as caught:
        lpgnn.train(data, epochs=1, split=split)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="all training nodes are of class “a”: there is nothing to learn"):
        lpgnn.train(data, epochs=1, split={"train": [0, 1], "test": [4]})
    with pytest.warns(UserWarning, match="training.patience has no effect, because there is no validation split"):
        lpgnn.train(data, epochs=1, patience=3, split={"train": [0, 2, 4], "test": [1, 3, 5]})


def test_a_budget_for_more_trials_than_there_are_is_a_warning(clique):
    with pytest.warns(UserWarning, match="fewer trials than the budget"):
        found = lpgnn.search(clique, {"state_dim": [2, 3]}, budget=5, epochs=2)
    assert len(found.ranked) == 2


def test_memory_has_a_limit(clique):
    before = lpgnn.get_max_memory()
    try:
        lpgnn.set_max_memory("1.5G")
        assert lpgnn.get_max_memory() == 3 * 2**29
        lpgnn.set_max_memory(2**20)
        with pytest.raises(lpgnn.Error, match="memory limit of 1.0 MB is left"):
            lpgnn.train(clique, epochs=1)
    finally:
        lpgnn.set_max_memory(before)
    with pytest.raises(lpgnn.Error, match="max-memory is “much”, but a size such as 800M or 4G is expected"):
        lpgnn.set_max_memory("much")
    with pytest.raises(TypeError, match="size is 1.5"):
        lpgnn.set_max_memory(1.5)


def test_iterations_have_a_limit(clique):
    model = lpgnn.train(clique, epochs=3)
    assert model.predict(clique).converged.all()
    assert not model.predict(clique, max_iter=1).converged.any()
    assert model.evaluate(clique, max_iter=1)["count"] == 2100
    with pytest.raises(lpgnn.Error, match="max_iter is 0"):
        model.predict(clique, max_iter=0)


def test_messages_are_short_whatever_they_quote(clique):
    with pytest.raises(lpgnn.Error) as raised:
        lpgnn.train(clique, settings={"training.epochs": "x" * 10_000})
    assert len(str(raised.value)) < 300 and "…" in str(raised.value)
