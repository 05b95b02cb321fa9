"""The section `live`: graphs that change, in parts that can be measured one by one.

    benchmarks/run.py live [--only PART,…] --data DIR

Parts are `sizes`, `tols`, `batches`, `models`, which trains what is missing and times nothing, and the real graphs
`coauthor-physics` and `amazon-computer`.
"""

import os
import resource
import subprocess
import sys
import time
from typing import NamedTuple

import report
import workers
from workers import WORK, run_json, talk


class Recipe(NamedTuple):
    """A model of ours, and epochs of a GCN and a GIN: enough for about the same accuracy."""

    layers: int
    units: int
    lipschitz: float
    settings: list
    peer_epochs: int

    def options(self):
        return ["--transition", "gnn-mean", "--layers", str(self.layers), "--state-dim", str(self.units), "--hidden-dims", str(self.units), "--patience", "none",
                "--eval-every", "10", "--set", f"training.lipschitz={self.lipschitz}", "--set", "model.state-weights=random", "--set", "training.l2=0", *self.settings]


# A node of Amazon Computer has 36 neighbours on average: states that change slowly along paths say too little of it, and a smaller bound is better.
GRAPHS = {
    "coauthor-physics": Recipe(1, 32, 0.9, ["--epochs", "60", "--set", "features.row-normalize=false", "--set", "training.feature-dropout=0"], 30),
    "amazon-computer": Recipe(2, 64, 0.5, ["--epochs", "500", "--lr", "0.02", "--set", "training.solver.inner-steps=4", "--set", "training.feature-dropout=0.6",
                                           "--set", "model.reads.features=false"], 300),
}
PARTS = ("sizes", "tols", "batches", "models", *GRAPHS)
PEERS = ("gcn", "gin")


def measure(options, benches, keep):
    """Measures the parts that are asked for; the others are those of the last run."""
    unknown = [part for part in options.only or [] if part not in PARTS]
    if unknown:
        sys.exit(f"there is no part {unknown[0]}: choose from {', '.join(PARTS)}")
    section = report.stored("live") if options.only else {}
    bench = lambda *arguments: run_json([benches["live"], *map(str, arguments)])
    for part in options.only or PARTS:
        if part == "models":
            train(options)
            continue
        begin, busy, own = time.time(), workers.busy_seconds(), own_seconds()
        rows = {"sizes": sizes, "tols": tols, "batches": batches}.get(part, real)(options, bench, part)
        elapsed = time.time() - begin
        others = workers.busy_seconds() - busy - (own_seconds() - own)
        facts = {name: options.facts[name] for name in ("processor", "commit", "rustc")}
        facts |= {"date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "seconds": elapsed, "others": max(0.0, others / elapsed)}
        section[part] = {"facts": facts, "rows": rows}
        keep(section)
    return section


def own_seconds():
    """Seconds that the processes of this one have worked."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def sizes(options, bench, part):
    rows = []
    for nodes in (10_000, 100_000) if options.quick else (10_000, 100_000, 1_000_000):
        talk(f"live: {nodes:,} nodes")
        # Residuals that nobody has looked at pile up before the number of nodes touched is that of the long run.
        warm = nodes // 2
        rows.append(bench("--nodes", nodes, "--warm", warm, "--events", 4_000 if options.quick else 20_000))
    return rows


def tols(options, bench, part):
    rows = []
    for tol in (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5):
        talk(f"live: tol {tol}")
        events = 1_000 if options.quick or tol < 1e-4 else 10_000
        rows.append(bench("--nodes", 100_000, "--tol", tol, "--warm", events, "--events", events))
    return rows


def batches(options, bench, part):
    rows = []
    for batch in (1, 10, 100, 1000):
        talk(f"live: batches of {batch}")
        rows.append(bench("--nodes", 100_000, "--batch", batch, "--threads", max(options.threads), "--events", 20_000))
    return rows


def model_of(graph):
    return os.path.join(WORK, f"live-{graph}")


def train(options):
    """Models of all real graphs, ours and those of PyTorch Geometric, unless they are there."""
    for graph, recipe in GRAPHS.items():
        path, out = find_file(options.data, f"{graph}.npz"), model_of(graph)
        if path and not os.path.exists(os.path.join(out, "model.safetensors")):
            talk(f"live: training on {graph}")
            command = [workers.build_program(), "train", path, *recipe.options(), "--out", out, "--force", "--quiet", "--no-baseline"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for kind in PEERS if path and peer_problem() is None else ():
            if not os.path.exists(weights_of(graph, kind)):
                talk(f"live: training {kind} on {graph}")
                run_json(peer(graph, path, kind, 0))


def peer_problem():
    return workers.install(["torch", "torch-geometric", "numpy"])


def weights_of(graph, kind):
    return os.path.join(WORK, f"live-{graph}-{kind}.pt")


def peer(graph, path, kind, events):
    return [workers.PYTHON, os.path.join(workers.HERE, "peers", "geometric_live.py"), path, "--model", kind, "--events", str(events), "--epochs", str(GRAPHS[graph].peer_epochs),
            "--weights", weights_of(graph, kind)]


def real(options, bench, graph):
    """Trained models on a real graph, ours and a GCN and a GIN."""
    path = find_file(options.data, f"{graph}.npz")
    if not path:
        return {"problem": "no data: give --data"}
    train(options)
    rows, out, recipe = {"ours": [], "peers": []}, model_of(graph), GRAPHS[graph]
    scores = run_json([workers.build_program(), "evaluate", out, path, "--split", "test", "--json"])
    for tol in (1e-1, 1e-2, 1e-3):
        talk(f"live: {graph}, tol {tol}")
        found = bench("--model", os.path.join(out, "model.safetensors"), "--data", path, "--tol", tol, "--events", 200 if options.quick else 2_000)
        rows["ours"].append({**found, "layers": recipe.layers, "units": recipe.units, "lipschitz": recipe.lipschitz, "accuracy": scores["accuracy"]})
    problem = peer_problem()
    for kind in PEERS:
        talk(f"live: {graph}, {kind}")
        events = 20 if options.quick else 60
        rows["peers"].append({"model": kind, "problem": problem} if problem else run_json(peer(graph, path, kind, events)))
    return rows


def find_file(data, name):
    """The file of that name, however deep."""
    for folder, _, files in sorted(os.walk(data)) if data else []:
        if name in files:
            return os.path.join(folder, name)
    return None
