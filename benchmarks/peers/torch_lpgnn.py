"""One LP-GNN update in PyTorch, in three forms.

authors    as the authors' code does it: per edge the concatenation [x_u; l_u; x_v; l_v], then h
compiled   the first layer once per node, W2 too where h has no output activation; torch.compile
sparse     the same without the compiler, sums over edges as products with a sparse matrix

𝓛 = mean CE(f_r(x), y) + mean λ_v G(x_v − f_a,v), f_a,v = Σ_u h(x_u, l_u, x_v, l_v); Adam on θ, X and Λ.
"""

import torch
import torch.nn.functional as F

import common


def constraint_function(name):
    if name == "squared":
        return torch.square
    return lambda a: F.relu(a.abs() - common.EPSILON)


class Gather(torch.autograd.Function):
    """Rows by number, whose gradient is a product with the sparse matrix of these numbers."""

    @staticmethod
    def forward(context, x, index, matrix):
        context.matrix = matrix
        return x.index_select(0, index)

    @staticmethod
    def backward(context, gradient):
        return context.matrix @ gradient, None, None


class Sum(torch.autograd.Function):
    """The sum of edges by node, as a product with a sparse matrix, whose gradient is a gather."""

    @staticmethod
    def forward(context, x, index, matrix):
        context.index = index
        return matrix @ x

    @staticmethod
    def backward(context, gradient):
        return gradient.index_select(0, context.index), None, None


def incidence(index, nodes):
    """The matrix [nodes, edges] with a 1 where the edge has that node."""
    starts = torch.zeros(nodes + 1, dtype=torch.int32)
    starts[1:] = torch.bincount(index, minlength=nodes).cumsum(0).int()
    order = torch.argsort(index, stable=True).int()
    size = (nodes, len(index))
    return torch.sparse_csr_tensor(starts, order, torch.ones(len(index)), size=size)


class Model:
    """The functions; weights, states and multipliers come from outside."""

    def __init__(self, workload, output, form):
        self.w, self.output, self.form = workload, output, form
        self.source, self.target = map(torch.from_numpy, (workload.source, workload.target))
        self.graph, self.y = map(torch.from_numpy, (workload.graph, workload.y))
        degree = torch.bincount(self.target, minlength=workload.nodes)
        self.degree = degree.float()[:, None]
        gathered = workload.one_hot is not None and form != "authors"
        self.one_hot = torch.from_numpy(workload.one_hot) if gathered else None
        self.features = None if gathered else torch.from_numpy(workload.dense_features())
        if form == "sparse":
            self.from_source = incidence(self.source, workload.nodes)
            self.from_target = incidence(self.target, workload.nodes)

    def of_source(self, x):
        if self.form == "sparse":
            return Gather.apply(x, self.source, self.from_source)
        return x.index_select(0, self.source)

    def of_target(self, x):
        if self.form == "sparse":
            return Gather.apply(x, self.target, self.from_target)
        return x.index_select(0, self.target)

    def sum_arcs(self, x):
        if self.form == "sparse":
            return Sum.apply(x, self.target, self.from_target)
        return x.new_zeros(self.w.nodes, x.shape[1]).index_add(0, self.target, x)

    def label_terms(self, p):
        """B l and D l + b of every node."""
        s, m = self.w.state, self.w.label
        _, b, _, d = p["W1"].split([s, m, s, m])
        if self.one_hot is not None:
            return F.embedding(self.one_hot, b), F.embedding(self.one_hot, d) + p["b1"]
        return self.features @ b, self.features @ d + p["b1"]

    def transition(self, p, x, terms=None):
        s, m = self.w.state, self.w.label
        if self.form == "authors":
            labels = self.features
            parts = [self.of_source(x), self.of_source(labels), self.of_target(x), self.of_target(labels)]
            hidden = torch.tanh(torch.cat(parts, 1) @ p["W1"] + p["b1"])
        else:
            a, _, c, _ = p["W1"].split([s, m, s, m])
            from_u, from_v = terms or self.label_terms(p)
            hidden = torch.tanh(self.of_source(x @ a + from_u) + self.of_target(x @ c + from_v))
            if self.output == "linear":
                return self.sum_arcs(hidden) @ p["W2"] + self.degree * p["b2"]
        h = hidden @ p["W2"] + p["b2"]
        return self.sum_arcs(torch.tanh(h) if self.output == "tanh" else h)

    def loss(self, p, x):
        """The mean cross-entropy of f_r."""
        if self.w.per_graph:
            x = x.new_zeros(self.w.graphs, x.shape[1]).index_add(0, self.graph, x)
        return F.cross_entropy(torch.tanh(x @ p["R1"] + p["c1"]) @ p["R2"] + p["c2"], self.y)

    def lagrangian(self, p, x, multipliers, g):
        residual = x - self.transition(p, x)
        return self.loss(p, x) + (multipliers * g(residual)).mean()


def parameters(point):
    leaf = lambda array: torch.from_numpy(array.copy()).requires_grad_()
    weights = {name: leaf(array) for name, array in point.weights.items()}
    return weights, leaf(point.states), leaf(point.multipliers)


def main():
    options = common.options()
    torch.set_num_threads(options.threads)
    workload = common.Workload(options.workload)
    model = Model(workload, options.output, options.form)
    weights, states, multipliers = parameters(common.Point(workload, options.start))
    adam = lambda z, **more: torch.optim.Adam(z, lr=1e-3, fused=True, **more)
    optimisers = [adam(list(weights.values())), adam([states]), adam([multipliers], maximize=True)]
    g = constraint_function("abs-eps")
    value = lambda: model.lagrangian(weights, states, multipliers, g)
    if options.form == "compiled":
        value = torch.compile(value, dynamic=False)

    def step():
        for optimiser in optimisers:
            optimiser.zero_grad(set_to_none=True)
        value().backward()
        for optimiser in optimisers:
            optimiser.step()

    def evaluate(constraint, point):
        p, x, multipliers = parameters(point)
        value = model.lagrangian(p, x, multipliers, constraint_function(constraint))
        value.backward()
        d_weights = {name: z.grad.numpy() for name, z in p.items()}
        return value.item(), (d_weights, x.grad.numpy(), multipliers.grad.numpy())

    common.serve(torch.__version__, step, evaluate, workload)


if __name__ == "__main__":
    main()
