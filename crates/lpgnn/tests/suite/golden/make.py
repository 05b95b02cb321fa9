"""Loss and gradients of an LP-GNN in the configuration of the method's authors, computed another way.

    python3 make.py > authors.json          (numpy only; made with Python 3.11, numpy 2.4)

    h(l_v, l_u, x_u) = tanh(W2 tanh(W1 [l_v; l_u; x_u] + b1) + b2), summed over the neighbours of v
    L = mean_S CE(f_r(f_a(x)), y) + mean_{v,i} lambda_v G(x_vi - f_vi),   f_r = R2 tanh(R1 . + c1) + c2

Nothing here follows the library: edges are concatenated rows, and derivatives are complex steps,
Im f(z + ih) / h with h = 1e-30, which are exact to the last place and need no derivation.
"""
import json
import numpy as np

N, M, S, H, R, C, EPS = 7, 2, 3, 4, 5, 2, 0.05
rng = np.random.default_rng(20)
UNDIRECTED = [(0, 1), (1, 2), (2, 0), (2, 3), (4, 5), (5, 0)]  # node 6 is isolated
EDGES = [(u, v) for a, b in UNDIRECTED for u, v in ((a, b), (b, a))]
FEATURES = rng.normal(size=(N, M))
Y = [0, 1, 1, 0, 1, 0, 1]


def absolute(z):
    return np.where(z.real < 0, -z, z)


G = {
    "lin-eps": lambda a: np.where(a.real > EPS, a - EPS, np.where(a.real < -EPS, a + EPS, 0 * a)),
    "abs": absolute,
    "abs-eps": lambda a: np.where(absolute(a).real > EPS, absolute(a) - EPS, 0 * a),
    "squared": lambda a: a * a,
}
SHAPES = dict(W1=(2 * M + S, H), b1=(H,), W2=(H, S), b2=(S,), R1=(S, R), c1=(R,), R2=(R, C), c2=(C,),
              X=(N, S))


def lagrangian(p, g, shape):
    f = np.zeros((N, S), complex)
    for u, v in EDGES:
        z = np.concatenate((FEATURES[v], FEATURES[u], p["X"][u]))
        f[v] += np.tanh(np.tanh(z @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"])
    logits = np.tanh(f @ p["R1"] + p["c1"]) @ p["R2"] + p["c2"]
    loss = sum(np.log(np.exp(row).sum()) - row[y] for row, y in zip(logits, Y)) / N
    return loss + (p["lam"] * G[g](p["X"] - f)).sum() / (N * S)


cases = []
for g, shape in [("abs-eps", 1), ("abs", 1), ("squared", 1), ("squared", S), ("lin-eps", S)]:
    p = {k: rng.normal(size=s) * 0.7 for k, s in SHAPES.items()}
    p["lam"] = rng.normal(size=(N, shape))
    d = {}
    for k in p:
        d[k] = np.zeros(p[k].shape)
        for i in np.ndindex(p[k].shape):
            q = {n: v.astype(complex) for n, v in p.items()}
            q[k][i] += 1e-30j
            d[k][i] = lagrangian(q, g, shape).imag / 1e-30
    value = lagrangian({n: v.astype(complex) for n, v in p.items()}, g, shape).real
    flat = lambda t: {n: v.ravel().tolist() for n, v in t.items()}
    cases.append(dict(g=g, value=float(value), at=flat(p), gradient=flat(d)))
print(json.dumps(dict(nodes=N, features_per_node=M, state=S, hidden=H, readout=R, classes=C, epsilon=EPS, edges=EDGES,
                      features=FEATURES.ravel().tolist(), y=Y, cases=cases)))
