"""Accuracy against seconds: ours, and GIN and GCN of PyTorch Geometric, over the same ten folds."""

import concurrent.futures
import json
import os
import statistics
import subprocess
import time

import report
import workers
from workers import WORK, Worker, talk

# Epochs of every program. On NCI1 GIN has as many as it takes until it no longer rises.
EPOCHS = {"NCI1": {"ours": 100, "rings": 100, "gin": 150, "gcn": 60}, "MUTAG": {"ours": 200, "gin": 100, "gcn": 100},
          "PROTEINS": {"ours": 100, "gin": 100, "gcn": 60}, "IMDB-BINARY": {"ours": 100, "gin": 100, "gcn": 60}}

# Ours by its defaults, and with a feature that suits molecules: how many rings of each size go through a node.
SETTINGS = {"ours": [], "rings": ["features.structure.rings=6"]}


def measure(options, benches, keep):
    """Mean accuracy over ten folds against seconds, ours and GIN and GCN. What is not asked for is kept from earlier runs."""
    lpgnn = workers.build_program() if set(SETTINGS) & set(options.programs) else None
    section = {"sets": report.stored("accuracy").get("sets", []), "threads": max(options.threads), "folds": 2 if options.quick else 10,
               "problem": workers.install(["torch", "torch-geometric"])}
    for name in options.sets or EPOCHS:
        path = workers.find(options.data, name)
        if not path:
            continue
        row = next((row for row in section["sets"] if row["data"] == name), None)
        if not row:
            row = {"data": name, "programs": {}}
            section["sets"].append(row)
        found = {}
        # By default ours runs before and after GIN, so that what disturbs one disturbs both; the slower run counts.
        for kind in options.programs:
            if kind not in EPOCHS[name] or kind not in SETTINGS and section["problem"]:
                continue
            talk(f"accuracy: {name}, {kind}")
            epochs = EPOCHS[name][kind] // (10 if options.quick else 1)
            ours = kind in SETTINGS
            run = our_folds(lpgnn, path, section, epochs, SETTINGS[kind]) if ours else their_folds(kind, path, section, epochs)
            found[kind] = max(found.get(kind, run), run, key=lambda run: run["seconds"][-1])
            row["programs"] = {**row["programs"], **found}
            keep(section)
    return section


def folds_of(path):
    return os.path.join(workers.ROOT, "experiments", "folds", os.path.basename(path) + ".txt")


def our_folds(lpgnn, path, section, epochs, settings):
    """One cross-validation from the start of the process, the model without edges included: epochs are taken to be equally long."""
    out = os.path.join(WORK, f"accuracy-{os.getpid()}-{time.time():.0f}")
    command = [lpgnn, "crossval", path, "--fold-files", folds_of(path), "--epochs", str(epochs), "--eval-every", "1",
               "--patience", "none", "--threads", str(section["threads"]), "--out", out, "--quiet", "--json"]
    command += [word for setting in settings for word in ("--set", setting)]
    if section["folds"] < 10:
        command += ["--shard", f"1/{10 // section['folds']}"]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begin
    curves = []
    for file in sorted(os.listdir(out)):
        if file.startswith("fold-") and file.endswith(".json"):
            with open(os.path.join(out, file)) as text:
                curves.append(json.load(text)["trial"]["test"])
    return {"seconds": [seconds * (epoch + 1) / epochs for epoch in range(epochs)], "accuracy": means(curves)}


def their_folds(kind, path, section, epochs):
    """Folds by turns in processes of one thread each, as many as there are threads: faster than one process with all threads."""
    options = ["--model", kind, "--folds", folds_of(path)]
    alive = [Worker.gin_training(path, 1, *options, first_core=core) for core in range(section["threads"])]
    numbers = iter(range(1, section["folds"] + 1))
    with concurrent.futures.ThreadPoolExecutor(len(alive)) as pool:
        def fold(worker, number):
            """What a run that was cut short has finished is not repeated."""
            file = os.path.join(WORK, f"{kind}-{os.path.basename(path)}-{epochs}-{number}.json")
            if not os.path.exists(file):
                answer = worker.order("fold", number, epochs)
                with open(file, "w") as to:
                    json.dump(answer, to)
            with open(file) as text:
                return json.load(text)

        # An iterator is shared: whoever is done takes the next fold.
        each = lambda worker: [fold(worker, number) for number in numbers]
        try:
            found = [fold for folds in pool.map(each, alive) for fold in folds]
        finally:
            for worker in alive:
                worker.end()
    seconds = [sum(column) / len(alive) for column in zip(*(fold["seconds"] for fold in found))]
    return {"seconds": seconds, "accuracy": means([fold["accuracy"] for fold in found])}


def means(curves):
    return [statistics.mean(column) for column in zip(*curves)]
