"""Writes RESULTS.md from the measurements."""

import json
import math
import os

import account
import cluster
import workers

HERE = os.path.dirname(os.path.abspath(__file__))
STORE = os.path.join(HERE, "results.json")
RESULTS = os.path.join(HERE, "RESULTS.md")
TITLES = {"peers": "Comparison", "account": "Where the time of an update goes", "scaling": "Scaling", "program": "Small data",
          "training": "Training, end to end", "accuracy": "Accuracy against seconds", "live": "Live graphs", "cluster": "Several processes"}
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
    # Other sections stay as they are, those that were written by hand among them.
    text = render(name, **results[name])
    before = HEAD
    if os.path.exists(RESULTS):
        with open(RESULTS) as file:
            before = file.read()
    head, *parts = before.split("\n## ")
    title = TITLES[name]
    texts = {part.split("\n")[0]: part.rstrip("\n") for part in parts}
    texts[title] = text.removeprefix("## ").rstrip("\n")
    titles = list(TITLES.values())
    texts = dict(sorted(texts.items(), key=lambda entry: titles.index(entry[0]) if entry[0] in titles else len(titles)))
    with open(RESULTS, "w") as file:
        file.write("\n\n## ".join([head.rstrip("\n"), *texts.values()]) + "\n")


def stored(name):
    """A section of an earlier run; empty if there is none."""
    if not os.path.exists(STORE):
        return {}
    with open(STORE) as file:
        return json.load(file).get(name, {}).get("section", {})


def section(name, facts, section):
    return render(name, json.loads(json.dumps(facts)), json.loads(json.dumps(section)))


def render(name, facts, section):
    body = {"peers": peers, "account": lambda section: account.report(section, table, number, least), "scaling": scaling,
            "program": program, "training": training, "accuracy": accuracy, "live": live,
            "cluster": lambda section: cluster.report(section, table, number)}[name](section)
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
    heads = ["", *(in_words(count) for count in threads)]
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
    parts.append(summary(section["tables"], threads, machine))
    if section.get("note"):
        parts.append(section["note"] + "\n")
    return "\n".join(parts)


def summary(tables, threads, machine):
    """What is asked of the ratios, workload by workload: against JAX, against the bound, and of two threads against one."""
    lines = []
    for found in tables:
        rows, most = found["rows"], threads[-1]
        ours, jax, narrow = (rows.get(name, {}).get(most, {}) for name in ("ours", "jax", "ours-avx2"))
        against = lambda row: f"{jax['ms'] / row['ms']:.2f}" if "ms" in jax and "ms" in row else ""
        bound = least(ours["work"], machine[most])
        both = rows["ours"][threads[0]]["ms"] / ours["ms"] if len(threads) > 1 else None
        lines.append([f"{found['workload']}, {found['output']}", against(ours), against(narrow), f"{ours.get('best', ours['least']) / bound:.1f}",
                      f"{narrow['ms'] / ours['ms']:.2f}" if "ms" in narrow else "", f"{both:.2f}" if both else ""])
    heads = ["", "JAX ÷ ours", "JAX ÷ ours with AVX2", "ours ÷ bound, least", "AVX2 ÷ AVX-512", f"one thread ÷ {threads[-1]}"]
    return f"### Ratios\n\n{threads[-1]} threads, medians but for the bound.\n\n" + table(heads, lines)


def in_words(threads):
    return "1 thread" if threads == "1" else f"{threads} threads"


def one_table(found, threads, machine):
    meta, graphs = found["meta"], found["meta"]["G"]
    title = (f"### {found['workload']}, h with {'tanh on its' if found['output'] == 'tanh' else 'linear'} output\n\n"
             f"{graphs:,} graph{'s' if graphs > 1 else ''}, {meta['V']:,} nodes, {meta['E']:,} edges, state {meta['state']}, "
             f"hidden {meta['hidden']}, {'graph' if meta['graph'] else 'node'} targets"
             + (f"; {found['date']} UTC, commit {found['commit']}" if "date" in found else "") + "\n")
    heads = [""]
    for count in threads:
        heads += [f"{in_words(count)}, ms", "× ours"]
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
    parts = ["NCI1 with our defaults, four layers, and GIN in PyTorch Geometric, four convolutions (five layers by its own count, which "
             "includes the input); batches of 128 graphs, an evaluation after every epoch; by turns. Ours evaluates the test split and 512 training graphs, GIN the test split. Times "
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
    if section.get("python"):
        python = section["python"]
        parts.append(f"One graph from Python, p50 and p99: {python['p50']:.3f} and {python['p99']:.3f} ms.\n")
    if section["folds"]:
        parts.append(f"MUTAG, ten folds of {section['folds'][0]['epochs']} epochs with one layer, from the start of the process: "
                     + "; ".join(f"{folds['what']} {span(folds, 'seconds')} s" for folds in section["folds"]) + ".\n")
    if section["wide"]:
        parts.append("An epoch of 19,500 small graphs, by the number of categories of their nodes:\n")
        first = {row["threads"]: row for row in section["wide"][::-1] if row["categories"] == 40}
        parts.append(table(["categories", "threads", "ms", "× 40 categories, least"], [
            [f"{row['categories']:,}", str(row["threads"]), span(row, "ms"), f"{row['least'] / first[row['threads']]['least']:.2f}"]
            for row in section["wide"]]))
    if section.get("note"):
        parts.append(section["note"] + "\n")
    return "\n".join(parts)


# ---- accuracy ----------------------------------------------------------------------------------------------------

PROGRAMS = {"ours": ("lpgnn", "#1b6ca8"), "rings": ("lpgnn, rings", "#2a9d8f"), "gin": ("GIN", "#d95f02"), "gcn": ("GCN", "#6a3d9a")}


def accuracy(section):
    panels(section)
    parts = [f"Mean test accuracy of {section['folds']} folds, those that GIN's published code draws, after every epoch, against the seconds in which all folds have come "
             f"so far on {section['threads']} processors. Ours is `lpgnn crossval` with its defaults, from the start of the process, with the baseline without edges, and, "
             "where it says so, with the numbers of rings through every node as features; GIN "
             "and GCN in PyTorch Geometric have five layers of 64 units and batches of 128 graphs, and their folds run in one process per processor. The best mean epoch "
             "is the best of those that are shown, so optimistic for all of them.\n",
             "![Accuracy against seconds, four data sets](accuracy.svg)\n"]
    lines = []
    for row in section["sets"]:
        runs = {name: row["programs"][name] for name in PROGRAMS if name in row["programs"]}
        target = max(runs["gin"]["accuracy"]) if "gin" in runs else math.inf
        reached = {name: next((second for second, value in zip(run["seconds"], run["accuracy"]) if value >= target), None)
                   for name, run in runs.items()}
        for name, run in runs.items():
            best, second = max(run["accuracy"]), reached[name]
            lines.append([row["data"], PROGRAMS[name][0], str(len(run["accuracy"])), number(run["seconds"][-1]), f"{100 * best:.1f} %",
                          number(run["seconds"][run["accuracy"].index(best)]), number(second) if second else "not reached",
                          f"{second / reached['gin']:.2f}" if second else ""])
    parts.append(table(["data", "", "epochs", "seconds", "best mean epoch", "seconds to it", "seconds to GIN's best", "× GIN's"],
                       lines))
    if section.get("note"):
        parts.append(section["note"] + "\n")
    return "\n".join(parts)


def panels(section):
    """A panel per data set: accuracy against the logarithm of seconds, as SVG."""
    width, height, left, bottom, top = 380, 270, 52, 40, 28
    sets = section["sets"]
    across, down = 2, -(-len(sets) // 2)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across * width} {down * height}" width="{across * width}" height="{down * height}" '
             'font-family="sans-serif" font-size="12">', f'<rect width="{across * width}" height="{down * height}" fill="white"/>']
    for place, row in enumerate(sets):
        runs = row["programs"].values()
        low, high = (math.log10(f(run["seconds"][end] for run in runs)) for f, end in ((min, 0), (max, -1)))
        values = [100 * value for run in runs for value in run["accuracy"]]
        # The first epochs of a network that has learnt nothing yet would press all else together.
        floor = 5 * math.floor(sorted(values)[len(values) // 20] / 5)
        ceiling = 5 * math.ceil(max(values) / 5)
        at = lambda second: left + (math.log10(second) - low) / (high - low) * (width - left - 16)
        up = lambda value: height - bottom - (max(value, floor) - floor) / (ceiling - floor) * (height - bottom - top)
        parts.append(f'<g transform="translate({place % 2 * width} {place // 2 * height})"><text x="{left}" y="18" font-weight="bold">{row["data"]}</text>')
        for value in range(floor, ceiling + 1, 5):
            parts.append(f'<line x1="{left}" x2="{width - 16}" y1="{up(value):.1f}" y2="{up(value):.1f}" stroke="#ddd"/>'
                         f'<text x="{left - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{value} %</text>')
        ticks = [digit * 10.0 ** power for power in range(math.floor(low), math.ceil(high) + 1) for digit in (1, 3)]
        for second in ticks:
            if low <= math.log10(second) <= high:
                parts.append(f'<line x1="{at(second):.1f}" x2="{at(second):.1f}" y1="{top}" y2="{height - bottom}" stroke="#ddd"/>'
                             f'<text x="{at(second):.1f}" y="{height - bottom + 16}" text-anchor="middle">{second:g}</text>')
        names = [name for name in PROGRAMS if name in row["programs"]]
        for index, (name, run) in enumerate((name, row["programs"][name]) for name in names):
            title, colour = PROGRAMS[name]
            points = " ".join(f"{at(second):.1f},{up(100 * value):.1f}" for second, value in zip(run["seconds"], run["accuracy"]))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
                         f'<text x="{left + 100 + 40 * index + 40 * ("rings" in names[:index])}" y="18" fill="{colour}">{title}</text>')
        parts.append(f'<text x="{(left + width) / 2}" y="{height - 6}" text-anchor="middle">seconds for all folds</text></g>')
    with open(os.path.join(HERE, "accuracy.svg"), "w") as file:
        file.write("\n".join([*parts, "</svg>"]) + "\n")


# ---- live --------------------------------------------------------------------------------------------------------


def power(rows, key):
    """The exponent of nodes in a figure, by least squares on logarithms."""
    return slope([{"edges": row["nodes"], "least": row[key]} for row in rows])


def live(section):
    texts = {"sizes": live_sizes, "tols": live_tols, "batches": live_batches}
    parts = ["`cargo bench -p lpgnn --bench live`, one thread: a random graph of ten neighbours per node, `gnn-mean`, state 16, hidden 16, weights that are not "
             "trained, scaled until the Lipschitz bound of training is 0.9. An event removes or adds an undirected edge. Memory is compared with neighbours, features and "
             "states of the graph that stands still, computed. Converging again is to the same tolerance, with the time of an event in brackets as a unit. Parts are measured one by one, with "
             "`run.py live --only PART`.\n"]
    for part in ("sizes", "tols", "batches"):
        if part in section:
            title, text = texts[part](section[part]["rows"])
            parts += [f"### {title}\n", live_where(section[part]["facts"]), text]
    graphs = [name for name in ("coauthor-physics", "amazon-computer") if name in section]
    if graphs:
        parts.append("### Real graphs\n")
        parts += [f"{name}: {live_where(section[name]['facts'])}" for name in graphs]
        parts.append("`gnn-mean`, trained by the recipes in `live.py`, the epoch chosen on validation data; edges are removed and streamed back. GCN and GIN have two layers "
                     "of 32 units in PyTorch Geometric; after an event, all nodes that it can have changed are computed again from their neighbourhood. Times beside each other: an event of "
                     "GCN or GIN, with the time of one of ours as a unit.\n")
        parts += [live_real(name, section[name]["rows"]) for name in graphs]
    if section.get("note"):
        parts.append(section["note"] + "\n")
    return "\n".join(parts)


HEADS = ["events per second", "latency p50, p99 (µs)", "nodes touched", "evaluations"]
CONVERGING = ["from kept states (ms)", "from scratch (ms)"]


def live_where(facts):
    return (f"{facts['date']} UTC · {facts['processor']} · commit {facts['commit']} · {facts['seconds']:.0f} s, in which other processes kept "
            f"{facts['others']:.2f} processors busy\n")


def live_cells(row):
    rate = row["events_per_second"]
    return [f"{rate:,.0f}" if rate >= 100 else number(rate), f"{row['p50_us']:,.0f}, {row['p99_us']:,.0f}", f"{row['touched']:,.1f}", f"{row['evaluated']:,.1f}"]


def live_again(row):
    rate = row["events_per_second"]
    return [f"{number(1e3 * row[key])} ({row[key] * rate:,.0f} ×)" for key in ("from_kept_s", "from_scratch_s")]


def live_sizes(rows):
    text = table(["nodes", "tol", *HEADS, "memory", *CONVERGING],
                 [[f"{row['nodes']:,}", f"{row['tol']:g}", *live_cells(row), f"{row['bytes_to_static']:.2f}", *live_again(row)] for row in rows])
    for row in rows:
        row["mean_us"] = 1e6 / row["events_per_second"]
    return "Size", text + f"\nNodes touched grow like nodes to the power {power(rows, 'touched'):.3f}, the time of an event to the power {power(rows, 'mean_us'):.2f}.\n"


def live_tols(rows):
    picture(rows)
    text = "100,000 nodes.\n\n![Nodes touched per event against tol](live.svg)\n\n"
    return "Nodes touched against the tolerance", text + table(["tol", *HEADS], [[f"{row['tol']:g}", *live_cells(row)] for row in rows])


def live_batches(rows):
    text = f"100,000 nodes, tol 1e-3, {rows[0]['threads']} threads. Latency is that of a batch, nodes are per event.\n\n"
    return "Batches", text + table(["events together", *HEADS], [[f"{row['batch']:,}", *live_cells(row)] for row in rows])


def live_real(name, rows):
    if "problem" in rows:
        return f"{name}: {rows['problem']}\n"
    lines = []
    for row in rows["ours"]:
        layers = "one layer" if row["layers"] == 1 else f"{row['layers']} layers"
        times = [f"{peer['model'].upper()} {row['events_per_second'] / peer['events_per_second']:,.0f} ×" for peer in rows["peers"] if "problem" not in peer]
        model = f"{layers} of {row['units']} units, bound {row['lipschitz']:g}"
        lines.append([f"**lpgnn**, {model}, tol {row['tol']:g}", f"{100 * row['accuracy']:.1f} %", *live_cells(row)[:3], *live_again(row), ", ".join(times)])
    for peer in rows["peers"]:
        if "problem" in peer:
            lines.append([f"{peer['model'].upper()}: {peer['problem']}", *[""] * 7])
        else:
            lines.append([f"{peer['model'].upper()}, k hops", f"{100 * peer['accuracy']:.1f} %", *live_cells({**peer, "evaluated": 0})[:3], "", number(1e3 * peer["whole_s"]), ""])
    return table([name, "test accuracy", *HEADS[:3], *CONVERGING, "faster than"], lines)


def picture(rows):
    """Nodes touched and evaluations against tol, both logarithmic, as SVG."""
    rows = sorted(rows, key=lambda row: row["tol"])
    width, height, left, bottom, top = 640, 340, 64, 48, 20
    low, high = math.log10(rows[0]["tol"]), math.log10(rows[-1]["tol"])
    most = math.ceil(math.log10(max(row["evaluated"] for row in rows)))
    at = lambda tol: left + (math.log10(tol) - low) / (high - low) * (width - left - 24)
    up = lambda count: height - bottom - math.log10(max(count, 1)) / most * (height - bottom - top)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" font-size="13">',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for power in range(most + 1):
        y = up(10 ** power)
        parts.append(f'<line x1="{left}" x2="{width - 24}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/><text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{10 ** power:,}</text>')
    for power in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1):
        x = at(10 ** power)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{height - bottom}" stroke="#ddd"/>'
                     f'<text x="{x:.1f}" y="{height - bottom + 18}" text-anchor="middle">10<tspan dy="-5" font-size="10">{power}</tspan></text>')
    for key, colour, title in (("evaluated", "#d95f02", "evaluations"), ("touched", "#1b6ca8", "nodes touched")):
        points = " ".join(f"{at(row['tol']):.1f},{up(row[key]):.1f}" for row in rows)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{at(row["tol"]):.1f}" cy="{up(row[key]):.1f}" r="3.5" fill="{colour}"/>' for row in rows]
        y = top + 22 if key == "evaluated" else top + 42
        parts.append(f'<circle cx="{width - 150}" cy="{y - 4}" r="3.5" fill="{colour}"/><text x="{width - 140}" y="{y}">{title}</text>')
    parts.append(f'<text x="{(left + width) / 2}" y="{height - 8}" text-anchor="middle">tol: how far states may be from their fixed point</text>')
    parts.append(f'<text x="16" y="{(height - bottom + top) / 2}" text-anchor="middle" transform="rotate(-90 16 {(height - bottom + top) / 2})">per event</text></svg>')
    with open(os.path.join(HERE, "live.svg"), "w") as file:
        file.write("\n".join(parts) + "\n")
