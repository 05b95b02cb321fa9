#!/usr/bin/env python3
"""Chooses the settings of rows on the validation split, and writes them into their files.

    experiments/choose.py ROW... [--data DIR] [--trials N] [--seeds N] [--finalists N] [--program lpgnn]

A row is a path as in `table3/clique-squared`. Its first trial is the row as it is, the others are drawn at random; trial
number n of a row depends only on its name and n. Every trial is trained with a few seeds, none of which is a seed
of the row, and its score is the mean validation accuracy; test accuracies are not looked at. With `--finalists`, the best
trials are trained with more seeds, and the best of these is chosen.
Trials are kept in `experiments/tuning/TABLE.jsonl` and not run again. `--dry` leaves the rows unchanged.
"""

import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent

# The values to draw from, by setting.
ALWAYS = {
    "model.state-dim": [5, 10, 20],
    "model.hidden-dims": [[10], [20], [50]],
    "model.transition": ["gnn-sum", "gnn-sum", "gnn-mean"],
    "training.solver.weights.lr": [0.003, 0.01],
}
BDMM = {
    "training.weighing.loss-weight": [0.01, 0.1, 1.0],
    "training.solver.penalty": [0.0, 1.0],
    "training.solver.dual-rule": ["adam", "sgd"],
    "training.solver.state-lr": [0.003, 0.01, 0.03],
    "training.solver.multiplier-lr": [0.001, 0.01],
}
OTHERS = {"training.lipschitz": [0.9, 2.0]}
# From trial 32 on.
ONE_SHOT = {"training.solver.inner-steps": [1, 2, 5, 10], "training.epochs": [600, 1500]}
NODES = {
    "model.state-dim": [8, 16, 32],
    "training.feature-dropout": [0.2, 0.5, 0.8],
    "training.l2": [0.0005, 0.002, 0.01, 0.02],
    "training.lipschitz": [0.8, 0.9, 0.95],
    "training.solver.weights.lr": [0.003, 0.01, 0.03],
}
# The first seed of trials: larger than any seed of a row.
FIRST_SEED = 100


def flat(table, prefix=""):
    """The settings of a table and its subtables, by path."""
    settings = {}
    for key, value in table.items():
        if isinstance(value, dict):
            settings |= flat(value, f"{prefix}{key}.")
        else:
            settings[prefix + key] = value
    return settings


def trial(row, settings, number):
    """The settings of a trial."""
    if number == 0:
        return settings
    kind = settings.get("training.solver.kind", "one-shot")
    draw = random.Random(f"{row} {number}")
    space = NODES if row.startswith("nodes/") else ALWAYS | (BDMM if kind == "bdmm" else OTHERS)
    if kind == "one-shot" and space is not NODES and number >= 32:
        space |= ONE_SHOT
    return settings | {key: draw.choice(values) for key, values in space.items()}


def validation(program, source, settings, seeds):
    """The validation accuracies for the seeds, or why there are none."""
    found = []
    for seed in (FIRST_SEED + number for number in seeds):
        with tempfile.TemporaryDirectory() as out:
            command = [program, "train", str(source), "--json", "--quiet", "--threads", "1"]
            command += ["--seed", str(seed), "--out", f"{out}/run"]
            for key, value in settings.items():
                text = value if isinstance(value, str) else json.dumps(value)
                command += ["--set", f"{key}={text}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return {"failure": done.stderr.strip().splitlines()[-1:]}
        metrics = dict(json.loads(done.stdout.splitlines()[-1])["evaluation"]["parts"])
        found.append(round(100 * metrics["val"]["accuracy"], 2))
    return {"val": found, "mean": round(sum(found) / len(found), 2)}


def write(path, settings, trials):
    """Writes settings into the file of a row, after its experiment and data sections."""
    head = re.split(r"^\[(?!experiment\]|data\])", path.read_text(), flags=re.MULTILINE)[0]
    head = re.sub(r"# Chosen .*\n", "", head).rstrip()
    tables = {}
    for key, value in settings.items():
        table, _, name = key.partition(".")
        tables.setdefault(table, {})[name] = value
    text = f"{head}\n\n# Chosen on the validation split among {trials} trials by choose.py.\n"
    for table, values in tables.items():
        text += f"[{table}]\n"
        text += "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
        text += "\n"
    path.write_text(text.rstrip() + "\n")


def append(record, entry):
    """Keeps a trial; if it has two lines, the later one counts."""
    with record.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("rows", nargs="+", metavar="ROW")
    options.add_argument("--data", type=pathlib.Path, default=pathlib.Path("datasets"))
    options.add_argument("--trials", type=int, default=8)
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--finalists", type=int, default=0)
    options.add_argument("--final-seeds", type=int, default=10)
    options.add_argument("--program", default="lpgnn")
    options.add_argument("--dry", action="store_true")
    chosen = options.parse_args()

    for row in chosen.rows:
        path = HERE / f"{row}.toml"
        if not path.exists():
            sys.exit(f"{path} does not exist; a row is a file in experiments, as in table3/clique-squared")
        file = tomllib.loads(path.read_text())
        source = file["data"]["source"]
        # Where `lpgnn reproduce` looks for it.
        for folder in (chosen.data, chosen.data / "tu", chosen.data / "planetoid"):
            if (folder / source).exists():
                source = folder / source
                break
        settings = flat({key: file[key] for key in file if key not in ("experiment", "data")})

        record = HERE / "tuning" / f"{path.parent.name}.jsonl"
        record.parent.mkdir(exist_ok=True)
        lines = record.read_text().splitlines() if record.exists() else []
        known = {entry["trial"]: entry for entry in map(json.loads, lines) if entry["row"] == row}
        first = known[0]["settings"] if 0 in known else settings
        for number in range(chosen.trials):
            if number in known:
                continue
            entry = {"row": row, "trial": number, "settings": trial(row, first, number)}
            seeds = range(chosen.seeds)
            entry |= validation(chosen.program, source, entry["settings"], seeds)
            if number == 0 and "failure" in entry:
                sys.exit(f"{row} does not train as it is: {entry['failure']}")
            known[number] = entry
            append(record, entry)
        ranking = sorted(known.values(), key=lambda e: (-e.get("mean", 0.0), e["trial"]))
        finalists = ranking[: chosen.finalists] or ranking[:1]
        for entry in finalists[: chosen.finalists]:
            count = len(entry["val"])
            if count < chosen.final_seeds:
                seeds = range(count, chosen.final_seeds)
                more = validation(chosen.program, source, entry["settings"], seeds)
                entry["val"] += more.get("val", [0.0])
                entry["mean"] = round(sum(entry["val"]) / len(entry["val"]), 2)
                append(record, entry)
        best = max(finalists, key=lambda e: (e.get("mean", 0.0), -e["trial"]))
        print(f"{row}: {known[0].get('mean')} -> {best.get('mean')}, trial {best['trial']}", flush=True)
        if not chosen.dry:
            write(path, best["settings"], len(known))


if __name__ == "__main__":
    main()
