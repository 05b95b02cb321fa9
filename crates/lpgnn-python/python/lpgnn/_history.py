"""What is reported of training, as flat records."""

from __future__ import annotations

from typing import Any

#: The variables whose gradients are reported.
VARIABLES = ("weights", "states", "multipliers")


def flat(report: dict[str, Any]) -> dict[str, Any]:
    """The report of an epoch, without nested values; numbers that are not finite are NaN."""
    report = dict(report)
    evaluation = report.pop("evaluation", None)
    report["loss_sum"] = report.pop("loss")
    norms = report.pop("gradient_norms", ())
    record = {
        key: float("nan") if value is None and key != "trained_accuracy" else value for key, value in report.items()
    }
    record |= {f"gradient_norm_{name}": float("nan") if norm is None else norm for name, norm in zip(VARIABLES, norms)}
    if evaluation is not None:
        for name, metrics in evaluation["parts"]:
            record |= {f"{name}_{metric}": value for metric, value in metrics.items() if value is not None}
        record |= {key: value for key, value in evaluation.items() if key != "parts"}
    return record


def evaluation_of(notes: dict[str, Any]) -> dict[str, Any]:
    """The metrics of every split by its name, beside what is known of the whole evaluation."""
    final = notes.get("final_evaluation")
    if final is None:
        return {}
    found = {each["split"]: each["metrics"] for each in final["splits"]}
    rest = {key: value for key, value in (notes.get("evaluation") or {}).items() if key != "parts"}
    not_converged = final["graphs"]["converged"].count(False)
    return {**found, **rest, "not_converged": not_converged}
