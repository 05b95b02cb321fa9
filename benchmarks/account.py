"""Where the time of an update goes: samples of the stack, each counted for the first part that it lies in."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from workers import Failure, WORK, Worker, find, run_json, talk

# What one of the functions on the stack belongs to; the first that fits. Products are counted as such wherever they are made.
PARTS = [
    ("products", r"numeric::(product|transposed)::"),
    ("pairs of neighbours", r"edge_network::(fused|kernels)::"),
    ("features, not dense", r"transition::features::"),
    ("residuals, loss, read-out", r"lagrangian::term|readout::"),
    ("partial gradients", r"parameters::"),
]
# What an update does beside the Lagrangian and its gradients.
STEPS = "Adam"
REST = "rest"
COLUMNS = [name for name, _ in PARTS] + [STEPS, REST]


def measure(options, benches, keep):
    """One thread: the samples of so many seconds, workload by workload."""
    if not shutil.which("perf"):
        return {"rows": [], "problem": "perf is not installed"}
    machine = run_json([benches["machine"], "--json"])
    section = {"rows": [], "machine": machine, "seconds": options.seconds, "problem": None}
    cases = [(name, output, [name]) for name in options.workloads if name != "d" for output in options.outputs]
    cora = find(options.data, "cora")
    for name, output, words in cases + ([("cora", "linear", ["--data", cora])] if cora else []):
        talk(f"account: {name}, {output}")
        command = [benches["update"], *words, "--serve", "--threads", "1"] + (["--tanh"] if output == "tanh" else [])
        worker = Worker("ours", "", False, command, 1)
        try:
            worker.run(min(1.0, options.seconds))
            shares, samples = profile(worker, options.seconds)
        finally:
            worker.end()
        work = {key: worker.ready[key] for key in ("flops", "tanhs", "bytes")}
        section["rows"].append({"workload": name, "output": output, "ms": worker.least, "work": work, "shares": shares,
                                "samples": samples})
        keep(section)
    return section


def profile(worker, seconds):
    """The share of every part in what a worker does in so many seconds, and the number of samples."""
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        file = os.path.join(folder, "perf.data")
        record = subprocess.Popen(["perf", "record", "-q", "-F", "499", "--call-graph", "dwarf,8192", "-p", str(worker.process.pid),
                                   "-o", file], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        worker.order("run", seconds)
        record.send_signal(signal.SIGINT)
        record.wait()
        text = subprocess.run(["perf", "script", "-i", file, "--no-inline", "-F", "ip,sym"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout
    counts = dict.fromkeys(COLUMNS, 0)
    for stack in text.strip().split("\n\n"):
        part = part_of(stack)
        if part:
            counts[part] += 1
    samples = sum(counts.values())
    if not samples:
        raise Failure("perf has no samples of updates")
    return {part: count / samples for part, count in counts.items()}, samples


def part_of(stack):
    """The part that a stack lies in; none if it is of no update."""
    if "saddle::" not in stack:
        return None
    for name, functions in PARTS:
        if re.search(functions, stack):
            return name
    return REST if "lagrangian::" in stack else STEPS


def report(section, table, number, least):
    if section["problem"]:
        return section["problem"] + "\n"
    percent = lambda share: f"{100 * share:.0f}" if share >= 0.005 else ""
    rows = []
    for row in section["rows"]:
        times_bound = row["ms"] / least(row["work"], section["machine"])
        rows.append([f"{row['workload']}, {row['output']}", number(row["ms"]), f"{times_bound:.1f}",
                     f"{times_bound * row['shares']['products']:.1f}", *(percent(row["shares"][part]) for part in COLUMNS)])
    text = (f"One thread. Samples of the stack in {number(section['seconds'])} s of updates, each counted for the first part that it lies "
            "in, in percent of the least time; a product is one wherever it is made. What the pairs of neighbours take includes their "
            "activations and derivatives: sums, tanh and slopes are one loop. The rest are buffers that are set to zero, copies and calls.\n")
    return text + "\n" + table(["", "least, ms", "× bound", "products / bound", *COLUMNS], rows)
