"""A GIN of five layers with PyTorch Geometric, as its authors describe it: networks of two layers with
batch normalisation, the sums of all layers over the graph read together. As wide as our state.

Another model than ours, so there is nothing to agree on: only the cost is compared."""

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch import nn
from torch_geometric.nn import GINConv, global_add_pool

import common

LAYERS = 5


class Gin(nn.Module):
    def __init__(self, workload):
        super().__init__()
        width = workload.state
        inputs = [workload.label] + [width] * LAYERS
        network = lambda count: nn.Sequential(
            nn.Linear(count, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())
        self.layers = nn.ModuleList(GINConv(network(count), train_eps=True) for count in inputs[:-1])
        self.heads = nn.ModuleList(nn.Linear(count, workload.classes) for count in inputs)
        self.per_graph, self.graphs = workload.per_graph, workload.graphs

    def forward(self, x, edges, graph):
        read = lambda x: global_add_pool(x, graph, self.graphs) if self.per_graph else x
        logits = self.heads[0](read(x))
        for layer, head in zip(self.layers, self.heads[1:]):
            x = layer(x, edges)
            logits = logits + head(read(x))
        return logits


def main():
    options = common.options()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    workload = common.Workload(options.workload)
    x = torch.from_numpy(workload.dense_features())
    edges = torch.from_numpy(np.stack((workload.source, workload.target)))
    graph, y = torch.from_numpy(workload.graph), torch.from_numpy(workload.y)
    model = Gin(workload)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def step():
        optimiser.zero_grad(set_to_none=True)
        F.cross_entropy(model(x, edges, graph), y).backward()
        optimiser.step()

    common.serve(f"{torch_geometric.__version__}, torch {torch.__version__}", step)


if __name__ == "__main__":
    main()
