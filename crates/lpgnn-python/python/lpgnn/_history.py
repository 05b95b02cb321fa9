"""What is reported of training, as flat records."""

from __future__ import annotations

from typing import Any

#: The variables whose gradients are reported.
VARIABLES = ("weights", "states", "multipliers")


def flat(report: dict[str, Any]) -> dict[str, Any]:
    """The report of an epoch, without nested values. What was not measured is not there."""
    report = dict(report)
    evaluation = report.pop("evaluation", None) or {}
    constraints = report.pop("constraints", None) or {}
    report["loss_sum"] = report.pop("loss")
    norms = report.pop("gradient_norms", ())
    record = report | {f"gradient_norm_{name}": norm for name, norm in zip(VARIABLES, norms)}
    record |= {f"{kind}_within": constraints.get(f"{kind}_within") for kind in ("nodes", "graphs")}
    for name, metrics in evaluation.get("parts", ()):
        record |= {f"{name}_{metric}": value for metric, value in metrics.items()}
    record |= {key: value for key, value in evaluation.items() if key != "parts"}
    return {key: numbers(value) for key, value in record.items() if value is not None or key == "trained_accuracy"}


def frame_of_epochs(records: list[dict[str, Any]]) -> Any:
    """Records of epochs as a data frame; NaN where something was not measured."""
    try:
        import pandas
    except ImportError:
        text = "history is a pandas DataFrame, and pandas is not installed; epoch_records has the same as a list of dictionaries"
        raise ImportError(text) from None
    return pandas.DataFrame(records)


def numbers(value: Any) -> Any:
    """JSON has no numbers that are not finite: they are ``"NaN"``, ``"Infinity"`` and ``"-Infinity"`` there."""
    if isinstance(value, dict):
        return {key: numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [numbers(each) for each in value]
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def evaluation_of(notes: dict[str, Any]) -> dict[str, Any]:
    """The metrics of every split by its name, beside what is known of the whole evaluation."""
    final = notes.get("final_evaluation")
    if final is None:
        return {}
    found = {each["split"]: each["metrics"] for each in final["splits"]}
    rest = {key: value for key, value in (notes.get("evaluation") or {}).items() if key != "parts"}
    not_converged = final["graphs"]["converged"].count(False)
    return numbers({**found, **rest, "not_converged": not_converged})
