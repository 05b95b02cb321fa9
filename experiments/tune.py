#!/usr/bin/env python3
"""Cross-validates models drawn at random from a search space, and records the accuracy of each.

    experiments/tune.py SET [--data DIR] [--layers 1,3] [--trials N] [--seed N] [--paper] [--halving N] [--program lpgnn]

Trial number n of a data set depends only on the data set, the seed and n; a trial that is in
`experiments/tuning/SET.jsonl` is not run again. The protocol is best-mean-epoch on the folds in `experiments/folds`, as in the
paper: what is chosen this way is optimistic, and the rows of `table4-nested` show by how much.

With `--paper`, trials are drawn from the grid of the paper for table 4, as in the search space paper-graphs: bdmm with one layer, 300 points. They are
kept in `experiments/tuning/SET-paper.jsonl`, with the version of the program.

With `--halving 3 --rounds 2`, all trials are cross-validated for a third of the epochs, and the best third of them, or
the best `--keep`, for all epochs; with three rounds they begin with a ninth.
"""

import argparse
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent

# The values to draw from, by setting.
SPACE = {
    "model.transition": ["gnn-sum", "gnn-mean", "gnn-normalized"],
    "model.state-dim": [8, 10, 16],
    "model.hidden-dims": [[16], [20], [32]],
    "model.readout-hidden-dims": [[10], [20], [32]],
    "model.readout-activation": ["relu", "tanh"],
    "model.dropout": [0.0, 0.0, 0.2, 0.5],
    "model.reads.layers": ["all", "all", "last"],
    "model.inputs.edge-features": [True, False],
    "training.batch-size": ["none", "none", "none", 64],
    "training.solver.inner-steps": [1, 2],
    "training.solver.weights.lr": [0.003, 0.005, 0.01, 0.02],
    "training.solver.weights.weight-decay": [0.0, 0.0, 0.003, 0.03],
    "training.epochs": [150],
    "training.eval-every": [1],
    "model.activation": ["tanh", "relu"],
    "training.solver.weights.lr-half-life": ["none", 50, 150],
    "model.isolated": ["zero"],
}

# The grid of the paper: one rate for weights, states and multipliers.
PAPER = {
    "model.hidden-dims": [[5], [20], [50], [70], [150]],
    "model.state-dim": [10, 35, 50, 70, 150],
    "model.transition": ["gnn-sum", "gnn-mean"],
    "model.dropout": [0.0, 0.7],
    "lr": [0.1, 0.01, 0.001],
}
RATES = ["training.solver.weights.lr", "training.solver.state-lr", "training.solver.multiplier-lr"]


def paper_settings(name, seed, number):
    """The settings of a trial in the paper's grid, no two of which are the same."""
    points = [{}]
    for key, values in PAPER.items():
        points = [point | {key: value} for point in points for value in values]
    random.Random(f"{name} {seed} paper").shuffle(points)
    point = points[number]
    lr = point.pop("lr")
    fixed = {"training.solver.kind": "bdmm", "training.epochs": 150, "training.eval-every": 1}
    return fixed | point | dict.fromkeys(RATES, lr)


def trial_settings(name, seed, number, layers):
    """The settings of a trial."""
    draw = random.Random(f"{name} {seed} {number}")
    settings = {key: draw.choice(values) for key, values in SPACE.items()}
    settings["model.layers"] = layers[number % len(layers)]
    if settings["model.layers"] == 1:
        settings["model.reads.layers"] = "last"
    return settings


def run(program, source, folds, settings, threads):
    """The accuracy with these settings, or why there is none."""
    with tempfile.TemporaryDirectory() as out:
        command = [program, "crossval", str(source), "--fold-files", str(folds), "--json", "--quiet"]
        command += ["--threads", str(threads), "--out", f"{out}/folds"]
        for key, value in settings.items():
            text = value if isinstance(value, str) else json.dumps(value)
            command += ["--set", f"{key}={text}"]
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = round(time.monotonic() - start, 1)
        if done.returncode != 0:
            return {"failure": done.stderr.strip().splitlines()[-1:], "seconds": seconds}
        report = json.loads(done.stdout)
        test = report["test"]
        return {
            "mean": round(100 * test["mean"], 2),
            "std": round(100 * test["std"], 2),
            "epoch": report.get("epoch"),
            "seconds": seconds,
        }


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("set", help="the name of the data set, as in MUTAG")
    options.add_argument("--data", type=pathlib.Path, default=pathlib.Path("datasets"))
    options.add_argument("--layers", default="1,2,3,4", help="the numbers of layers, used in turn")
    options.add_argument("--trials", type=int, default=50)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--program", default="lpgnn")
    options.add_argument("--fix", action="append", default=[], help="KEY=VALUE, a setting that is not drawn")
    options.add_argument("--paper", action="store_true", help="draw from the paper's grid")
    options.add_argument("--halving", type=int, default=3, help="keep one in so many trials after a round")
    options.add_argument("--keep", type=int, default=100, help="keep at most so many")
    options.add_argument("--rounds", type=int, default=1, help="rounds of successive halving")
    chosen = options.parse_args()

    sources = sorted(chosen.data.glob(f"**/{chosen.set}/*_A.txt"))
    folds = HERE / "folds" / f"{chosen.set}.txt"
    if not sources or not folds.exists():
        sys.exit(f"there is no TU folder {chosen.set} in {chosen.data}, or no {folds}")
    layers = [int(k) for k in chosen.layers.split(",")]
    fixed = {}
    for setting in chosen.fix:
        key, _, value = setting.partition("=")
        fixed[key] = value

    version = subprocess.run([chosen.program, "--version"], capture_output=True, text=True, check=True)
    record = HERE / "tuning" / f"{chosen.set}{'-paper' if chosen.paper else ''}.jsonl"
    record.parent.mkdir(exist_ok=True)
    lines = record.read_text().splitlines() if record.exists() else []
    known = [json.loads(line) for line in lines]
    numbers = list(range(chosen.trials))
    for rest in reversed(range(chosen.rounds)):
        share = chosen.halving**rest
        done = []
        for number in numbers:
            if chosen.paper:
                settings = paper_settings(chosen.set, chosen.seed, number)
            else:
                settings = trial_settings(chosen.set, chosen.seed, number, layers)
            settings |= fixed
            settings["training.epochs"] = math.ceil(int(settings["training.epochs"]) / share)
            entry = next((entry for entry in known if entry["settings"] == settings), None)
            if entry is None:
                entry = {"seed": chosen.seed, "trial": number, "settings": settings}
                entry["version"] = version.stdout.strip()
                entry |= run(chosen.program, sources[0].parent, folds, settings, chosen.threads)
                with record.open("a") as file:
                    file.write(json.dumps(entry) + "\n")
                epochs, found = settings["training.epochs"], entry.get("mean", entry.get("failure"))
                print(f"{chosen.set} {number}, {epochs} epochs: {found}", flush=True)
            done.append(entry)
        done.sort(key=lambda entry: -entry.get("mean", 0.0))
        kept = min(math.ceil(len(done) / chosen.halving), chosen.keep)
        numbers = [entry["trial"] for entry in done[:kept]]


if __name__ == "__main__":
    main()
