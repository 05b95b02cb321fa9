"""The original GNN in PyTorch: T iterations of the same f_a from x = 0, the output reads the last, and
gradients go back through all of them. Label terms are computed once; Adam on the weights alone.

Another model than ours, so there is nothing to agree on: only the cost is compared."""

import torch

import common
from torch_lpgnn import Model, parameters


def main():
    options = common.options()
    torch.set_num_threads(options.threads)
    workload = common.Workload(options.workload)
    model = Model(workload, options.output, "sparse")
    weights, _, _ = parameters(common.Point(workload, options.start))
    optimiser = torch.optim.Adam(list(weights.values()), lr=1e-3, fused=True)

    def step():
        optimiser.zero_grad(set_to_none=True)
        x, terms = torch.zeros(workload.nodes, workload.state), model.label_terms(weights)
        for _ in range(options.steps):
            x = model.transition(weights, x, terms)
        model.loss(weights, x).backward()
        optimiser.step()

    common.serve(torch.__version__, step)


if __name__ == "__main__":
    main()
