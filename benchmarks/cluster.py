"""Several processes: ranks against threads, what they send each other, their memory, and a cost model of all this."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from glob import glob

import cost
from workers import ROOT, TARGET, WORK

# Name, processes, threads of each, and whether rows are waited for as soon as they are asked for.
CONFIGURATIONS = [("one thread", 1, 1, False), ("two threads", 1, 2, False), ("two ranks", 2, 1, False),
                  ("two ranks that wait", 2, 1, True)]
# Other sizes of the model, state and hidden.
SIZES = [(64, 64), (32, 64), (16, 16)]
PARTS = 64


def measure(options, _, keep):
    """By turns, on graphs in parts that METIS has cut."""
    if not shutil.which("mpirun"):
        return {"problem": "not measured: there is no mpirun"}
    bench, lpgnn = build()
    workloads = options.cluster_workloads
    section = {"ping": run(bench, 2, "--ping", "--seconds", "5")["messages"], "rows": [], "sizes": [], "memory": []}
    for name in workloads:
        folder = parts(bench, name)
        times = {what: [] for what, *_ in CONFIGURATIONS}
        last = {}
        for turn in range(1 if name == "d" else options.rounds):
            for what, ranks, threads, waits in CONFIGURATIONS:
                talk(f"{name}, round {turn + 1}: {what}")
                extra = ["--wait"] if waits else []
                found = run(bench, ranks, folder, "--threads", str(threads), "--seconds", str(options.seconds), *extra)
                times[what].append(statistics.median(found["ms"]))
                last[what] = found
        for what, *_ in CONFIGURATIONS:
            section["rows"].append({**last[what], "workload": name, "what": what, "ms": statistics.median(times[what]),
                                    "least": min(times[what]), "most": max(times[what])})
        keep(section)
    for state, hidden in SIZES:
        for ranks in (1, 2):
            talk(f"c, state {state}, hidden {hidden}, {ranks} ranks")
            found = run(bench, ranks, parts(bench, "c"), "--seconds", str(options.seconds), "--state", str(state), "--hidden", str(hidden))
            section["sizes"].append({**found, "state": state, "hidden": hidden, "ms": statistics.median(found["ms"])})
    keep(section)
    for ranks in (1, 4):
        name = workloads[-1]
        talk(f"{name}, {ranks} ranks: memory of training and evaluation")
        section["memory"].append({"workload": name, "ranks": ranks, **peaks(train(lpgnn, parts(bench, name), ranks))})
        keep(section)
    if options.large:
        section["large"] = large(lpgnn, len(os.sched_getaffinity(0)))
    return section


# Nodes, and neighbours of each: 10⁸ pairs of neighbours.
LARGE = 5_000_000, 20


def large(lpgnn, threads):
    """A graph that is written node by node, and an epoch of training on it, which is one update and its evaluation."""
    nodes, degree = LARGE
    folder = os.path.join(WORK, "cluster", "large")
    talk("large: writing it")
    written = peaks([lpgnn, "data", "generate", "large", "--nodes", str(nodes), "--degree", str(degree), "--parts", "128",
                     "--out", folder, "--force", "--quiet"])
    talk("large: training")
    return {"nodes": nodes, "degree": degree, "threads": threads, "written": written, "trained": peaks(train(lpgnn, folder, 1, threads))}


def build():
    """The benchmark and the program, with MPI."""
    command = ["cargo", "build", "--release", "--locked", "-p", "lpgnn-cli", "-p", "lpgnn", "--features",
               "lpgnn-cli/mpi,lpgnn/mpi,lpgnn/fetch", "--bin", "lpgnn", "--bench", "cluster", "--message-format", "json"]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if answer.returncode:
        sys.exit("the benchmark does not build with MPI: it needs an MPI library and libclang")
    artefacts = (json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{"))
    found = {artefact["target"]["name"]: artefact["executable"] for artefact in artefacts if artefact.get("executable")}
    return found["cluster"], os.path.join(TARGET, "release", "lpgnn")


def mpirun(ranks):
    """The launcher, of Open MPI or of MPICH; none for one process."""
    if ranks == 1:
        return []
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    rooted = ["--allow-run-as-root"] if os.getuid() == 0 else []
    return ["mpirun", *(rooted + ["--oversubscribe"] if "Open MPI" in version else []), "-n", str(ranks)]


def run(bench, ranks, *arguments):
    answer = subprocess.run([*mpirun(ranks), bench, *arguments], stdout=subprocess.PIPE, text=True)
    if answer.returncode:
        sys.exit(f"{' '.join(arguments)} failed on {ranks} ranks")
    return json.loads(answer.stdout)


def parts(bench, name):
    folder = os.path.join(WORK, "cluster", name)
    if not os.path.exists(os.path.join(folder, "parts.json")):
        talk(f"{name}: cutting it into parts")
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        subprocess.run([bench, "--write", name, "--parts", str(PARTS), folder], check=True)
    return folder


def train(lpgnn, folder, ranks, threads=1):
    """The command for an epoch and its evaluation."""
    out = os.path.join(WORK, "cluster", f"run-{ranks}")
    return [*mpirun(ranks), lpgnn, "train", folder, "--epochs", "1", "--threads", str(threads), "--no-baseline", "--force", "--out", out, "--quiet"]


def peaks(command):
    """The most memory of any process of a job, in megabytes; the part of it that is no file; and its seconds."""
    begin = time.perf_counter()
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak, own = 0, 0
    while job.poll() is None:
        for process in family(job.pid):
            status = status_of(process)
            if status.get("Name") == "lpgnn":
                peak = max(peak, megabytes(status, "VmHWM"))
                own = max(own, megabytes(status, "RssAnon"))
        time.sleep(0.02)
    if job.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return {"peak_mb": peak, "own_mb": own, "seconds": time.perf_counter() - begin}


def family(process):
    """A process and all that it has started."""
    children = []
    for path in glob(f"/proc/{process}/task/*/children"):
        try:
            with open(path) as file:
                children += map(int, file.read().split())
        except OSError:
            pass
    return [process] + [one for child in children for one in family(child)]


def status_of(process):
    try:
        with open(f"/proc/{process}/status") as file:
            return {key: value.strip() for key, value in (line.split(":", 1) for line in file)}
    except OSError:
        return {}


def megabytes(status, key):
    return int(status.get(key, "0 kB").split()[0]) / 1024


def talk(text):
    print(f"cluster: {text}", file=sys.stderr, flush=True)


# ---- report ------------------------------------------------------------------------------------------------------


def report(section, table, number):
    """The section as text; `table` and `number` are those of the report."""
    if "problem" in section:
        return section["problem"] + "\n"
    # The model needs all sizes, which are measured last.
    last = model(section, table, number) if len(section["sizes"]) == 2 * len(SIZES) else ""
    return "\n".join([speed(section, table, number), bytes_sent(section, table, number), memory(section, table, number), last])


def speed(section, table, number):
    rows, found = [], []
    for name in dict.fromkeys(row["workload"] for row in section["rows"]):
        of = {row["what"]: row for row in section["rows"] if row["workload"] == name}
        two = of["two threads"]["ms"]
        found.append((name, two, of["two ranks"]["ms"], max(of["two ranks"]["of_ranks"]["row_share"])))
        for what, row in of.items():
            shares = row["of_ranks"]
            share = [f"{100 * max(shares[key]):.1f} %" if row["ranks"] > 1 else "" for key in ("row_share", "other_share")]
            rows.append([f"{name}, {what}", f"{number(row['ms'])} ({number(row['least'])}–{number(row['most'])})", f"{two / row['ms']:.2f}", *share])
    return ("Milliseconds per update, `gnn-sum`, state and hidden 32, by turns (least–most of the rounds), and speed as a multiple of that of two threads; of the "
            "rank that waits most, the share of time in exchanges of rows and in sums and gathers. Two ranks that wait do not work on nodes without ghosts meanwhile.\n\n"
            + table(["", "ms", "× two threads", "rows", "sums and gathers"], rows) + "\n" + verdict(found) + "\n")


def verdict(found):
    """Whether ranks are as fast as they shall be, and what takes the rest: [(workload, two threads, two ranks, its rows)]."""
    parts = []
    for name, threads, ranks, rows in found:
        missing = f" (without the {100 * rows:.0f} % of its time in exchanges of rows {threads / ranks / (1 - rows):.2f})"
        parts.append(f"{name} {threads / ranks:.2f}" + ("" if threads / ranks >= 0.9 else missing))
    return "The mark of two ranks is 0.9 of two threads: " + "; ".join(parts) + "."


def bytes_sent(section, table, number):
    rows = []
    for row in section["rows"]:
        if row["what"] != "two ranks":
            continue
        of = row["of_ranks"]
        for rank in range(row["ranks"]):
            least = 8 * 32 * of["ghosts"][rank]
            rows.append([f"{row['workload']}, rank {rank}", f"{of['nodes'][rank]:,.0f}", f"{of['ghosts'][rank]:,.0f}", f"{of['interior'][rank]:,.0f}",
                         f"{of['row_bytes'][rank] / 1e6:.2f}", f"{least / 1e6:.2f}", f"{of['row_bytes'][rank] / max(least, 1):.2f}",
                         f"{of['other_bytes'][rank] / 1e6:.2f}", f"{of['row_messages'][rank] + of['other_messages'][rank]:.0f}"])
    return ("Received per update, in MB. The lower bound of a partition is the states of its ghosts once, and their gradients once.\n\n"
            + table(["", "nodes", "ghosts", "nodes without ghosts", "rows", "lower bound", "×", "sums and gathers", "messages"], rows))


def memory(section, table, number):
    if not section["memory"]:
        return ""
    alone = section["memory"][0]
    rows = [[f"{row['workload']}, {row['ranks']} ranks", f"{row['peak_mb']:,.0f}", f"{row['peak_mb'] / alone['peak_mb']:.2f}", f"{row['own_mb']:,.0f}",
             f"{row['own_mb'] / alone['own_mb']:.2f}"] for row in section["memory"]]
    text = ""
    if "large" in section:
        of = section["large"]
        text = (f"\nA graph of {of['nodes']:,} nodes with {of['degree']} neighbours each is written in {number(of['written']['seconds'])} s with {of['written']['peak_mb']:,.0f} MB, and an epoch, "
                f"with its evaluations, takes one process of {of['threads']} threads {number(of['trained']['seconds'])} s and {of['trained']['peak_mb']:,.0f} MB at its peak.\n")
    return ("Memory of the rank that has most, in MB, of an epoch of training by the defaults with all evaluations: at its peak, and without files that are mapped.\n\n"
            + table(["", "peak", "of one", "own", "of one"], rows) + "\nThe mark of one of four is 0.35 of one. In a random graph, a rank has the nodes of all others as ghosts: two of its tables have rows of all nodes.\n" + text)


def model(section, table, number):
    """Fitted to updates of one process, checked with those of two, and applied to what was not measured."""
    machine, fitted, checked = fitted_machine(section)
    rows = []
    for title, own, shape, measured in [*fitted, *checked]:
        guess = 1e3 * cost.seconds(machine, own, shape)
        how = "fitted" if any(title == other[0] for other in fitted) else "checked"
        rows.append([title, how, number(measured), number(guess), f"{100 * (guess / measured - 1):+.0f} %"])
    off = lambda cases: max(abs(cost.seconds(machine, own, shape) * 1e3 / t - 1) for _, own, shape, t in cases)
    worst = off(checked)
    text = ("### What it would cost elsewhere\n\n"
            "`cost.py` has the equation. P = " + number(machine.operations / 1e9) + " G operations/s, W = " + number(machine.gathered / 1e6)
            + " M rows/s and T = " + number(machine.values / 1e6) + f" M values of pairs/s of one thread. Fitted: the {len(fitted)} measurements of one process; checked: the "
            + f"{len(checked)} of two, none of which was fitted to. e = {machine.efficiency:.2f} of two threads on "
            + section["rows"][-1]["workload"] + "; β = " + number(machine.bytes / 1e9) + " GB/s and α = " + number(machine.latency * 1e6)
            + " µs of messages between two processes.\n\n"
            + table(["", "", "measured, ms", "by the model, ms", "difference"], rows)
            + f"\nThe largest difference is {100 * off(fitted):.0f} % with one process and {100 * worst:.0f} % with two"
            + (" (the mark is 20 %).\n\n" if worst <= 0.2 else ": more than the mark of 20 %.\n\n"))
    return text + forecast(section, machine, table, number)


def fitted_machine(section):
    """The machine, and what it was fitted to and is checked with: (title, own, shape, milliseconds)."""
    fitted, checked = [], []
    for row in section["rows"]:
        if row["threads"] == 1 and "wait" not in row["what"]:
            case = (f"{row['workload']}, {row['what']}", owned(row), cost.Shape(), row["ms"])
            (fitted if row["ranks"] == 1 else checked).append(case)
    for row in section["sizes"]:
        case = (f"c, state {row['state']}, hidden {row['hidden']}, {row['ranks']} rank{'s' if row['ranks'] > 1 else ''}", owned(row),
                cost.Shape(row["state"], row["hidden"]), row["ms"])
        (fitted if row["ranks"] == 1 else checked).append(case)
    machine = cost.fit([(own, shape, ms / 1e3) for _, own, shape, ms in fitted])
    machine.bytes, machine.latency = cost.fit_messages([(m["bytes"], m["seconds"]) for m in section["ping"]])
    one, two = ([row["ms"] for row in section["rows"] if row["what"] == what][-1] for what in ("one thread", "two threads"))
    machine.efficiency = one / two / 2
    return machine, fitted, checked


def owned(row):
    """What the rank with the most pairs has."""
    of = row["of_ranks"]
    rank = max(range(row["ranks"]), key=lambda rank: of["pairs"][rank])
    return cost.Owned(of["nodes"][rank], of["pairs"][rank], of["ghosts"][rank], row["ranks"] - 1, row["ranks"])


CORES = 32


def forecast(section, machine, table, number):
    rows = []
    for ranks in (8, 64):
        for gigabits in (10, 100):
            node = cost.of_nodes(machine, CORES, gigabits)
            cells = [f"{ranks} nodes, {gigabits} Gb/s"]
            for cut in (0.1, 1 - 1 / ranks):
                own, shape = cost.share_of(1e8, 1e9, ranks, cut), cost.Shape()
                cells += [number(cost.computing(node, own, shape)), number(cost.exchanging(node, own, shape)), number(cost.seconds(node, own, shape))]
            rows.append(cells)
    return (f"Seconds of an update of 10⁸ nodes and 10⁹ pairs of neighbours (state, hidden 32, 64 features) on nodes of {CORES} cores, each like the one measured here and as "
            f"efficient as two of them are ({machine.efficiency:.2f}); left, where a tenth of the pairs is cut, as in graphs with communities, right, in a random graph. Neither more memory channels "
            "nor fewer per core are considered, and nothing is hidden: this is an extrapolation, not a measurement.\n\n"
            + table(["", "computing", "exchanging", "update", "computing, random", "exchanging", "update"], rows)
            + "\nPublished, of other models on other machines, so that only orders of magnitude can be compared: SAR trains a GNN of three layers on ogbn-papers100M (1.1 · 10⁸ nodes, 3.2 · 10⁹ edges) in "
            "3.8 s per epoch on 128 machines of two sockets; DistGNN reports 97 × the speed of one socket on 128 sockets; PipeGCN, with stale boundary rows, 1.7 to 28.5 × "
            "full-graph systems that wait. An epoch of theirs exchanges rows in every layer of depth; an update here does so three times whatever the depth that information travels.\n")
