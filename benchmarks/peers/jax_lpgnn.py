"""One LP-GNN update in JAX: the first layer once per node, W2 too where h has no output activation;
the whole update is one compiled function that reuses its buffers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import common


def constraint_function(name):
    if name == "squared":
        return jnp.square
    return lambda a: jax.nn.relu(jnp.abs(a) - common.EPSILON)


def lagrangian(workload, output):
    """𝓛 as a function of (weights, states, multipliers), the arrays of the workload, and G."""
    s, m = workload.state, workload.label
    nodes, graphs = workload.nodes, workload.graphs

    def transition(p, x, data):
        a, b, c, d = jnp.split(p["W1"], [s, s + m, 2 * s + m])
        if workload.one_hot is None:
            from_u, from_v = data["features"] @ b, data["features"] @ d
        else:
            from_u, from_v = b[data["features"]], d[data["features"]]
        of_source = (x @ a + from_u).at[data["source"]].get(mode="promise_in_bounds")
        of_target = (x @ c + from_v + p["b1"]).at[data["target"]].get(
            mode="promise_in_bounds", indices_are_sorted=True)
        hidden = jnp.tanh(of_source + of_target)
        total = lambda z: jax.ops.segment_sum(
            z, data["target"], nodes, indices_are_sorted=True, mode="promise_in_bounds")
        if output == "linear":
            return total(hidden) @ p["W2"] + data["degree"] * p["b2"]
        return total(jnp.tanh(hidden @ p["W2"] + p["b2"]))

    def value(z, data, g):
        p, x, multipliers = z
        residual = x - transition(p, x, data)
        if workload.per_graph:
            x = jax.ops.segment_sum(x, data["graph"], graphs, indices_are_sorted=True)
        logits = jnp.tanh(x @ p["R1"] + p["c1"]) @ p["R2"] + p["c2"]
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), data["y"][:, None], 1)
        return (multipliers * g(residual)).mean() - chosen.mean()

    return value


def main():
    options = common.options()
    workload = common.Workload(options.workload)
    degree = np.bincount(workload.target, minlength=workload.nodes).astype(np.float32)[:, None]
    one_hot = workload.one_hot is not None
    data = {
        "source": jnp.asarray(workload.source, jnp.int32),
        "target": jnp.asarray(workload.target, jnp.int32),
        "graph": jnp.asarray(workload.graph, jnp.int32),
        "y": jnp.asarray(workload.y, jnp.int32),
        "degree": jnp.asarray(degree),
        "features": jnp.asarray(workload.one_hot if one_hot else workload.features),
    }
    value = lagrangian(workload, options.output)
    variables = lambda point: jax.tree.map(
        jnp.asarray, (point.weights, point.states, point.multipliers))

    @partial(jax.jit, donate_argnums=0)
    def update(state, data):
        z, first, second, count = state
        loss, d = jax.value_and_grad(value)(z, data, constraint_function("abs-eps"))
        count = count + 1
        first = jax.tree.map(lambda m, d: 0.9 * m + 0.1 * d, first, d)
        second = jax.tree.map(lambda v, d: 0.999 * v + 0.001 * d * d, second, d)
        unbias = 1 / (1 - 0.9 ** count), 1 / (1 - 0.999 ** count)
        adam = lambda rate: lambda z, m, v: (
            z + rate * unbias[0] * m / (jnp.sqrt(unbias[1] * v) + 1e-8))
        rates = (-1e-3, -1e-3, 1e-3)  # multipliers climb
        z = tuple(jax.tree.map(adam(rate), *parts) for rate, *parts in zip(rates, z, first, second))
        return (z, first, second, count), loss

    z = variables(common.Point(workload, options.start))
    zeros = lambda: jax.tree.map(jnp.zeros_like, z)
    state = [(z, zeros(), zeros(), jnp.float32(0))]
    del z

    def step():
        state[0], loss = update(state[0], data)
        loss.block_until_ready()

    def evaluate(constraint, point):
        function = jax.jit(lambda z, data: jax.value_and_grad(value)(
            z, data, constraint_function(constraint)))
        loss, gradient = function(variables(point), data)
        return loss, gradient

    common.serve(jax.__version__, step, evaluate, workload)


if __name__ == "__main__":
    main()
