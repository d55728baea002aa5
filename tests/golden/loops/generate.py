#!/usr/bin/env python3
"""Makes tests/golden/loops/*.json: losses and gradients of loop programs, by PyTorch, in float64.

    tests/golden/loops/generate.py

The programs are kernels of NPBench (github.com/spcl/npbench, after PolyBench/C 4.2) at tiny sizes, with the inputs
that it initialises, written without updates in place. The loss is the sum of what a program returns.
"""

import json
import pathlib

import numpy as np
import torch


def put(x, index, value):
    """x with `value` at `index`, which differentiates."""
    out = x.clone()
    out[index] = value
    return out


def grid(function, *extents):
    return np.fromfunction(lambda *i: function(*i), extents, dtype=np.float64)


def jacobi_1d(a, b, steps=10):
    for _ in range(1, steps):
        b = put(b, slice(1, -1), 0.33333 * (a[:-2] + a[1:-1] + a[2:]))
        a = put(a, slice(1, -1), 0.33333 * (b[:-2] + b[1:-1] + b[2:]))
    return [a]


def jacobi_2d(a, b, steps=10):
    inner = (slice(1, -1), slice(1, -1))

    def stencil(x):
        return 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])

    for _ in range(1, steps):
        b = put(b, inner, stencil(a))
        a = put(a, inner, stencil(b))
    return [a]


def seidel_2d(a, steps=3):
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            a = put(a, (i, slice(1, -1)), a[i, 1:-1] + a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i, 2:]
                    + a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:])
            for j in range(1, n - 1):
                a = put(a, (i, j), (a[i, j] + a[i, j - 1]) / 9.0)
    return [a]


def heat_3d(a, b, steps=5):
    inner = (slice(1, -1),) * 3

    def stencil(x):
        c = x[1:-1, 1:-1, 1:-1]
        return (0.125 * (x[2:, 1:-1, 1:-1] - 2.0 * c + x[:-2, 1:-1, 1:-1])
                + 0.125 * (x[1:-1, 2:, 1:-1] - 2.0 * c + x[1:-1, :-2, 1:-1])
                + 0.125 * (x[1:-1, 1:-1, 2:] - 2.0 * c + x[1:-1, 1:-1, :-2]) + c)

    for _ in range(1, steps):
        b = put(b, inner, stencil(a))
        a = put(a, inner, stencil(b))
    return [a]


def gemm(a, b, c):
    return [1.5 * (a @ b) + 1.2 * c]


def atax(a, x):
    return [(a @ x) @ a]


def bicg(a, p, r):
    return [r @ a, a @ p]


def mvt(a, x1, x2, y1, y2):
    return [x1 + a @ y1, x2 + y2 @ a]


def trisolv(l, b):
    x = torch.zeros_like(b)
    for i in range(b.shape[0]):
        x = put(x, i, (b[i] - l[i, :i] @ x[:i]) / l[i, i])
    return [x]


def cholesky(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a = put(a, (i, j), (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j])
        a = put(a, (i, i), torch.sqrt(a[i, i] - a[i, :i] @ a[i, :i]))
    return [a]


def lu(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a = put(a, (i, j), (a[i, j] - a[i, :j] @ a[:j, j]) / a[j, j])
        for j in range(i, n):
            a = put(a, (i, j), a[i, j] - a[i, :i] @ a[:i, j])
    return [a]


def durbin(r):
    y = put(torch.zeros_like(r), 0, -r[0])
    alpha, beta = -r[0], torch.ones((), dtype=r.dtype)
    for k in range(1, r.shape[0]):
        beta = beta * (1.0 - alpha * alpha)
        alpha = -(r[k] + torch.flip(r[:k], [0]) @ y[:k]) / beta
        y = put(y, slice(0, k), y[:k] + alpha * torch.flip(y[:k], [0]))
        y = put(y, k, alpha)
    return [y]


def go_fast(a):
    trace = torch.zeros((), dtype=a.dtype)
    for i in range(a.shape[0]):
        trace = trace + torch.tanh(a[i, i])
    return [a + trace]


def softmax(x):
    e = torch.exp(x - x.max(dim=-1, keepdim=True).values)
    return [(e / e.sum(dim=-1, keepdim=True)) ** 2]  # the sum of a softmax has no gradient


def mlp(x, w1, b1, w2, b2, w3, b3):
    x = torch.relu(x @ w1 + b1)
    x = torch.relu(x @ w2 + b2)
    return softmax(x @ w3 + b3)


def conv2d(x, weights, bias):
    k, n, h, w = weights.shape[0], x.shape[0], x.shape[1], x.shape[2]
    rows = []
    for i in range(h - k + 1):
        row = [(x[:, i:i + k, j:j + k, :, None] * weights[None]).sum(dim=(1, 2, 3)) for j in range(w - k + 1)]
        rows.append(torch.stack(row, 1))
    return [torch.stack(rows, 1) + bias]


def positive_definite(n):
    a = np.eye(n)
    for i in range(n):
        a[i, :i] = [(-j % n) / n + 1 for j in range(i)]
    return a @ a.T


def programs():
    rng = np.random.default_rng(42)
    n = 12
    yield jacobi_1d, {"a": grid(lambda i: (i + 2) / 30, 30), "b": grid(lambda i: (i + 3) / 30, 30)}
    yield jacobi_2d, {"a": grid(lambda i, j: i * (j + 2) / 16, 16, 16), "b": grid(lambda i, j: i * (j + 3) / 16, 16, 16)}
    yield seidel_2d, {"a": grid(lambda i, j: (i * (j + 2) + 2) / 10, 10, 10)}
    heat = grid(lambda i, j, k: (i + j + (6 - k)) * 10 / 6, 6, 6, 6)
    yield heat_3d, {"a": heat, "b": heat.copy()}
    yield gemm, {"a": grid(lambda i, k: (i * (k + 1) % 6) / 6, 5, 6), "b": grid(lambda k, j: (k * (j + 2) % 7) / 7, 6, 7),
                 "c": grid(lambda i, j: ((i * j + 1) % 5) / 5, 5, 7)}
    yield atax, {"a": grid(lambda i, j: ((i + j) % 7) / 25, 5, 7), "x": grid(lambda i: 1 + i / 7, 7)}
    yield bicg, {"a": grid(lambda i, j: (i * (j + 1) % 7) / 7, 7, 5), "p": grid(lambda i: (i % 5) / 5, 5),
                 "r": grid(lambda i: (i % 7) / 7, 7)}
    yield mvt, {"a": grid(lambda i, j: (i * j % 9) / 9, 9, 9), "x1": grid(lambda i: (i % 9) / 9, 9),
                "x2": grid(lambda i: ((i + 1) % 9) / 9, 9), "y1": grid(lambda i: ((i + 3) % 9) / 9, 9),
                "y2": grid(lambda i: ((i + 4) % 9) / 9, 9)}
    yield trisolv, {"l": grid(lambda i, j: (i + n - j + 1) * 2 / n, n, n), "b": grid(lambda i: i, n)}
    yield cholesky, {"a": positive_definite(8)}
    yield lu, {"a": positive_definite(8)}
    yield durbin, {"r": grid(lambda i: n + 1 - i, n)}
    yield go_fast, {"a": rng.random((8, 8))}
    yield softmax, {"x": rng.random((2, 3, 4, 5))}
    yield mlp, {"x": rng.random((3, 4)), "w1": rng.random((4, 6)), "b1": rng.random(6), "w2": rng.random((6, 5)),
                "b2": rng.random(5), "w3": rng.random((5, 4)), "b3": rng.random(4)}
    yield conv2d, {"x": rng.random((2, 6, 6, 3)), "weights": rng.random((3, 3, 3, 4)), "bias": rng.random(4)}


def listed(x):
    return {"shape": list(x.shape), "values": x.reshape(-1).tolist()}


def main():
    folder = pathlib.Path(__file__).parent
    for program, inputs in programs():
        tensors = {name: torch.tensor(x, dtype=torch.float64, requires_grad=True) for name, x in inputs.items()}
        loss = sum(x.sum() for x in program(**tensors))
        grads = torch.autograd.grad(loss, list(tensors.values()), allow_unused=True)
        gradients = {}
        for (name, x), g in zip(tensors.items(), grads):
            gradients[name] = listed((torch.zeros_like(x) if g is None else g).numpy())
        row = {"inputs": {name: listed(x) for name, x in inputs.items()}, "loss": loss.item(), "gradients": gradients}
        (folder / f"{program.__name__}.json").write_text(json.dumps(row) + "\n")
        first = np.array(next(iter(gradients.values()))["values"])
        print(program.__name__, loss.item(), first.sum(), np.linalg.norm(first), first.max(), first.min())


if __name__ == "__main__":
    main()
