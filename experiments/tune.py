#!/usr/bin/env python3
"""Cross-validates models drawn at random from a space, and keeps what each of them reached.

    experiments/tune.py SET [--data DIR] [--layers 1,3] [--trials N] [--seed N] [--program lpgnn]

Trial number n of a set is a function of the set, the seed and n alone; a trial that is in
`experiments/tuning/SET.jsonl` is not run again. The protocol is best-mean-epoch on the given folds, as in the
paper: what is chosen by it is optimistic, and the rows of `table4-nested` say by how much.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent

# What is drawn from, by the name of the setting.
SPACE = {
    "model.transition": ["gnn-sum", "gnn-mean", "gnn-normalized"],
    "model.state": [8, 10, 16],
    "model.hidden": [[16], [20], [32]],
    "model.readout-hidden": [[10], [20], [32]],
    "model.readout-activation": ["relu", "tanh"],
    "model.dropout": [0.0, 0.0, 0.2, 0.5],
    "model.reads.layers": ["all", "all", "last"],
    "model.inputs.arc-labels": [True, False],
    "training.batch-size": ["none", "none", "none", 64],
    "training.solver.inner-steps": [1, 2],
    "training.solver.weights.rate": [0.003, 0.005, 0.01, 0.02],
    "training.solver.weights.decay": [0.0, 0.0, 0.003, 0.03],
    "training.epochs": [150],
    "training.score-every": [1],
    "model.activation": ["tanh", "relu"],
    "training.solver.weights.half-life": ["none", 50, 150],
}


def trial_settings(name, seed, number, layers):
    """The settings of a trial."""
    draw = random.Random(f"{name} {seed} {number}")
    settings = {key: draw.choice(values) for key, values in SPACE.items()}
    settings["model.layers"] = layers[number % len(layers)]
    if settings["model.layers"] == 1:
        settings["model.reads.layers"] = "last"
    return settings


def run(program, source, folds, settings, threads):
    """What the model of these settings reaches, or why it does not."""
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
            "deviation": round(100 * test["deviation"], 2),
            "epoch": report.get("epoch"),
            "seconds": seconds,
        }


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("set", help="the name of the folder of the data set, as in MUTAG")
    options.add_argument("--data", type=pathlib.Path, default=pathlib.Path("datasets"))
    options.add_argument("--layers", default="1,2,3,4", help="K, in turn")
    options.add_argument("--trials", type=int, default=50)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--program", default="lpgnn")
    options.add_argument("--fix", action="append", default=[], help="KEY=VALUE, not drawn")
    chosen = options.parse_args()

    sources = sorted(chosen.data.glob(f"**/{chosen.set}/*_A.txt"))
    folds = sorted(chosen.data.glob(f"**/folds/{chosen.set}/stratified-seed0"))
    if not sources or not folds:
        sys.exit(f"{chosen.data} has no TU folder {chosen.set} with folds/{chosen.set}/stratified-seed0")
    layers = [int(k) for k in chosen.layers.split(",")]
    fixed = {}
    for setting in chosen.fix:
        key, _, value = setting.partition("=")
        fixed[key] = value

    record = HERE / "tuning" / f"{chosen.set}.jsonl"
    record.parent.mkdir(exist_ok=True)
    lines = record.read_text().splitlines() if record.exists() else []
    known = [json.loads(line) for line in lines]
    for number in range(chosen.trials):
        settings = trial_settings(chosen.set, chosen.seed, number, layers) | fixed
        if any(entry["settings"] == settings for entry in known):
            continue
        entry = {"seed": chosen.seed, "trial": number, "settings": settings}
        entry |= run(chosen.program, sources[0].parent, folds[0], settings, chosen.threads)
        with record.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        print(f"{chosen.set} {number}: {entry.get('mean', entry.get('failure'))}", flush=True)


if __name__ == "__main__":
    main()
