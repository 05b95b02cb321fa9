"""GIN of PyTorch Geometric trained end to end, as a user would take it instead: five layers as its authors count, of which the
input is one and four are convolutions; batches of 128 graphs, Adam, the test split evaluated after every epoch.

    python geometric_gin_training.py FOLDER [--threads N] [--model gin|gcn] [--folds FILE]

FOLDER holds a TU data set. It takes orders, one a line, and answers each with a line of JSON: `evaluated N` with the
milliseconds of N epochs, each with its evaluation; `predict SECONDS` with graphs per second; `fold K EPOCHS` with the
seconds since its start and the accuracy on the test set of that fold of FILE, after every epoch of a new model, whose learning rate
halves every 50 epochs as in GIN's published code. GCN has the same units, normalisation and read-outs.
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
from torch_geometric.nn import GCNConv, GINConv, global_add_pool

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


class Network(nn.Module):
    def __init__(self, kind, inputs, classes):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(inputs, classes)])
        self.layers, self.norms = nn.ModuleList(), nn.ModuleList()
        for layer in range(LAYERS - 1):
            own = inputs if layer == 0 else UNITS
            gin = lambda: GINConv(nn.Sequential(nn.Linear(own, UNITS), nn.BatchNorm1d(UNITS), nn.ReLU(), nn.Linear(UNITS, UNITS)))
            self.layers.append(gin() if kind == "gin" else GCNConv(own, UNITS))
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
    parser.add_argument("--model", choices=["gin", "gcn"], default="gin")
    parser.add_argument("--folds")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    graphs = graphs_of(options.folder)
    order = np.random.default_rng(0).permutation(len(graphs))
    tenth = len(graphs) // 10
    every = DataLoader(graphs, 512)
    run = Run(options.model, graphs, order[tenth:], order[:tenth])
    run.epoch()
    say({"version": f"torch {torch.__version__}, torch-geometric {torch_geometric.__version__}", "graphs": len(graphs)})
    for order in sys.stdin:
        verb, *amounts = order.split()
        if verb == "evaluated":
            say({"ms": sorted(1e3 * run.epoch()[0] for _ in range(int(amounts[0])))})
        elif verb == "predict":
            begin, least = time.perf_counter(), run.predict(every)
            while time.perf_counter() - begin < float(amounts[0]):
                least = min(least, run.predict(every))
            say({"graphs_per_second": len(graphs) / least})
        elif verb == "fold":
            number, epochs = map(int, amounts)
            fold = np.loadtxt(options.folds, dtype=int, skiprows=1)
            torch.manual_seed(number)
            new = Run(options.model, graphs, fold[fold[:, 1] != number, 0], fold[fold[:, 1] == number, 0])
            slower = torch.optim.lr_scheduler.StepLR(new.adam, 50, 0.5)
            begin, seconds, accuracy = time.perf_counter(), [], []
            for _ in range(epochs):
                accuracy.append(new.epoch()[1])
                slower.step()
                seconds.append(time.perf_counter() - begin)
            say({"seconds": seconds, "accuracy": accuracy})
        else:
            sys.exit(f"{order} is not an order")


class Run:
    """A new model, trained on some of the graphs and evaluated on others."""

    def __init__(self, kind, graphs, train, test):
        self.train = DataLoader([graphs[i] for i in train], BATCH, shuffle=True)
        self.test = DataLoader([graphs[i] for i in test], 512)
        self.model = Network(kind, graphs[0].x.shape[1], 1 + max(int(graph.y) for graph in graphs))
        self.adam = torch.optim.Adam(self.model.parameters(), 0.01)

    def epoch(self):
        """Seconds of an epoch with its evaluation, and the accuracy."""
        begin = time.perf_counter()
        self.model.train()
        for batch in self.train:
            self.adam.zero_grad()
            F.cross_entropy(self.model(batch), batch.y).backward()
            self.adam.step()
        self.model.eval()
        with torch.no_grad():
            right = sum((self.model(batch).argmax(1) == batch.y).sum().item() for batch in self.test)
        return time.perf_counter() - begin, right / len(self.test.dataset)

    def predict(self, every):
        """Seconds of a prediction of all graphs."""
        self.model.eval()
        begin = time.perf_counter()
        with torch.no_grad():
            for batch in every:
                self.model(batch)
        return time.perf_counter() - begin


if __name__ == "__main__":
    main()
