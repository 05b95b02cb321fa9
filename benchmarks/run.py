#!/usr/bin/env python3
"""Compares this library with other programs on the same data; writes RESULTS.md.

    benchmarks/run.py [SECTION…] [OPTION…]          or: make bench-peers ARGS="…"

Sections are `peers`, `account`, `scaling`, `program`, `training`, `accuracy`, `live` and `cluster`, all of them by default. `--quick` takes about two
minutes per section once the peers are installed. A run replaces the section of the same name in RESULTS.md;
`--dry` leaves the file alone. `benchmarks/README.md` explains what is measured.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import cluster
import report
import workers
from workers import OURS, PEERS, ROOT, WORK, Failure, Worker, find, run_json, talk

SECTIONS = ["peers", "account", "scaling", "program", "training", "accuracy", "live", "cluster"]


def main():
    options = parse()
    os.makedirs(WORK, exist_ok=True)
    if {"peers", "training", "accuracy", "live"} & set(options.sections) and sys.prefix != workers.VENV:
        # numpy is there.
        workers.make_venv()
        os.execv(workers.PYTHON, [workers.PYTHON, os.path.abspath(__file__), *sys.argv[1:]])
    needed = {"peers": ["update", "machine"], "account": ["update", "machine"], "scaling": ["update", "machine"],
              "program": ["update"], "training": ["training"], "live": ["live"], "cluster": [], "accuracy": []}
    benches = sorted({name for section in options.sections for name in needed[section]})
    benches = workers.build(benches) if benches else {}
    import account
    import accuracy
    import live
    measure = {"peers": peers, "account": account.measure, "scaling": scaling, "program": program, "training": training,
               "accuracy": accuracy.measure, "live": live.measure, "cluster": cluster.measure}
    for name in options.sections:
        facts = options.facts = surroundings()

        def keep(section):
            """Writes what is known so far: a run that is cut short leaves what it has measured."""
            facts["load_after"] = os.getloadavg()[0]
            if not options.dry:
                report.record(name, facts, section)

        section = measure[name](options, benches, keep)
        keep(section)
        print(report.section(name, facts, section))


def parse():
    words = lambda text: text.split(",")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], default=SECTIONS, metavar="SECTION")
    parser.add_argument("--workloads", type=words, help="[default: a,b,b_l,c,d]; also a number of edges")
    parser.add_argument("--peers", type=words, help=", ".join([*OURS, *PEERS]))
    parser.add_argument("--outputs", type=words, help="tanh,linear: the output of h")
    parser.add_argument("--threads", type=words, help="[default: 1,2]")
    parser.add_argument("--rounds", type=int, help="turns of each program [default: 5]")
    parser.add_argument("--seconds", type=float, help="seconds per turn [default: 2]")
    parser.add_argument("--sets", type=words, help="of the section accuracy [default: NCI1,MUTAG,PROTEINS,IMDB-BINARY]")
    parser.add_argument("--programs", type=words, default=["ours", "rings", "gin", "ours", "gcn"],
                        help="of the section accuracy, in this order [default: ours,rings,gin,ours,gcn]")
    parser.add_argument("--data", help="a folder that contains the folders MUTAG, NCI1, IMDB-BINARY, PROTEINS and cora and the files coauthor-physics.npz and amazon-computer.npz, at any depth")
    parser.add_argument("--only", type=words, help="parts of the section live; the others stay as they are in RESULTS.md")
    parser.add_argument("--large", action="store_true", help="cluster: also train on 10⁸ pairs of neighbours, which takes up to 20 GB")
    parser.add_argument("--quick", action="store_true", help="a,b with one thread, tanh and few rounds")
    parser.add_argument("--dry", action="store_true", help="do not write RESULTS.md")
    options = parser.parse_args()
    quick = options.quick
    options.cluster_workloads = options.workloads or (["c"] if quick else ["c", "d"])
    options.workloads = options.workloads or (["a", "b"] if quick else ["a", "b", "b_l", "c", "d"])
    options.outputs = options.outputs or (["tanh"] if quick else ["tanh", "linear"])
    cores = len(os.sched_getaffinity(0))
    threads = options.threads or (["1"] if quick else ["1", "2"])
    options.threads = [count for count in map(int, threads) if count <= cores] or [1]
    options.rounds = options.rounds or (2 if quick else 5)
    options.seconds = options.seconds or (1.0 if quick else 2.0)
    options.peers = options.peers or (["ours", "jax", "torch-compiled", "torch-authors"] if quick else [*OURS, *PEERS])
    unknown = [name for name in options.peers if name not in {**OURS, **PEERS}]
    if unknown:
        parser.error(f"there is no peer {unknown[0]}: choose from {', '.join([*OURS, *PEERS])}")
    if "ours" not in options.peers:
        options.peers = ["ours", *options.peers]
    return options


def surroundings():
    """When, where and what is measured."""
    text = lambda *command: subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    processor = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    changed = text("git", "status", "--porcelain", "--untracked-files=no", "--", "crates", "Cargo.lock", "Cargo.toml")
    return {
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "processor": processor[0] if processor else "unknown",
        "cores": os.cpu_count(),
        "commit": text("git", "rev-parse", "--short=10", "HEAD") + (" and changes" if changed else ""),
        "rustc": text("rustc", "--version"),
        "load_before": os.getloadavg()[0],
    }


# ---- peers -------------------------------------------------------------------------------------------------------


def peers(options, benches, keep):
    """Ours and the others, by turns."""
    missing = {}
    for name in options.peers:
        if name in PEERS:
            problem = workers.install(PEERS[name][3])
            if problem:
                missing[name] = f"cannot be installed: {problem}"
    machine = {threads: run_json([benches["machine"], "--json", "--threads", str(threads)])
               for threads in options.threads}
    before = report.stored("peers")
    tables, versions = before.get("tables", []), dict(before.get("versions", {}))
    section = {"machine": machine, "tables": tables, "versions": versions, "threads": options.threads,
               "rounds": options.rounds, "seconds": options.seconds, "missing": missing}
    for workload in options.workloads:
        folder = arrays(workload, benches)
        point = draw_point(folder)
        for output in options.outputs:
            rows = {}
            for threads in options.threads:
                measured = turns(options, benches, missing, folder, point, output, threads, versions)
                for name, row in measured.items():
                    rows.setdefault(name, {})[threads] = row
            with open(os.path.join(folder, "meta.json")) as file:
                table = {"workload": workload, "output": output, "meta": json.load(file), "rows": rows,
                         "date": options.facts["date"], "commit": options.facts["commit"]}
            # What is not asked for is kept from earlier runs.
            tables[:] = [other for other in tables if (other["workload"], other["output"]) != (workload, output)] + [table]
            keep(section)
    return section


def turns(options, benches, missing, folder, point, output, threads, versions):
    """Starts everybody, lets all compute the same gradient, and then gives each its turn, again and again."""
    rows, alive = {}, []
    names = [name for name in options.peers if name not in missing and (name != "ours-avx2" or workers.has_avx512())]
    if os.path.basename(folder) == "d":
        # It tells what two threads are worth; others would need too much memory.
        names = ["ours"]
    for name in names:
        problem = too_large(name, folder, [worker.name for worker in alive])
        if problem:
            rows[name] = {"problem": problem}
            continue
        talk(f"{os.path.basename(folder)}, {output}, {threads} threads: starting {name}")
        try:
            worker = Worker.start(name, benches, folder, output, threads, point)
        except Failure as failure:
            rows[name] = {"problem": f"failed: {failure}"}
            continue
        versions[name] = worker.ready["version"]
        alive.append(worker)
    try:
        agreement = agree([worker for worker in alive if worker.agrees], folder, point)
        workers.take_turns(alive, options.rounds, options.seconds, lambda text: talk(f"{os.path.basename(folder)}: {text}"))
    finally:
        for worker in alive:
            worker.end()
    ours = next(worker for worker in alive if worker.name == "ours")
    for worker in alive:
        ratios = [theirs / own for theirs, own in zip(worker.medians, ours.medians)]
        rows[worker.name] = {
            "ms": statistics.median(worker.medians), "least": min(worker.medians), "most": max(worker.medians),
            "best": worker.least, "ratio": statistics.median(ratios), "ratio_least": min(ratios), "ratio_most": max(ratios),
            "peak_mb": worker.peak, "others": statistics.median(worker.others),
            "error": agreement.get(worker.name),
            "work": {key: ours.ready[key] for key in ("flops", "tanhs", "bytes")},
        }
    return rows


def too_large(name, folder, started):
    """Whether it would not fit beside those that are already there: a guess on the safe side."""
    with open(os.path.join(folder, "meta.json")) as file:
        meta = json.load(file)

    def gigabytes(name):
        per_arc = {"torch-authors": 6 * (2 * meta["state"] + 2 * meta["m"]), "torch-unrolled": 40 * meta["hidden"],
                   "gin": 12 * meta["state"]}.get(name, 0 if name in OURS else 10 * meta["hidden"])
        return 4e-9 * (meta["E"] * per_arc + meta["V"] * (meta["m"] + 20 * meta["state"]))

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    needed = gigabytes(name) + sum(map(gigabytes, started))
    if name not in OURS and needed > 0.8 * memory:
        return f"not run: all together would need about {needed:.0f} GB"
    return None


def agree(alive, folder, point):
    """Everybody's value and gradient at the same point: the largest differences to ours, relative to the largest
    entry of each array of weights, of the states and of the multipliers. Ends everything when they are too large."""
    import numpy as np
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "peers"))
    import common
    workload = common.Workload(folder)
    # G = abs-ε has kinks: where a residual lies on one, single precision may fall to either side. Among few residuals
    # none does; among millions some do, and only the smooth G can be compared entry by entry.
    constraints = ["squared"] + (["abs-eps"] if workload.nodes * workload.state < 1e5 else [])
    worst = {}
    for constraint in constraints:
        found = {}
        for worker in alive:
            to = os.path.join(WORK, "gradients", worker.name)
            value = worker.order("evaluate", constraint, point, to)["loss"]
            found[worker.name] = (value, common.Point(workload, to))
        value, ours = found["ours"]
        for name, (theirs, gradient) in found.items():
            errors = {"value": abs(theirs - value) / abs(value)}
            pairs = [(key, gradient.weights[key], ours.weights[key]) for key in ours.weights]
            pairs += [("states", gradient.states, ours.states), ("multipliers", gradient.multipliers, ours.multipliers)]
            for key, theirs_, own in pairs:
                errors[key] = float(np.abs(theirs_ - own).max() / max(np.abs(theirs_).max(), 1e-30))
            key = max(errors, key=errors.get)
            if not errors[key] < 1e-4:
                sys.exit(f"{name} and ours differ by {errors[key]:.1e} in {key} at the same point with G = {constraint}: "
                         "nothing is measured")
            worst[name] = max(worst.get(name, 0.0), errors[key])
    return worst


def arrays(workload, benches):
    """The folder of the raw arrays of a workload."""
    data = os.path.join(WORK, "data")
    folder = os.path.join(data, workload)
    # Written anew each time: a generator that has changed must not leave old arrays behind.
    talk(f"{workload}: writing its arrays")
    subprocess.run([benches["update"], workload, "--write", data], check=True)
    return folder


def draw_point(folder):
    """Weights, states and multipliers to start from, drawn from a fixed seed."""
    import numpy as np
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "peers"))
    import common
    workload, point = common.Workload(folder), os.path.join(folder, "point")
    draw = np.random.default_rng(7)
    weights = {}
    for name, shape in workload.shapes().items():
        scale = (2 / sum(shape)) ** 0.5 if len(shape) == 2 else 0.1
        weights[name] = draw.standard_normal(shape) * scale
    states = 0.5 * draw.standard_normal((workload.nodes, workload.state), dtype=np.float32)
    common.write_gradient(workload, point, weights, states, draw.random((workload.nodes, 1)))
    return point


# ---- scaling -----------------------------------------------------------------------------------------------------


def scaling(options, benches, _):
    """Time per update against the number of edges, the diameter, and the steps of an unrolled GNN."""
    machine = run_json([benches["machine"], "--json"])

    def group(*cases):
        """Rows of workloads and solvers that have their turns together."""
        alive, rows = [], []
        try:
            for workload, output, solver in cases:
                talk(f"scaling: starting {workload}, {output}, {solver}")
                alive.append(Worker.ours(benches, workload, output, 1, "--solver", solver))
            workers.take_turns(alive, options.rounds, options.seconds / 2, lambda text: talk(f"scaling: {text}"))
        finally:
            for worker in alive:
                worker.end()
        for (workload, output, solver), worker in zip(cases, alive):
            rows.append({**worker.ready, "workload": workload, "output": output, "solver": solver,
                         "ms": statistics.median(worker.medians), "least": worker.least, "most": max(worker.medians),
                         "peak_mb": worker.peak, "others": statistics.median(worker.others)})
        return rows

    sizes = [10 ** power for power in range(3, 6 if options.quick else 8)]
    nodes = 20_000 if options.quick else 200_000
    return {
        "machine": machine,
        "edges": {output: group(*((str(edges), output, "bdmm") for edges in sizes)) for output in options.outputs},
        "diameter": group(*((f"{kind}:{nodes}", "linear", "bdmm") for kind in ("chain", "random"))),
        "unrolled": group(*(("100000", "linear", solver) for solver in
                            ["bdmm", "one-shot"] + [f"unrolled-{steps}" for steps in (1, 2, 4, 8, 16, 32)])),
    }


# ---- program -----------------------------------------------------------------------------------------------------


def program(options, benches, _):
    """The release program on small data, as a user meets it."""
    lpgnn = workers.build_program()
    rows = []

    def first_epoch(what, aim, *arguments):
        """From the start of the process to the report of its first epoch."""
        times = []
        for _ in range(5 if options.quick else 20):
            begin = time.perf_counter()
            process = subprocess.Popen([lpgnn, "train", *arguments, "--epochs", "2", "--eval-every", "1000", "--json", "--quiet"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            line = process.stdout.readline()
            times.append(time.perf_counter() - begin)
            process.communicate()
            if not line.startswith("{"):
                sys.exit(f"lpgnn train {' '.join(arguments)} did not report an epoch")
        rows.append({"what": what, "aim": aim, "seconds": statistics.median(times), "least": min(times), "most": max(times)})

    talk("program: first epoch")
    first_epoch("generated data, start to first epoch", "0.05", "--threads", "1")
    updates = []
    for name in ("MUTAG", "NCI1", "IMDB-BINARY", "cora"):
        path = find(options.data, name)
        if not path:
            rows.append({"what": name, "problem": "no data: give --data"})
            continue
        if name == "MUTAG":
            first_epoch("MUTAG, start to first epoch", "0.05", path)
        if name == "NCI1":
            first_epoch("NCI1, read and ready: start to first epoch of a model of one unit", None,
                        path, "--layers", "1", "--state-dim", "1", "--hidden-dims", "1")
        talk(f"program: updates on {name}")
        for threads in options.threads:
            updates.append(run_json([benches["update"], "--data", path, "--json", "--bound", "--seconds",
                                     str(options.seconds), "--threads", str(threads)]))
    return {"rows": rows, "updates": updates}


# ---- training ----------------------------------------------------------------------------------------------------


def training(options, benches, keep):
    """Epochs with their evaluations and predictions on NCI1, ours and GIN by turns; ten folds of MUTAG; wide features."""
    section = {"rows": [], "folds": [], "python": None, "wide": []}
    path = find(options.data, "NCI1")
    problem = workers.install(["torch", "torch-geometric"]) if path else "no data: give --data"
    epochs = 3 if options.quick else 5
    for threads in options.threads if path else []:
        section["rows"].append(nci1(options, benches, path, threads, epochs, problem))
        keep(section)
    mutag = find(options.data, "MUTAG")
    if path:
        section["python"] = python_latency(options, path)
        keep(section)
    if mutag:
        section["folds"] = ten_folds(options, workers.build_program(), mutag)
        keep(section)
    section["wide"] = wide(options, benches)
    section["problem"] = problem
    return section


def nci1(options, benches, path, threads, epochs, problem):
    """Ours and GIN on NCI1, by turns."""
    alive = {"ours": Worker.training(benches, threads, path)}
    try:
        if not problem:
            try:
                alive["gin"] = Worker.gin_training(path, threads)
            except Failure as failure:
                problem = str(failure)
        times = {"plain": [], **{name: [] for name in alive}}
        rates = {name: [] for name in alive}
        for turn in range(options.rounds):
            talk(f"training: NCI1, {threads} threads, round {turn + 1} of {options.rounds}")
            times["plain"] += alive["ours"].order("epochs", epochs)["ms"]
            for name, worker in alive.items():
                times[name] += worker.order("evaluated", epochs)["ms"]
                rates[name].append(worker.order("predict", options.seconds)["graphs_per_second"])
        latencies = alive["ours"].order("latency", 2000 if options.quick else 20000)["ms"]
    finally:
        for worker in alive.values():
            worker.end()
    spread = lambda values: {"ms": statistics.median(values), "least": min(values), "most": max(values)}
    return {"threads": threads, **{name: spread(values) for name, values in times.items()},
            "rates": {name: {"median": statistics.median(values), "most": max(values)} for name, values in rates.items()},
            "latency": {"p50": latencies[len(latencies) // 2], "p99": latencies[len(latencies) * 99 // 100]}}


def python_latency(options, path):
    """Predictions of one graph each, from Python."""
    folder = workers.build_python()
    command = [workers.PYTHON, os.path.join(workers.HERE, "latency.py"), path, "500" if options.quick else "5000"]
    talk("training: latency from Python")
    answer = subprocess.run(command, env={**os.environ, "PYTHONPATH": folder}, stdout=subprocess.PIPE, text=True)
    return json.loads(answer.stdout) if answer.returncode == 0 else None


# Ten folds of MUTAG with one layer: by its defaults, and as small as in the paper.
FOLDS = {"the defaults": [],
         "state 10, hidden 20, one inner step": ["--state-dim", "10", "--hidden-dims", "20", "--set", "training.solver.inner-steps=1"]}


def ten_folds(options, lpgnn, path):
    """MUTAG, ten folds of one layer, from the start of the process; both by turns."""
    epochs, times = "100" if options.quick else "1000", {name: [] for name in FOLDS}
    for turn in range(2 if options.quick else 3):
        for name, settings in FOLDS.items():
            talk(f"training: MUTAG, ten folds of {epochs} epochs, {name}")
            out = os.path.join(WORK, f"folds-{os.getpid()}-{turn}-{len(settings)}-{int(time.time())}")
            begin = time.perf_counter()
            subprocess.run([lpgnn, "crossval", path, "--folds", "10", "--epochs", epochs, "--layers", "1", *settings, "--out", out,
                            "--quiet", "--json"], check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - begin)
    return [{"what": name, "epochs": int(epochs), "seconds": statistics.median(found), "least": min(found), "most": max(found)}
            for name, found in times.items()]


def wide(options, benches):
    """Epochs of graphs with few and with many categories of nodes, by turns."""
    rows = []
    for threads in options.threads:
        alive = []
        try:
            for categories in (40, 41_000):
                talk(f"training: starting {categories} categories, {threads} threads")
                worker = Worker.training(benches, threads, "--categories", str(categories))
                alive.append((categories, worker, []))
            for turn in range(min(options.rounds, 3)):
                for categories, worker, times in alive:
                    times += worker.order("epochs", 2)["ms"]
        finally:
            for _, worker, _ in alive:
                worker.end()
        for categories, _, times in alive:
            rows.append({"threads": threads, "categories": categories, "ms": statistics.median(times),
                         "least": min(times), "most": max(times)})
    return rows


if __name__ == "__main__":
    main()
