"""GIN of PyTorch Geometric trained end to end, as a user would take it instead: five layers, batches of 128 graphs, Adam,
the test split evaluated after every epoch.

    python geometric_gin_training.py FOLDER [--threads N]

FOLDER holds a TU data set. It takes orders, one a line, and answers each with a line of JSON: `evaluated N` with the
milliseconds of N epochs, each with its evaluation; `predict SECONDS` with graphs per second.
"""

import argparse
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool

from common import say

LAYERS, UNITS, BATCH = 5, 64, 128


def graphs_of(folder):
    path = os.path.join(folder, os.path.basename(os.path.normpath(folder)))
    load = lambda name, **more: np.loadtxt(f"{path}_{name}.txt", dtype=int, **more)
    code = lambda column: np.unique(column, return_inverse=True)[1]
    edges, graph = np.unique(load("A", delimiter=",") - 1, axis=0), load("graph_indicator") - 1
    targets, count = code(load("graph_labels")), graph.max() + 1
    if os.path.exists(f"{path}_node_labels.txt"):
        labels = code(load("node_labels"))
    else:
        labels = code(np.bincount(edges[:, 0], minlength=len(graph)))
    features = np.eye(labels.max() + 1, dtype=np.float32)[labels]
    nodes = np.searchsorted(graph, np.arange(count + 1))
    edges = edges[np.argsort(graph[edges[:, 0]], kind="stable")]
    starts = np.searchsorted(graph[edges[:, 0]], np.arange(count + 1))
    return [Data(x=torch.from_numpy(features[nodes[g]:nodes[g + 1]]),
                 edge_index=torch.from_numpy((edges[starts[g]:starts[g + 1]] - nodes[g]).T.copy()),
                 y=torch.tensor([targets[g]])) for g in range(count)]


class Gin(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(inputs, classes)])
        self.layers, self.norms = nn.ModuleList(), nn.ModuleList()
        for layer in range(LAYERS - 1):
            first = nn.Linear(inputs if layer == 0 else UNITS, UNITS)
            self.layers.append(GINConv(nn.Sequential(first, nn.BatchNorm1d(UNITS), nn.ReLU(), nn.Linear(UNITS, UNITS))))
            self.norms.append(nn.BatchNorm1d(UNITS))
            self.heads.append(nn.Linear(UNITS, classes))

    def forward(self, batch):
        x, read = batch.x, self.heads[0](global_add_pool(batch.x, batch.batch))
        for layer, norm, head in zip(self.layers, self.norms, self.heads[1:]):
            x = F.relu(norm(layer(x, batch.edge_index)))
            read = read + F.dropout(head(global_add_pool(x, batch.batch)), 0.5, self.training)
        return read


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    graphs = graphs_of(options.folder)
    order = np.random.default_rng(0).permutation(len(graphs))
    tenth = len(graphs) // 10
    train = DataLoader([graphs[i] for i in order[tenth:]], BATCH, shuffle=True)
    test = DataLoader([graphs[i] for i in order[:tenth]], 512)
    every = DataLoader(graphs, 512)
    model = Gin(graphs[0].x.shape[1], 1 + max(int(graph.y) for graph in graphs))
    adam = torch.optim.Adam(model.parameters(), 0.01)

    def epoch():
        begin = time.perf_counter()
        model.train()
        for batch in train:
            adam.zero_grad()
            F.cross_entropy(model(batch), batch.y).backward()
            adam.step()
        model.eval()
        with torch.no_grad():
            sum((model(batch).argmax(1) == batch.y).sum().item() for batch in test)
        return 1e3 * (time.perf_counter() - begin)

    def predict():
        begin = time.perf_counter()
        with torch.no_grad():
            for batch in every:
                model(batch)
        return time.perf_counter() - begin

    epoch()
    say({"version": f"torch {torch.__version__}, torch-geometric {torch_geometric.__version__}", "graphs": len(graphs)})
    for order in sys.stdin:
        verb, amount = order.split()
        if verb == "evaluated":
            say({"ms": sorted(epoch() for _ in range(int(amount)))})
        elif verb == "predict":
            model.eval()
            begin, least = time.perf_counter(), predict()
            while time.perf_counter() - begin < float(amount):
                least = min(least, predict())
            say({"graphs_per_second": len(graphs) / least})
        else:
            sys.exit(f"{order} is not an order")


if __name__ == "__main__":
    main()
