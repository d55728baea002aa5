#!/usr/bin/env python3
"""Makes tests/golden/optimizers/*.json: parameters after steps of PyTorch's optimisers.

    tests/golden/optimizers/generate.py

needs Debian's python3-torch (1.13). A file: optimizer and options as Caldera's registry names them, the
parameters at first (shape and values), and for each step its learning rate, its gradients and the parameters
after it, all in float64: what is random is drawn, and every step is made, in double precision.
"""

import json
import pathlib

import torch

FOLDER = pathlib.Path(__file__).parent
SHAPES = [(5, 3), (7,)]
STEPS = 6

# Name of the file, PyTorch's class and arguments, and what Caldera calls them.
CASES = [
    ("adamw", torch.optim.AdamW, {"weight_decay": 0.1}, {"name": "adamw", "weight_decay": 0.1}),
    ("adamw_betas", torch.optim.AdamW, {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.0},
     {"name": "adamw", "weight_decay": 0.0, "more": {"beta1": 0.8, "beta2": 0.95, "eps": 1e-3}}),
    ("adam", torch.optim.Adam, {"weight_decay": 0.1}, {"name": "adam", "weight_decay": 0.1}),
    ("sgd", torch.optim.SGD, {}, {"name": "sgd"}),
    ("sgd_momentum", torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1},
     {"name": "sgd", "weight_decay": 0.1, "more": {"momentum": 0.9}}),
    ("sgd_dampening", torch.optim.SGD, {"momentum": 0.8, "dampening": 0.3},
     {"name": "sgd", "more": {"momentum": 0.8, "dampening": 0.3}}),
    ("sgd_nesterov", torch.optim.SGD, {"momentum": 0.9, "nesterov": True},
     {"name": "sgd", "more": {"momentum": 0.9, "nesterov": 1}}),
]


def flat(tensors):
    return [t.detach().reshape(-1).tolist() for t in tensors]


def main():
    for name, kind, arguments, options in CASES:
        torch.manual_seed(16)
        parameters = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in SHAPES]
        first = flat(parameters)
        optimizer = kind(parameters, lr=1.0, **arguments)
        steps = []
        for step in range(STEPS):
            rate = 0.01 * (1 + step)
            optimizer.param_groups[0]["lr"] = rate
            for p in parameters:
                p.grad = torch.randn(p.shape, dtype=torch.float64)
            gradients = flat(p.grad for p in parameters)
            optimizer.step()
            steps.append({"learning_rate": rate, "gradients": gradients, "parameters": flat(parameters)})
        text = json.dumps({"options": options, "shapes": SHAPES, "parameters": first, "steps": steps})
        (FOLDER / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
