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
        lpgnn.train: {"force"},
        lpgnn.crossval: {"protocol", "folds", "fold_seed", "fold_files", "seeds", "space", "on_fold"},
        lpgnn.search: {"space", "budget", "halving", "min_epochs", "on_trial"},
    }
    for function, more in own.items():
        assert set(inspect.signature(function).parameters) == set(ARGUMENTS) | others | more
        for name, meaning in ARGUMENTS.items():
            assert f"{name}: {meaning}" in function.__doc__


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
