"""Writes RESULTS.md from the measurements."""

import json
import math
import os

import workers

HERE = os.path.dirname(os.path.abspath(__file__))
STORE = os.path.join(HERE, "results.json")
RESULTS = os.path.join(HERE, "RESULTS.md")
TITLES = {"peers": "Comparison", "scaling": "Scaling", "program": "Small data", "training": "Training, end to end"}
HEAD = """# Results

Written by `make bench-peers`; [README.md](README.md) explains how things are measured and what the terms mean, and
`results.json` has the same figures unrounded. Every section states its date, its commit and the load of the machine: figures
from a busy machine compare programs that took turns, and say little about what each could do alone.
"""


def record(name, facts, section):
    """Replaces a section of the results."""
    results = {}
    if os.path.exists(STORE):
        with open(STORE) as file:
            results = json.load(file)
    results[name] = {"facts": facts, "section": section}
    with open(STORE, "w") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    # Numbers of threads are words in JSON: read what was written, so that both ways give the same text.
    with open(STORE) as file:
        results = json.load(file)
    parts = [HEAD] + [render(name, **results[name]) for name in TITLES if name in results]
    with open(RESULTS, "w") as file:
        file.write("\n".join(parts))


def section(name, facts, section):
    return render(name, json.loads(json.dumps(facts)), json.loads(json.dumps(section)))


def render(name, facts, section):
    body = {"peers": peers, "scaling": scaling, "program": program, "training": training}[name](section)
    return f"## {TITLES[name]}\n\n{where(facts)}\n\n{body}"


def where(facts):
    return (f"{facts['date']} UTC · {facts['processor']}, {facts['cores']} cores · commit {facts['commit']} · {facts['rustc']} · "
            f"load {facts['load_before']:.1f} before, {facts['load_after']:.1f} after")


def table(heads, rows):
    line = lambda cells: "| " + " | ".join(cells) + " |"
    return "\n".join([line(heads), line(["---"] + ["---:"] * (len(heads) - 1)), *map(line, rows)]) + "\n"


def number(x):
    """Three digits."""
    if x == 0 or not math.isfinite(x):
        return str(x)
    digits = max(0, 2 - math.floor(math.log10(abs(x))))
    return f"{x:.{digits}f}"


def span(row, key="", low="least", high="most"):
    return f"{number(row[key])} ({number(row[low])}–{number(row[high])})"


# ---- peers -------------------------------------------------------------------------------------------------------


def peers(section):
    threads = [str(count) for count in section["threads"]]
    machine = section["machine"]
    heads = ["", *(f"{count} threads" for count in threads)]
    limit = lambda title, key: [title, *(number(machine[count][key]) for count in threads)]
    parts = ["The machine at its best:\n", table(heads, [
        limit("triad, GB/s", "triad"), limit("multiply-adds, GFLOP/s", "peak"),
        limit("our product in cache, GFLOP/s", "product"), limit("our tanh in cache, G/s", "tanh")])]
    versions = ", ".join(f"{name} {version}" for name, version in section["versions"].items())
    parts.append(f"Versions: {versions}.\n")
    for name, problem in section["missing"].items():
        parts.append(f"{name}: {problem}.\n")
    parts.append(f"Milliseconds per update, median of {section['rounds']} rounds of {number(section['seconds'])} s (least–most "
                 "of the rounds' medians); multiple of our time, by round; peak memory of the process; background load in "
                 "processors.\n")
    for found in section["tables"]:
        parts.append(one_table(found, threads, machine))
    return "\n".join(parts)


def one_table(found, threads, machine):
    meta, graphs = found["meta"], found["meta"]["G"]
    title = (f"### {found['workload']}, h with {'tanh on its' if found['output'] == 'tanh' else 'linear'} output\n\n"
             f"{graphs:,} graph{'s' if graphs > 1 else ''}, {meta['V']:,} nodes, {meta['E']:,} edges, state {meta['state']}, "
             f"hidden {meta['hidden']}, {'graph' if meta['graph'] else 'node'} targets\n")
    heads = [""]
    for count in threads:
        heads += [f"{count} threads, ms", "× ours"]
    heads += ["peak MB", "background load", "gradient error"]
    rows = []
    bounds = ["bound (ours ÷ bound)"]
    for count in threads:
        ours = found["rows"]["ours"][count]
        bound = least(ours["work"], machine[count])
        bounds += [number(bound), f"{ours['ms'] / bound:.1f}"]
    names = {**workers.OURS, **workers.PEERS}
    for name, by_threads in found["rows"].items():
        cells = [names[name][0]]
        good = [row for row in by_threads.values() if "problem" not in row]
        for count in threads:
            row = by_threads.get(count, {"problem": "–"})
            if "problem" in row:
                cells += [row["problem"], ""]
            else:
                cells += [span(row, "ms"), "1" if name == "ours" else span(row, "ratio", "ratio_least", "ratio_most")]
        cells.append(str(max(row["peak_mb"] for row in good)) if good else "")
        cells.append(f"{max(row['others'] for row in good):.1f}" if good else "")
        errors = [row["error"] for row in good if row["error"] is not None]
        cells.append(f"{max(errors):.0e}" if errors and name != "ours" else "")
        rows.append(cells)
    return title + "\n" + table(heads, rows + [bounds + ["", "", ""]])


def least(work, machine):
    """As `Work::bound` in the benchmarks of the crate."""
    arithmetic = work["flops"] / machine["peak"] + work["tanhs"] / machine["tanh"]
    return max(arithmetic, work["bytes"] / machine["triad"]) / 1e6


# ---- scaling -----------------------------------------------------------------------------------------------------


def slope(rows):
    """The exponent of edges in the least time, by least squares on logarithms."""
    x, y = [math.log(row["edges"]) for row in rows], [math.log(row["least"]) for row in rows]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


def scaling(section):
    parts = ["One thread. The sizes of a table take turns; the minimum over all turns is the time that was disturbed least, "
             "and slopes and ratios are computed from it.\n"]
    for output, rows in section["edges"].items():
        parts.append(f"### Time and edges, h with {'tanh on its' if output == 'tanh' else 'linear'} output\n\n"
                     "One random graph with ten edges per node, state and hidden dimension 32.\n")
        before, lines = None, []
        for row in rows:
            bound = least(row, section["machine"])
            lines.append([f"{row['edges']:,}", number(row["ms"]), number(row["least"]), number(1e6 * row["least"] / row["edges"]),
                          f"{slope([before, row]):.2f}" if before else "", number(bound), f"{row['least'] / bound:.1f}",
                          str(row["peak_mb"]), f"{row['others']:.1f}"])
            before = row
        heads = ["edges", "median, ms", "least, ms", "ns per edge", "slope from the row above", "bound, ms", "× bound", "peak MB",
                 "background load"]
        parts.append(table(heads, lines))
        last = rows[-1]
        large = [row for row in rows if row["edges"] > 5e4]
        beyond = f", from 100,000 edges on {slope(large):.3f}" if len(large) > 1 else ""
        parts.append(f"Fitted over all sizes, time grows like edges to the power {slope(rows):.3f}{beyond}. Peak memory at "
                     f"{last['edges']:,} edges: {last['peak_mb']:,} MB, {1e6 * last['peak_mb'] / last['nodes']:,.0f} bytes per node.\n")
    chain, random = section["diameter"]
    simple = lambda row, first: [f"{row['edges']:,}", number(row["ms"]), number(row["least"]), f"{row['least'] / first['least']:.2f}",
                                 str(row["peak_mb"])]
    parts.append(f"### Diameter\n\nGraphs with {chain['nodes']:,} nodes and about as many undirected edges; the chain's diameter is "
                 f"{chain['nodes'] - 1:,}, and its nodes are numbered at random.\n")
    parts.append(table(["", "edges", "median, ms", "least, ms", "× chain", "peak MB"],
                       [["chain", *simple(chain, chain)], ["random", *simple(random, chain)]]))
    parts.append("### Comparison with unrolling\n\nOne random graph with 100,000 edges; the unrolled GNN is ours too, so only the method "
                 "differs.\n")
    parts.append(table(["", "edges", "median, ms", "least, ms", "× bdmm", "peak MB"],
                       [[row["solver"], *simple(row, section["unrolled"][0])] for row in section["unrolled"]]))
    return "\n".join(parts)


# ---- program -----------------------------------------------------------------------------------------------------


def program(section):
    lines = []
    for row in section["rows"]:
        if "problem" in row:
            lines.append([row["what"], row["problem"], ""])
        else:
            seconds = span(row, "seconds") if "least" in row else number(row["seconds"])
            lines.append([row["what"], seconds, row["aim"] or ""])
    parts = ["The release build, from the start of the process; median (minimum–maximum).\n",
             table(["", "seconds", "target: below"], lines)]
    if section["updates"]:
        parts.append("Updates on real data, state 50, hidden 50, linear output:\n")
        parts.append(table(["", "threads", "nodes", "edges", "ms per update", "bound, ms", "× bound"], [
            [row["workload"], str(row["threads"]), f"{row['nodes']:,}", f"{row['edges']:,}", span(row, "ms"),
             number(row["bound_ms"]), f"{row['ms'] / row['bound_ms']:.1f}"] for row in section["updates"]]))
    return "\n".join(parts)


# ---- training ----------------------------------------------------------------------------------------------------


def training(section):
    parts = ["NCI1 with our defaults (four layers) and GIN in PyTorch Geometric (five), batches of 128 graphs, an evaluation "
             "after every epoch; by turns. Ours evaluates the test split and 512 training graphs, GIN the test split. Times "
             "are medians (minimum–maximum) in ms; ratios compare least times.\n"]
    lines = []
    for row in section["rows"]:
        evaluation = row["ours"]["least"] / row["plain"]["least"] - 1
        gin = row.get("gin")
        rates = row["rates"]
        lines.append([
            str(row["threads"]), span(row["plain"], "ms"), span(row["ours"], "ms"), f"{evaluation:.2f}",
            span(gin, "ms") if gin else "", f"{row['ours']['least'] / gin['least']:.2f}" if gin else "",
            f"{rates['ours']['most']:,.0f}", f"{rates['gin']['most']:,.0f}" if gin else "",
            f"{rates['ours']['most'] / rates['gin']['most']:.1f}" if gin else "",
            f"{row['latency']['p50']:.3f}, {row['latency']['p99']:.3f}"])
    parts.append(table(["threads", "epoch", "epoch and evaluation", "evaluation / epoch", "GIN's epoch", "ours / GIN", "graphs/s",
                        "GIN's graphs/s", "× GIN", "one graph: p50, p99, ms"], lines))
    if section.get("problem"):
        parts.append(f"GIN was not measured: {section['problem']}.\n")
    if section["folds"]:
        folds = section["folds"]
        parts.append(f"MUTAG, ten folds of {folds['epochs']} epochs with one layer, from the start of the process: "
                     f"{span(folds, 'seconds')} s.\n")
    if section["wide"]:
        parts.append("An epoch of 19,500 small graphs, by the number of categories of their nodes:\n")
        first = {row["threads"]: row for row in section["wide"][::-1] if row["categories"] == 40}
        parts.append(table(["categories", "threads", "ms", "× 40 categories, least"], [
            [f"{row['categories']:,}", str(row["threads"]), span(row, "ms"), f"{row['least'] / first[row['threads']]['least']:.2f}"]
            for row in section["wide"]]))
    return "\n".join(parts)
