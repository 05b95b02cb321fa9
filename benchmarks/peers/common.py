"""What the peers share: workloads and points from raw arrays, and the orders they take.

A peer is a program that is started with a workload, a point to start from, a number of threads and
the output of h. It answers with a line of JSON when it is ready, and then one for each order on its
standard input:

    run SECONDS                 updates for that long; the milliseconds of blocks of updates
    evaluate G FROM TO          the Lagrangian at the point in FROM, its gradient to TO

`benchmarks/README.md` documents the arrays.
"""

import argparse
import json
import os
import sys
import time

import numpy as np

EPSILON = 0.01


class Workload:
    """Graphs and the sizes of the model, from a folder of raw arrays."""

    def __init__(self, folder):
        with open(os.path.join(folder, "meta.json")) as file:
            meta = json.load(file)
        self.nodes, self.edges, self.graphs = meta["V"], meta["E"], meta["G"]
        self.label, self.classes, self.per_graph = meta["m"], meta["classes"], meta["graph"]
        self.state, self.hidden = meta["state"], meta["hidden"]
        integers = lambda name: np.fromfile(os.path.join(folder, name), "<i4").astype(np.int64)
        self.source, self.target = integers("src.i32"), integers("dst.i32")
        self.graph, self.y = integers("gid.i32"), integers("y.i32")
        self.one_hot = integers("feature.i32") if meta["onehot"] else None
        if self.one_hot is None:
            features = np.fromfile(os.path.join(folder, "feat.f32"), "<f4")
            self.features = features.reshape(self.nodes, self.label)
        else:
            self.features = None

    def dense_features(self):
        if self.features is not None:
            return self.features
        dense = np.zeros((self.nodes, self.label), np.float32)
        dense[np.arange(self.nodes), self.one_hot] = 1
        return dense

    def shapes(self):
        """The weights in their order: h over [x_u; l_u; x_v; l_v], then f_r; [inputs, outputs]."""
        s, h, m, k = self.state, self.hidden, self.label, self.classes
        return {"W1": (2 * s + 2 * m, h), "b1": (h,), "W2": (h, s), "b2": (s,),
                "R1": (s, h), "c1": (h,), "R2": (h, k), "c2": (k,)}


class Point:
    """Weights by name, states and multipliers."""

    def __init__(self, workload, folder):
        array = lambda name: np.fromfile(os.path.join(folder, name + ".f32"), "<f4")
        flat, self.weights, begin = array("weights"), {}, 0
        for name, shape in workload.shapes().items():
            end = begin + int(np.prod(shape))
            self.weights[name] = flat[begin:end].reshape(shape).copy()
            begin = end
        self.states = array("states").reshape(workload.nodes, workload.state)
        self.multipliers = array("multipliers").reshape(workload.nodes, 1)


def write_gradient(workload, folder, weights, states, multipliers):
    os.makedirs(folder, exist_ok=True)
    flat = np.concatenate([np.asarray(weights[name]).ravel() for name in workload.shapes()])
    for name, array in (("weights", flat), ("states", states), ("multipliers", multipliers)):
        np.ascontiguousarray(array, "<f4").tofile(os.path.join(folder, name + ".f32"))


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", required=True)
    parser.add_argument("--start", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", choices=["tanh", "linear"], default="tanh")
    parser.add_argument("--form", default="")
    parser.add_argument("--steps", type=int, default=5)
    return parser.parse_args()


def serve(version, step, evaluate=None, workload=None):
    """Warms up and takes orders. `step` returns when its update is done."""
    for _ in range(3):
        step()
    say({"version": version})
    for order in sys.stdin:
        verb, *rest = order.split()
        if verb == "run":
            say({"ms": blocks(float(rest[0]), step), "peak_mb": peak_megabytes()})
        elif verb == "evaluate":
            constraint, source, to = rest
            value, gradient = evaluate(constraint, Point(workload, source))
            write_gradient(workload, to, *gradient)
            say({"loss": float(value)})
        else:
            sys.exit(f"{order} is not an order")


def say(answer):
    print(json.dumps(answer), flush=True)


def blocks(seconds, step):
    """As in the Rust program: blocks of about a tenth of a second."""
    begin = time.perf_counter()
    step()
    per_block = max(1, int((0.05 if seconds < 1 else 0.1) / (time.perf_counter() - begin)))
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        block = time.perf_counter()
        for _ in range(per_block):
            step()
        times.append(1e3 * (time.perf_counter() - block) / per_block)
    return sorted(times)


def peak_megabytes():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0
