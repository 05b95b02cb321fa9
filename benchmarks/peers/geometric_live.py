"""A GCN or GIN of PyTorch Geometric on a graph that changes: after every edge, the outputs of all nodes that it can have changed are
computed again from their k-hop neighbourhood, which gives what computing all of them would give.

    python geometric_live.py DATA.npz [--model gcn|gin] [--events N] [--threads N] [--epochs N] [--weights FILE]

DATA is an `.npz` graph as in the book: sparse adjacency and features, labels, and a split. The model has two layers of 32 units and is trained for so
many epochs on the same nodes as ours. Prints a line of JSON.
"""

import argparse
import json
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch import nn
from torch_geometric.nn import GCNConv, GINConv
from torch_geometric.utils import k_hop_subgraph

LAYERS, UNITS = 2, 32


def read(path):
    """Edges in both directions, dense features, labels, and the nodes to train on and to test on."""
    file = np.load(path, allow_pickle=False)
    rows = lambda name: np.repeat(np.arange(file[f"{name}_shape"][0]), np.diff(file[f"{name}_indptr"]))
    pairs = np.stack([rows("adj"), file["adj_indices"]]).astype(np.int64)
    pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
    edges = np.unique(pairs[:, pairs[0] != pairs[1]], axis=1)
    features = np.zeros(file["attr_shape"], np.float32)
    features[rows("attr"), file["attr_indices"]] = file["attr_data"]
    labels = torch.from_numpy(file["labels"].astype(np.int64))
    return torch.from_numpy(edges), torch.from_numpy(features), labels, file["train_idx"], file["test_idx"]


class Gcn(nn.Module):
    # The degree of a neighbour counts, so that an edge changes what its ends' neighbours read, and the last hop has to be complete.
    reach, read = LAYERS, LAYERS + 1

    def __init__(self, inputs, classes):
        super().__init__()
        widths = [inputs] + [UNITS] * LAYERS
        self.layers = nn.ModuleList(GCNConv(a, b) for a, b in zip(widths, widths[1:]))
        self.head = nn.Linear(UNITS, classes)

    def forward(self, x, edges):
        for layer in self.layers:
            x = F.dropout(F.relu(layer(x, edges)), 0.3, self.training)
        return self.head(x)


class Gin(nn.Module):
    """With batch normalisation and a head that reads all layers, as its authors have it: without them it learns next to nothing from sums over hundreds of
    neighbours."""
    reach, read = LAYERS - 1, LAYERS

    def __init__(self, inputs, classes):
        super().__init__()
        network = lambda: nn.Sequential(nn.Linear(UNITS, UNITS), nn.BatchNorm1d(UNITS), nn.ReLU(), nn.Linear(UNITS, UNITS), nn.BatchNorm1d(UNITS))
        self.embed = nn.Linear(inputs, UNITS)
        self.layers = nn.ModuleList(GINConv(network()) for _ in range(LAYERS))
        self.head = nn.Linear((LAYERS + 1) * UNITS, classes)

    def forward(self, x, edges):
        all = [F.relu(self.embed(x))]
        for layer in self.layers:
            all.append(F.relu(layer(all[-1], edges)))
        return self.head(torch.cat(all, dim=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--model", choices=["gcn", "gin"], default="gcn")
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--weights", help="a file to read the weights from; if it is not there, it is written after training")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    edges, x, y, train, test = read(options.data)
    net = {"gcn": Gcn, "gin": Gin}[options.model](x.shape[1], int(y.max()) + 1)
    if options.weights and os.path.exists(options.weights):
        net.load_state_dict(torch.load(options.weights))
    else:
        train_net(net, edges, x, y, train, options.epochs)
        if options.weights:
            torch.save(net.state_dict(), options.weights)
    net.eval()
    with torch.no_grad():
        outputs = net(x, edges)
        accuracy = (outputs.argmax(1)[test] == y[test]).float().mean().item()
        begin = time.perf_counter()
        net(x, edges)
        whole = time.perf_counter() - begin
        if not options.events:
            print(json.dumps({"model": options.model, "accuracy": accuracy}))
            return
        seconds, touched, worst = stream(net, edges, x, outputs, options.events)
    seconds.sort()
    print(json.dumps({
        "model": options.model, "accuracy": accuracy, "events": len(seconds), "whole_s": whole, "worst": worst,
        "p50_us": 1e6 * seconds[len(seconds) // 2], "p99_us": 1e6 * seconds[len(seconds) * 99 // 100],
        "events_per_second": len(seconds) / sum(seconds), "touched": touched / len(seconds),
        "version": f"torch {torch.__version__}, torch-geometric {torch_geometric.__version__}"}))


def train_net(net, edges, x, y, train, epochs):
    adam = torch.optim.Adam(net.parameters(), 0.01, weight_decay=5e-4)
    for _ in range(epochs):
        net.train()
        adam.zero_grad()
        F.cross_entropy(net(x, edges)[train], y[train]).backward()
        adam.step()
    # Averages that were taken while weights moved are not those of the trained network.
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm1d)]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        net(x, edges)


def stream(net, edges, x, outputs, events):
    """Edges go, in both directions, and come back; seconds of each event, nodes computed again, and how far outputs are from the whole."""
    draw, nodes = np.random.default_rng(3), len(x)
    one_way = edges[:, edges[0] < edges[1]]
    chosen = one_way[:, draw.choice(one_way.shape[1], events // 2, replace=False)]
    seconds, touched = [], 0
    for back in (False, True):
        for u, v in chosen.T.tolist():
            begin = time.perf_counter()
            both = torch.tensor([[u, v], [v, u]])
            if back:
                edges = torch.cat([edges, both], dim=1)
            else:
                keep = ~(((edges[0] == u) & (edges[1] == v)) | ((edges[0] == v) & (edges[1] == u)))
                edges = edges[:, keep]
            changed = k_hop_subgraph(torch.tensor([u, v]), net.reach, edges, num_nodes=nodes)[0]
            around, near, place, _ = k_hop_subgraph(changed, net.read, edges, relabel_nodes=True, num_nodes=nodes)
            outputs[changed] = net(x[around], near)[place]
            seconds.append(time.perf_counter() - begin)
            touched += len(changed)
    worst = (outputs - net(x, edges)).abs().max().item()
    return seconds, touched, worst


if __name__ == "__main__":
    main()
