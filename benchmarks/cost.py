"""What an update costs a process that has some of the nodes of a graph, and what it would cost on other machines.

Of a graph in parts a process has V nodes, E pairs of neighbours, and R ghosts, whose rows come in M messages from other
processes. Its model has s components of a state, h hidden units in f_a and in f_r, m features, k classes and θ weights:

    t = (F / P + G / W + H / T) / e + B / β + M' α

    F = 2 V (6 s h + 4 m h) + 6 V h s + 6 V (s h + h k)      operations of products: forward, and two on the way back
    G = 3 E                                                   rows that pairs gather: of p forward, of q and d on the way back
    H = E h                                                   values of pairs: tanh, its derivative, and the sums of them
    B = 4 · 3 h R + 4 · 2 θ                                   bytes that come: p, q and d of ghosts; a sum of weights on its way, and in the end
    M' = 3 M + 3 (n−1) + S                                    messages one after the other: the sum of weights goes in S slices from process to process

P, W, T and β are operations, gathered rows, values of pairs and received bytes per second, and α is seconds per message. P, W
and T are fitted to all measured updates of one process by least squares of relative errors, none of them negative. They stand for all
that goes along with products, with pairs (finding a row, however long it is) and with the numbers in their rows. Updates of two processes
only check them. β and α are fitted to messages alone. e is the part of their speed that two cores have that share a memory: that of
two threads, each against one alone. It is 1 where a process is alone on its machine. Nothing is assumed to be hidden behind computation.
"""

import math
from dataclasses import dataclass


@dataclass
class Shape:
    """The sizes of a model: those of the workloads, unless told."""

    state: int = 32
    hidden: int = 32
    features: int = 64
    classes: int = 10

    def weights(self):
        s, h, m, k = self.state, self.hidden, self.features, self.classes
        return (2 * (s + m) + 1) * h + (h + 1) * s + (s + 1) * h + (h + 1) * k


@dataclass
class Owned:
    """What a process has of a graph."""

    nodes: float
    pairs: float
    ghosts: float = 0
    messages: float = 0
    ranks: int = 1


# Numbers of a slice of the sum of weights, and bytes of a number.
SLICE, NUMBER = 1024, 4


@dataclass
class Machine:
    """P, W, T, β, α and e of a process."""

    operations: float
    gathered: float
    values: float
    bytes: float = math.inf
    latency: float = 0.0
    efficiency: float = 1.0


def operations(own, shape):
    s, h, m, k = shape.state, shape.hidden, shape.features, shape.classes
    return own.nodes * (2 * (6 * s * h + 4 * m * h) + 6 * h * s + 6 * (s * h + h * k))


def gathered(own):
    return 3 * own.pairs


def values(own, shape):
    return own.pairs * shape.hidden


def counts(own, shape):
    """F, G and H."""
    return operations(own, shape), gathered(own), values(own, shape)


def received(own, shape):
    sums = 2 * NUMBER * shape.weights() if own.ranks > 1 else 0
    return 3 * NUMBER * shape.hidden * own.ghosts + sums


def computing(machine, own, shape):
    efficiency = machine.efficiency if own.ranks > 1 else 1.0
    speeds = machine.operations, machine.gathered, machine.values
    return sum(count / speed for count, speed in zip(counts(own, shape), speeds)) / efficiency


def exchanging(machine, own, shape):
    slices = math.ceil(shape.weights() / SLICE) if own.ranks > 1 else 0
    messages = 3 * own.messages + 3 * (own.ranks - 1) + slices
    return received(own, shape) / machine.bytes + messages * machine.latency


def seconds(machine, own, shape):
    return computing(machine, own, shape) + exchanging(machine, own, shape)


def fit(measured):
    """P, W and T from (own, shape, seconds) of single processes: the least Σ ((F / P + G / W + H / T) / t − 1)²."""
    rows = [[count / t for count in counts(own, shape)] for own, shape, t in measured]
    return Machine(*(1 / each if each else math.inf for each in least_squares(rows)))


def least_squares(rows):
    """The x ≥ 0 of the least Σ (row · x − 1)², by the normal equations. Where an entry would be negative it is 0, and the others
    are found without it."""
    kept = list(range(len(rows[0])))
    while True:
        products = [[sum(row[i] * row[j] for row in rows) for j in kept] for i in kept]
        x = solve(products, [sum(row[i] for row in rows) for i in kept])
        if min(x) >= 0:
            return [x[kept.index(i)] if i in kept else 0.0 for i in range(len(rows[0]))]
        # In units of what an entry contributes, not of its own, which are operations, rows or values.
        kept.pop(min(range(len(kept)), key=lambda at: x[at] * math.sqrt(products[at][at])))


def solve(matrix, right):
    """The x of `matrix` x = `right` by Gaussian elimination; the matrix is positive definite, which needs no pivots."""
    rows = [[*row, b] for row, b in zip(matrix, right)]
    for i, pivot in enumerate(rows):
        for row in rows[i + 1:]:
            factor = row[i] / pivot[i]
            row[i:] = [a - factor * p for a, p in zip(row[i:], pivot[i:])]
    x = [0.0] * len(rows)
    for i in reversed(range(len(rows))):
        x[i] = (rows[i][-1] - sum(a * b for a, b in zip(rows[i][i + 1:-1], x[i + 1:]))) / rows[i][i]
    return x


def fit_messages(messages):
    """α from the smallest message, β from the largest, of (bytes, seconds)."""
    (least, first), (most, last) = messages[0], messages[-1]
    return (most - least) / (last - first), first


def of_nodes(machine, cores, gigabits, latency=5e-6):
    """A node with so many cores like the one that was measured, in a network."""
    many = cores * machine.efficiency
    speeds = (speed * many for speed in (machine.operations, machine.gathered, machine.values))
    return Machine(*speeds, bytes=gigabits * 1e9 / 8, latency=latency)


def share_of(nodes, pairs, ranks, cut):
    """What one of `ranks` nodes of a cluster has of a graph of which a proportion of pairs is cut; at most one ghost per cut pair,
    and at most all that others have."""
    own_nodes, own_pairs = nodes / ranks, pairs / ranks
    others = nodes - own_nodes
    # As if the cut pairs of a process led anywhere else: distinct ends of so many draws.
    ghosts = others * -math.expm1(-cut * own_pairs / others)
    return Owned(own_nodes, own_pairs, ghosts, ranks - 1, ranks)
