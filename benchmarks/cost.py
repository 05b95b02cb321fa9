"""What an update costs a process that has some of the nodes of a graph, and what it would cost on other machines.

Of a graph in parts a process has V nodes, E pairs of neighbours, and R ghosts, whose rows come in M messages from other
processes. Its model has s components of a state, h hidden units in f_a and in f_r, m features, k classes and θ weights:

    t = (F / P + G / W) / e + B / β + M' α

    F = 2 V (6 s h + 4 m h) + 6 V h s + 6 V (s h + h k)      operations of products: forward, and two on the way back
    G = 3 E                                                   rows that pairs gather: of p forward, of q and d on the way back
    B = 4 · 3 h R + 4 · 2 θ                                   bytes that come: p, q and d of ghosts; a sum of weights on its way, and in the end
    M' = 3 M + 3 (n−1) + S                                    messages one after the other: the sum of weights goes in S slices from process to process

P, W, β and α are operations, gathered rows and received bytes per second, and seconds per message. P and W are fitted to
measured updates of one process by least squares of relative errors, and stand for all that goes along with products and
with pairs: a row is asked for before it is needed, so that its length hardly matters. β and α are fitted to messages alone.
e is the part of their speed that two cores have that share a memory: that of two threads, each against one alone. It is 1 where a
process is alone on its machine. Nothing is assumed to be hidden behind computation.
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
    """P, W, β, α and e of a process."""

    operations: float
    gathered: float
    bytes: float = math.inf
    latency: float = 0.0
    efficiency: float = 1.0


def operations(own, shape):
    s, h, m, k = shape.state, shape.hidden, shape.features, shape.classes
    return own.nodes * (2 * (6 * s * h + 4 * m * h) + 6 * h * s + 6 * (s * h + h * k))


def gathered(own):
    return 3 * own.pairs


def received(own, shape):
    sums = 2 * NUMBER * shape.weights() if own.ranks > 1 else 0
    return 3 * NUMBER * shape.hidden * own.ghosts + sums


def computing(machine, own, shape):
    efficiency = machine.efficiency if own.ranks > 1 else 1.0
    return (operations(own, shape) / machine.operations + gathered(own) / machine.gathered) / efficiency


def exchanging(machine, own, shape):
    slices = math.ceil(shape.weights() / SLICE) if own.ranks > 1 else 0
    messages = 3 * own.messages + 3 * (own.ranks - 1) + slices
    return received(own, shape) / machine.bytes + messages * machine.latency


def seconds(machine, own, shape):
    return computing(machine, own, shape) + exchanging(machine, own, shape)


def fit(measured):
    """P and W from (own, shape, seconds) of single processes: the least Σ ((F / P + G / W) / t − 1)²."""
    rows = [(operations(own, shape) / t, gathered(own) / t) for own, shape, t in measured]
    aa, ab, bb = (sum(r[i] * r[j] for r in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = (sum(r[i] for r in rows) for i in (0, 1))
    determinant = aa * bb - ab * ab
    per_operation, per_byte = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
    return Machine(1 / per_operation, 1 / per_byte)


def fit_messages(messages):
    """α from the smallest message, β from the largest, of (bytes, seconds)."""
    (least, first), (most, last) = messages[0], messages[-1]
    return (most - least) / (last - first), first


def of_nodes(machine, cores, gigabits, latency=5e-6):
    """A node with so many cores like the one that was measured, in a network."""
    many = cores * machine.efficiency
    return Machine(machine.operations * many, machine.gathered * many, gigabits * 1e9 / 8, latency)


def share_of(nodes, pairs, ranks, cut):
    """What one of `ranks` nodes of a cluster has of a graph of which a proportion of pairs is cut; at most one ghost per cut pair,
    and at most all that others have."""
    own_nodes, own_pairs = nodes / ranks, pairs / ranks
    others = nodes - own_nodes
    # As if the cut pairs of a process led anywhere else: distinct ends of so many draws.
    ghosts = others * -math.expm1(-cut * own_pairs / others)
    return Owned(own_nodes, own_pairs, ghosts, ranks - 1, ranks)
