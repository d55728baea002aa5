#!/usr/bin/env python3
"""Makes the golden files of tests/golden/values: what PyTorch gives for the samples of the table of operations.

    build/release/tests/caldera_samples | tests/golden/generate.py

needs Debian's python3-torch and python3-numpy. Results are computed in float64 for floating samples, with gradients
of sum(result * weights) and of their own weighted sum; the weights are those of golden_weights() in golden.cpp.
Operations that PyTorch does not have are left out and named at the end.
"""

import functools
import json
import math
import pathlib
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

TYPES = {
    # PyTorch 1.13 has no uint32: the same numbers in int64, brought back into its range at the end (see record).
    "bool": torch.bool, "uint8": torch.uint8, "uint32": torch.int64, "int8": torch.int8, "int16": torch.int16, "int32": torch.int32,
    "int64": torch.int64, "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32,
    "float64": torch.float64,
}


def plain(function):
    return lambda x, a: function(*x)


def floating(function):
    """Integers are computed as float32 by the engine; the reference uses the float64 of the same values."""
    return lambda x, a: function(*[t if t.is_floating_point() else t.double() for t in x])


def axes(a):
    return tuple(a["axis"]) if "axis" in a else None


def dtype_of(a):
    return TYPES[a["dtype"]["dtype"]] if "dtype" in a else None


def in_type(function):
    """Of elements cast to the argument dtype, and in it."""
    def call(x, a):
        return function(x, a) if dtype_of(a) is None else function([x[0].to(dtype_of(a))], a).to(dtype_of(a))
    return call


def reduction(function):
    def call(x, a):
        t = x[0]
        dims = axes(a) or tuple(range(t.dim()))
        return function(t, dims, a.get("keepdims", False)) if t.dim() else function(t.reshape(1), (0,), False)
    return in_type(call)


def renamed(function, **names):
    """A function of PyTorch, which calls some arguments otherwise."""
    return lambda x, a: function(*x, **{names.get(k, k): v for k, v in a.items()})


def summed(t, dims, keep):
    narrow = t.dtype in (torch.bool, torch.uint8, torch.int8, torch.int16)
    return torch.sum(t.to(torch.int32) if narrow else t, dims, keep, dtype=torch.int32 if narrow else t.dtype)


def mean(t, dims, keep):
    return torch.mean(t if t.is_floating_point() else t.double(), dims, keep)


def extremum(along_one, over_several):
    return lambda x, a: (along_one(x[0], a["axis"][0], a.get("keepdims", False))[0] if len(a.get("axis", [])) == 1
                         else reduction(over_several)(x, a))


def along(function):
    return lambda x, a: function(x[0] if x[0].is_floating_point() else x[0].double(), a.get("axis", -1))


def logsumexp(x, a):
    t = x[0] if x[0].is_floating_point() else x[0].double()
    return torch.logsumexp(t, a.get("axes", a.get("axis", -1)), a.get("keepdims", False))


def rms_norm(x, a):
    y = x[0] / torch.sqrt(torch.mean(x[0] * x[0], -1, keepdim=True) + a["eps"])
    return y * x[1] if len(x) > 1 else y


def layer_norm(x, a):
    return F.layer_norm(x[0], x[0].shape[-a.get("axes", 1):], *(list(x[1:]) + [None] * (3 - len(x))), a["eps"])


def take(x, a):
    axis = a.get("axis", 0) % x[0].dim()
    index, n = x[1].long(), x[0].shape[axis]
    index = {"wrap": index % n, "clip": index.clamp(0, n - 1)}[a["outside"]] if "outside" in a else index
    flat = torch.index_select(x[0], axis, index.reshape(-1))
    return flat.reshape(x[0].shape[:axis] + index.shape + x[0].shape[axis + 1:])


def scatter_add(x, a):
    axis = a.get("axis", 0) % x[0].dim()
    index = x[1].long()
    shape = x[0].shape[:axis] + (index.numel(),) + x[0].shape[axis + 1:]
    return torch.index_add(x[0], axis, index.reshape(-1), x[2].reshape(shape))


def written(base, places, values, how):
    """base with values at positions in the whole of it, one after the other: PyTorch leaves the order open."""
    y, ways = base.reshape(-1), {"max": torch.maximum, "min": torch.minimum}
    if how in ways:
        kinds = {"max": "amax", "min": "amin"}
        return torch.scatter_reduce(y, 0, places, values, kinds[how]).reshape(base.shape)
    if how == "add":
        return y.index_put((places,), values, accumulate=True).reshape(base.shape)
    for k in range(places.numel()):
        y = y.index_put((places[k:k + 1],), values[k:k + 1])
    return y.reshape(base.shape)


def scatter(how):
    def call(x, a):
        base, axis = x[0], a.get("axis", 0) % x[0].dim()
        index, n = x[1].long().reshape(-1), x[0].shape[axis]
        places = torch.arange(base.numel()).reshape(base.shape)
        inside = [k for k in range(index.numel()) if 0 <= index[k] < n]
        updates = x[2].reshape(base.shape[:axis] + index.shape + base.shape[axis + 1:])
        return written(base, places.index_select(axis, index[inside]).reshape(-1),
                       updates.index_select(axis, torch.tensor(inside, dtype=torch.long)).reshape(-1), how)
    return call


def put_along_axis(x, a):
    base, axis = x[0], a.get("axis", -1) % x[0].dim()
    shape = list(base.shape)
    shape[axis] = x[1].shape[axis]
    index, values = x[1].long().expand(shape), x[2].expand(shape).reshape(-1)
    inside = ((index >= 0) & (index < base.shape[axis])).reshape(-1)
    places = torch.arange(base.numel()).reshape(base.shape)
    places = torch.gather(places, axis, index.clamp(0, base.shape[axis] - 1)).reshape(-1)
    return written(base, places[inside], values[inside], a["how"])


def index_put(x, a):
    base, values = x[0], x[-1]
    index = torch.broadcast_tensors(*[i.long() for i in x[1:-1]])
    inside = torch.ones(index[0].shape, dtype=torch.bool)
    for i, n in zip(index, base.shape):
        inside &= (i >= -n) & (i < n)
    places = torch.arange(base.numel()).reshape(base.shape)[tuple(i[inside] for i in index)].reshape(-1)
    values = values.expand(inside.shape + base.shape[len(index):])[inside].reshape(-1)
    return written(base, places, values, a["how"])


def masked_select(x, a):
    found = torch.masked_select(x[0], x[1])[:a["size"]]
    return torch.cat([found, torch.full((a["size"] - found.numel(),), a.get("fill", 0)).to(found.dtype)])


def nonzero(x, a):
    found = torch.nonzero(x[0])[:a["size"]].int()
    rest = torch.full((a["size"] - found.shape[0],), a.get("fill", 0), dtype=torch.int32)
    return [torch.cat([found[:, d], rest]) for d in range(x[0].dim())]


def cross_entropy(x, a):
    if x[1].is_floating_point():
        return cross_entropy_of_probabilities(x, a)
    p = x[0].movedim(a.get("axis", -1), -1)
    classes, reduction = p.shape[-1], a.get("reduction", "mean")
    if p.numel() == 0 and reduction == "mean":
        return p.sum()  # where PyTorch divides 0 by 0
    smoothing, ignored = a.get("label_smoothing", 0.0), a.get("ignore_index", -100)
    logits, target = p.reshape(-1, classes), x[1].long().reshape(-1)
    weight = x[2] if len(x) > 2 else torch.ones(classes, dtype=p.dtype)
    counts = target != ignored
    row = torch.where(counts, target, 0)
    weights = weight[row] * counts
    log_p = torch.log_softmax(logits, -1)
    likely = -log_p.gather(-1, row.unsqueeze(-1)).squeeze(-1) * weights
    uniform = -(log_p * weight).mean(-1) * counts
    losses = (1 - smoothing) * likely + smoothing * uniform
    ours = losses.sum() / weights.sum() if reduction == "mean" else reduce_losses(
        losses.reshape(x[1].shape), reduction)
    theirs = lambda w: F.cross_entropy(logits, target, w if len(x) > 2 else None, label_smoothing=smoothing,
                                       ignore_index=ignored, reduction=reduction).reshape(ours.shape)
    return ours if reduction == "batchmean" else checked(ours, theirs, weight)


def cross_entropy_of_probabilities(x, a):
    axis, reduction, smoothing = a.get("axis", -1), a.get("reduction", "mean"), a.get("label_smoothing", 0.0)
    logits, p = x[0].movedim(axis, -1), x[1].movedim(axis, -1)
    losses = -((p * (1 - smoothing) + smoothing / p.shape[-1]) * (x[2] if len(x) > 2 else 1)
               * torch.log_softmax(logits, -1)).sum(-1)
    rows = lambda t: t.detach().reshape(-1, t.shape[-1])
    ours = reduce_losses(losses, reduction)
    theirs = lambda: F.cross_entropy(rows(logits), rows(p), x[2].detach() if len(x) > 2 else None,
                                     reduction=reduction, label_smoothing=smoothing).reshape(ours.shape)
    return ours if reduction == "batchmean" else checked(ours, theirs)


def ctc_loss(x, a):
    """The forward variables of Graves et al., time by time: PyTorch's gradient is that ahead of log_softmax."""
    log_p, targets, inputs, lengths = x[0], x[1].long(), x[2].long(), x[3].long()
    blank, reduction = a.get("blank", 0), a.get("reduction", "mean")
    never = torch.tensor(float("-inf"), dtype=log_p.dtype)

    def total(parts):
        parts = [p for p in parts if p > never]
        return torch.logsumexp(torch.stack(parts), 0) if parts else never

    losses = []
    for n in range(log_p.shape[1]):
        labels = [blank]
        for t in targets[n, :lengths[n]].tolist():
            labels += [t, blank]
        alpha = [log_p[0, n, k] if i < 2 else never for i, k in enumerate(labels)]
        for t in range(1, inputs[n]):
            alpha = [total([alpha[i]] + alpha[max(i - 1, 0):i] + (
                [alpha[i - 2]] if i > 1 and k != blank and k != labels[i - 2] else [])) + log_p[t, n, k]
                for i, k in enumerate(labels)]
        losses.append(-total(alpha[-2:]))
    losses = torch.stack(losses)
    if a.get("zero_infinity"):
        losses = torch.where(torch.isinf(losses), 0.0, losses)
    theirs = lambda: F.ctc_loss(log_p.detach(), targets, inputs, lengths, blank,
                                "none" if reduction == "batchmean" else reduction, a.get("zero_infinity", False))
    if reduction == "mean":
        return checked((losses / lengths.clamp(min=1)).mean(), theirs)
    return reduce_losses(losses, reduction) if reduction == "batchmean" else checked(reduce_losses(losses, reduction),
                                                                                     theirs)


def multilabel_margin_loss(x, a):
    rows, target = x[0].reshape(-1, x[0].shape[-1]), x[1].long().reshape(-1, x[0].shape[-1])
    losses = []
    for row, given in zip(rows, target.tolist()):
        labels = given[:given.index(-1)] if -1 in given else given
        others = [j for j in range(len(row)) if j not in labels]
        losses.append(sum((torch.relu(1 - row[t] + row[j]) for t in labels for j in others), row[0] * 0) / len(row))
    losses = torch.stack(losses).reshape(x[0].shape[:-1])
    reduction = a.get("reduction", "mean")
    ours = reduce_losses(losses, reduction)
    theirs = lambda: F.multilabel_margin_loss(x[0].detach(), x[1].long(), reduction=reduction)
    return ours if reduction == "batchmean" else checked(ours, theirs)


def unique(function):
    def call(x, a):
        values, inverse, counts = function(x[0].reshape(-1).detach(), return_inverse=True, return_counts=True)
        size, t = a["size"], x[0]
        # The gradient goes to the first element of each value.
        at = torch.tensor([(inverse == k).nonzero()[0, 0].item() for k in range(values.numel())], dtype=torch.long)
        rest = max(0, size - values.numel())
        values = torch.cat([t.reshape(-1)[at], torch.full((rest,), a.get("fill", 0), dtype=t.dtype)])[:size]
        counts = torch.cat([counts.reshape(-1), torch.zeros(rest, dtype=torch.long)])[:size]
        return [values, inverse.reshape(t.shape).to(t.dtype), counts.to(t.dtype)]
    return call


def unique_along(function):
    def call(x, a):
        t, axis, size = x[0], a["axis"], a["size"]
        values, inverse, counts = function(t.detach(), return_inverse=True, return_counts=True, dim=axis)
        found = counts.numel()
        at = torch.tensor([(inverse == k).nonzero()[0, 0].item() for k in range(found)], dtype=torch.long)
        kept = min(found, size)
        shape = list(t.shape)
        shape[axis] = size - kept
        values = torch.cat([t.index_select(axis, at[:kept]), torch.full(shape, a.get("fill", 0), dtype=t.dtype)], axis)
        counts = torch.cat([counts, torch.zeros(size - kept, dtype=torch.long)])[:size]
        return [values, inverse.to(t.dtype), counts.to(t.dtype)]
    return call


def bincount(x, a):
    inside = x[0] < a["length"]
    return torch.zeros(a["length"], dtype=x[1].dtype).index_add(0, x[0][inside].long(), x[1][inside])


def histogram(x, a):
    has_edges = a.get("edges", False)
    t, bins = x[0].reshape(-1), a.get("bins", 5)
    weight = x[1].reshape(-1) if len(x) > (2 if has_edges else 1) else torch.ones_like(t)
    if has_edges:
        edges = x[-1]
    else:
        low, high = (-1.1, 1.3) if a.get("range") else (t.min(), t.max())
        if not a.get("range") and low == high:
            low, high = low - 0.5, high + 0.5
        edges = low + torch.arange(bins + 1, dtype=t.dtype) * ((high - low) / bins)
        edges = torch.cat([edges[:-1], torch.as_tensor(high, dtype=t.dtype).reshape(1)])
    which = torch.searchsorted(edges.detach(), t.detach(), right=True) - 1
    which = torch.where(t.detach() == edges[-1].detach(), edges.numel() - 2, which)
    inside = (which >= 0) & (which < edges.numel() - 1)
    hist = torch.zeros(edges.numel() - 1, dtype=t.dtype).index_add(0, which[inside], weight[inside])
    if a.get("density"):
        hist = hist / (hist.sum() * (edges[1:] - edges[:-1]))
    theirs = torch.histogram(t.detach(), edges.detach() if has_edges else bins, weight=weight.detach(),
                             density=a.get("density", False), **({"range": (-1.1, 1.3)} if a.get("range") else {}))
    return [checked(hist, lambda: theirs.hist), checked(edges, lambda: theirs.bin_edges)]


def scatter_reduce(x, a):
    base, axis, how, keep = x[0], a["axis"] % x[0].dim(), a["how"], a["include_self"] if "include_self" in a else True
    index = x[1].long()
    shape = base.shape[:axis] + index.shape[axis:axis + 1] + base.shape[axis + 1:]
    index = index.expand(shape)
    inside = ((index >= 0) & (index < base.shape[axis])).reshape(-1)
    places = torch.gather(torch.arange(base.numel()).reshape(base.shape), axis, index.clamp(0, base.shape[axis] - 1))
    places, values = places.reshape(-1)[inside], x[2].expand(shape).reshape(-1)[inside]
    flat = base.reshape(-1)
    if how == "prod":
        y = flat
        for k in range(places.numel()):
            at = places[k:k + 1]
            first = not keep and places[k] not in places[:k]
            y = y.index_put((at,), values[k:k + 1] * (1 if first else y[at]))
        theirs = torch.scatter_reduce(flat.detach(), 0, places, values.detach(), "prod", include_self=keep)
        return checked(y, lambda: theirs).reshape(base.shape)
    return torch.scatter_reduce(flat, 0, places, values, how, include_self=keep).reshape(base.shape)


def put(x, a):
    index, n = x[1].long().reshape(-1), x[0].numel()
    inside = (index >= -n) & (index < n)
    return written(x[0], index[inside] % n, x[2].expand(x[1].shape).reshape(-1)[inside], a.get("how", "set"))


def masked_scatter(x, a):
    holds = x[1].expand(x[0].shape).reshape(-1)
    source = x[2].reshape(-1)
    if holds.sum() > source.numel():
        return None
    at = (holds.long().cumsum(0) - 1).clamp(min=0)
    return torch.where(holds, source[at] if at.numel() else source[:0], x[0].reshape(-1)).reshape(x[0].shape)


def embedding_bag(x, a):
    weight, indices = x[0], x[1].long()
    rest = list(x[2:])
    offsets = rest.pop(0).long() if a.get("offsets") else None
    factors = rest[0] if rest else None
    mode, padding = a.get("mode", "mean"), a.get("padding_idx")
    if offsets is None:
        bags = [[(i, k) for k in range(indices.shape[1])] for i in range(indices.shape[0])]
    else:
        ends = offsets.tolist() if a.get("include_last_offset") else offsets.tolist() + [indices.numel()]
        bags = [range(b, e) for b, e in zip(ends, ends[1:])]
    rows = []
    for bag in bags:
        at = [k for k in bag if padding is None or indices[k] != padding % weight.shape[0]]
        parts = [weight[indices[k]] * (factors[k] if factors is not None else 1) for k in at]
        together = {"sum": lambda t: t.sum(0), "mean": lambda t: t.mean(0), "max": lambda t: t.max(0)[0]}[mode]
        rows.append(together(torch.stack(parts)) if parts else weight[0] * 0)
    ours = torch.stack(rows)
    return checked(ours, lambda: F.embedding_bag(
        indices, weight.detach(), offsets, mode=mode, padding_idx=padding,
        per_sample_weights=factors.detach() if factors is not None else None,
        include_last_offset=a.get("include_last_offset", False)))


def checked(ours, theirs, *constants):
    """PyTorch does not differentiate with respect to some operands, or not twice: a formula, held to its results."""
    wanted = theirs(*[t.detach() for t in constants])
    if not torch.allclose(ours.detach().double(), wanted.detach().double(), rtol=1e-12, atol=1e-13, equal_nan=True):
        raise RuntimeError(f"{ours} is not PyTorch's {wanted}")
    return ours


def reduce_losses(losses, reduction):
    return {"none": lambda t: t, "mean": torch.mean, "sum": torch.sum,
            "batchmean": lambda t: t.sum() / (t.shape[0] if t.dim() else 1)}[reduction](losses)


def loss(function, numbers=0):
    """A loss of PyTorch, to which batchmean is added; the last `numbers` operands are converted to its type."""
    def call(x, a):
        options = {k: v for k, v in a.items() if k != "reduction"}
        reduction = a.get("reduction", "mean")
        operands = [t.to(x[0].dtype) if i >= len(x) - numbers else t for i, t in enumerate(x)]
        each = function(*operands, reduction="none" if reduction == "batchmean" else reduction, **options)
        return reduce_losses(each, reduction) if reduction == "batchmean" else each
    return call


def nll_loss(x, a):
    p = x[0].movedim(a.get("axis", -1), -1)
    classes, reduction, ignored = p.shape[-1], a.get("reduction", "mean"), a.get("ignore_index", -100)
    rows, target = p.reshape(-1, classes), x[1].long().reshape(-1)
    weight = x[2] if len(x) > 2 else torch.ones(classes, dtype=p.dtype)
    counts = target != ignored
    row = torch.where(counts, target, 0)
    weights = weight[row] * counts
    losses = -rows.gather(-1, row.unsqueeze(-1)).squeeze(-1) * weights
    ours = losses.sum() / weights.sum() if reduction == "mean" else reduce_losses(
        losses.reshape(x[1].shape), reduction)
    theirs = lambda w: F.nll_loss(rows, target, w, ignore_index=ignored, reduction=reduction).reshape(ours.shape)
    return ours if reduction == "batchmean" else checked(ours, theirs, weight)


def binary_cross_entropy(x, a):
    reduction = a.get("reduction", "mean")
    y, t = x[0], x[1]
    losses = -(t * torch.log(y) + (1 - t) * torch.log(1 - y)) * (x[2] if len(x) > 2 else 1)
    theirs = lambda *w: F.binary_cross_entropy(y, t, *w, reduction=reduction)
    ours = reduce_losses(losses, reduction)
    return ours if reduction == "batchmean" else checked(ours, theirs, *x[2:])


def binary_cross_entropy_with_logits(x, a):
    reduction = a.get("reduction", "mean")
    y, t = x[0], x[1]
    factor = 1 + t * (x[3] - 1) if len(x) > 3 else 1
    losses = ((1 - t) * y - factor * F.logsigmoid(y)) * (x[2] if len(x) > 2 else 1)
    theirs = lambda w=None, p=None: F.binary_cross_entropy_with_logits(y, t, w, pos_weight=p, reduction=reduction)
    ours = reduce_losses(losses, reduction)
    return ours if reduction == "batchmean" else checked(ours, theirs, *x[2:])


def multilabel_soft_margin_loss(x, a):
    weight = x[2] if len(x) > 2 else None
    return F.multilabel_soft_margin_loss(x[0], x[1], weight, reduction=a.get("reduction", "mean"))


def multi_margin_loss(x, a):
    reduction, p, margin = a.get("reduction", "mean"), a.get("p", 1), a.get("margin", 1.0)
    classes = x[0].shape[-1]
    rows, target = x[0].reshape(-1, classes), x[1].long().reshape(-1)
    excess = torch.relu(margin - rows.gather(-1, target.unsqueeze(-1)) + rows) ** p
    others = torch.arange(classes) != target.unsqueeze(-1)
    losses = (excess * others).sum(-1) / classes * (x[2][target] if len(x) > 2 else 1)
    ours = reduce_losses(losses.reshape(x[1].shape), reduction)
    theirs = lambda *w: F.multi_margin_loss(rows, target, p, margin, *w, reduction=reduction).reshape(ours.shape)
    return checked(ours, theirs, *x[2:])


def cosine_embedding_loss(x, a):
    return F.cosine_embedding_loss(x[0], x[1], x[2].to(x[0].dtype), **a)


def cosine_similarity(x, a):
    y, dim, eps = torch.broadcast_tensors(*x), a.get("axis", 1), a.get("eps", 1e-8)
    # PyTorch differentiates as if it limited no norm.
    norms = [torch.linalg.vector_norm(t, 2, dim, True).clamp_min(eps) for t in y]
    ours = (y[0] * y[1] / (norms[0] * norms[1])).sum(dim)
    return checked(ours, lambda *t: F.cosine_similarity(*t, dim=dim, eps=eps), *y)


def batch_norm(x, a):
    tracked, training, momentum = a.get("tracked", True), a.get("training", False), a.get("momentum", 0.1)
    eps = a.get("eps", 1e-5)
    mean_, var_ = (x[1], x[2]) if tracked else (None, None)
    weight, bias = (list(x[3 if tracked else 1:]) + [None, None])[:2]
    dims = [0] + list(range(2, x[0].dim()))
    across = lambda t: t.reshape([1, -1] + [1] * (x[0].dim() - 2))
    plain_ = lambda t: None if t is None else t.detach().clone()
    if not training:
        y = (x[0] - across(mean_)) / torch.sqrt(across(var_) + eps)
        y = y * across(weight) if weight is not None else y
        y = y + across(bias) if bias is not None else y
        return checked(y, lambda: F.batch_norm(x[0].detach(), *map(plain_, (mean_, var_, weight, bias)), False,
                                               momentum, eps))
    y = F.batch_norm(x[0], None, None, weight, bias, True, momentum, eps)
    if not tracked:
        return y
    theirs = plain_(mean_), plain_(var_)
    F.batch_norm(x[0].detach(), *theirs, None, None, True, momentum, eps)
    new_mean = (1 - momentum) * mean_ + momentum * x[0].mean(dims)
    new_var = (1 - momentum) * var_ + momentum * x[0].var(dims, unbiased=True)
    return [y, checked(new_mean, lambda: theirs[0]), checked(new_var, lambda: theirs[1])]


def attention(x, a):
    """torch.nn.functional.scaled_dot_product_attention, which is younger than Debian's PyTorch, as documented."""
    q, k, v = x[:3]
    if a.get("enable_gqa"):
        k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scores = q @ k.transpose(-2, -1) * a.get("scale", q.shape[-1] ** -0.5)
    if "softcap" in a:
        scores = a["softcap"] * torch.tanh(scores / a["softcap"])
    at = torch.arange(scores.shape[-2])[:, None] + a.get("offset", 0)
    key = torch.arange(scores.shape[-1])[None, :]
    if a.get("is_causal"):
        scores = scores.masked_fill(key > at, float("-inf"))
    if "window" in a:
        scores = scores.masked_fill((key <= at - a["window"]) | (key >= at + a["window"]), float("-inf"))
    if len(x) > 3:
        scores = scores.masked_fill(~x[3], float("-inf")) if x[3].dtype == torch.bool else scores + x[3]
    return torch.softmax(scores, -1) @ v


def drop(x, a):
    # Which elements is up to the generator of random numbers.
    return {0.0: x[0], 1.0: torch.zeros_like(x[0])}.get(a["p"])


def pad(x, a):
    t = x[0]
    interior = a.get("interior", [0] * t.dim())
    shape = [l + h + (n + (n - 1) * i if n else 0)
             for n, l, h, i in zip(t.shape, a["low"], a["high"], interior)]
    value = a.get("value", 0)
    out = torch.full(shape, value if t.is_floating_point() else int(value), dtype=t.dtype)
    if t.dtype == torch.bool:
        out = torch.full(shape, bool(value), dtype=t.dtype)
    at = tuple(slice(l, l + (n - 1) * (i + 1) + 1 if n else l, i + 1)
               for n, l, i in zip(t.shape, a["low"], interior))
    out = out.clone()
    out[at] = t
    return out


def window(x, starts, sizes):
    """The slices that lie within x: starts are clamped."""
    inside = [min(max(i, 0), n - k) for i, n, k in zip(starts, x.shape, sizes)]
    return tuple(slice(i, i + k) for i, k in zip(inside, sizes))


def updated(x, a):
    y = x[0].clone()
    y[window(x[0], a["starts"], x[1].shape)] = x[1]
    return y


def strided(x, a):
    t, axis = x[0], a["axis"] % x[0].dim()
    index = list(range(t.shape[axis]))[slice(a.get("start"), a.get("stop"), a.get("step", 1))]
    return torch.index_select(t, axis, torch.tensor(index, dtype=torch.long))


def at(x, a):
    if any(s < 0 for s in a["step"]):
        return None  # PyTorch has no negative steps
    bound = lambda v: None if v == 99 else v
    index = tuple(slice(bound(b), bound(e), s) for b, e, s in zip(a["start"], a["stop"], a["step"]))
    if a["method"] == "get":
        return x[0][index]
    y = x[0].clone()
    old, new = x[0][index], x[1]
    y[index] = {"set": lambda: new, "add": lambda: old + new, "multiply": lambda: old * new,
                "minimum": lambda: torch.minimum(old, new.expand(old.shape)),
                "maximum": lambda: torch.maximum(old, new.expand(old.shape))}[a["method"]]()
    return y


def weighted_mean(x, a):
    weights = x[1].expand(torch.broadcast_shapes(x[0].shape, x[1].shape))
    return (x[0] * weights).sum() / (weights.sum() if weights.numel() else 1)


def real(t):
    return t if t.is_floating_point() else t.double()


def prod(t, dims, keep):
    narrow = t.dtype in (torch.bool, torch.uint8, torch.int8, torch.int16)
    y = t.to(torch.int32) if narrow else t
    for d in sorted((d % y.dim() for d in dims), reverse=True):
        y = torch.prod(y, d, keep, dtype=y.dtype)
    return y


def spread(function):
    return lambda x, a: function(x[0], dim=axes(a) or tuple(range(x[0].dim())), correction=int(a.get("correction", 0)),
                                 keepdim=a.get("keepdims", False)) if a.get("correction", 0) in (0, 1) else None


def truth(function):
    def call(t, dims, keep):
        y = t != 0
        for d in sorted((d % y.dim() for d in dims), reverse=True):
            y = function(y, d, keep)
        return y
    return reduction(call)


def search(function):
    def call(x, a):
        if "axis" in a:
            return function(x[0], a["axis"], a.get("keepdims", False)).int()
        y = function(x[0].reshape(-1), 0).int()
        return y.reshape([1] * x[0].dim()) if a.get("keepdims", False) else y
    return call


def scan(function):
    def call(x, a):
        narrow = x[0].dtype in (torch.bool, torch.uint8, torch.int8, torch.int16)
        t = x[0].to(torch.int32) if narrow else x[0]
        return function(t, a.get("axis", -1), dtype=t.dtype)
    return in_type(call)


def cumulative_sum(x, a):
    y = scan(torch.cumsum)(x, {"axis": 0, **a})
    if not a.get("include_initial", False):
        return y
    return torch.cat([torch.zeros_like(y.sum(a.get("axis", 0), keepdim=True, dtype=y.dtype)), y], a.get("axis", 0))


def tensordot(x, a):
    if "axes_a" in a:
        return torch.tensordot(x[0], x[1], (a["axes_a"], a["axes_b"]))
    return torch.tensordot(x[0], x[1], a.get("axes", 2))


def convolution(transposed):
    def call(x, a):
        n = x[0].dim() - 2
        if x[0].shape[0] == 0:
            return None
        names = {1: "1d", 2: "2d", 3: "3d"}[n]
        function = getattr(F, ("conv_transpose" if transposed else "conv") + names)
        def each(name, value):
            given = a.get(name, [value])
            return given * n if len(given) == 1 else given
        options = {"stride": each("stride", 1), "padding": each("padding", 0), "dilation": each("dilation", 1),
                   "groups": a.get("groups", 1)}
        if transposed:
            options["output_padding"] = each("output_padding", 0)
        elif a.get("same"):
            options["padding"] = "same"
        return function(x[0], x[1], x[2] if len(x) > 2 else None, **options)
    return call


def pooling(kind, indices=False):
    def call(x, a):
        n = x[0].dim() - 2
        def each(name, value):
            given = a.get(name, value)
            return list(given) * n if len(given) == 1 else list(given)
        kernel = each("kernel", None)
        options = {"stride": each("stride", kernel), "padding": each("padding", [0]),
                   "ceil_mode": a.get("ceil_mode", False)}
        if kind == "max":
            options["dilation"] = each("dilation", [1])
        elif "dilation" in a:  # which PyTorch's averages lack
            ones = torch.ones(1, 1, *kernel, dtype=x[0].dtype)
            y = getattr(F, f"conv{n}d")(x[0].reshape(-1, 1, *x[0].shape[2:]), ones / ones.numel(), None,
                                        options["stride"], options["padding"], each("dilation", [1]))
            return y.reshape(x[0].shape[:2] + y.shape[2:])
        else:
            options["count_include_pad"] = a.get("count_include_pad", True)
            if "divisor_override" in a:
                if n == 1:
                    return None  # PyTorch has it of images and volumes
                options["divisor_override"] = a["divisor_override"]
        if kind == "max" and indices:
            values, places = getattr(F, f"max_pool{n}d")(x[0], kernel, return_indices=True, **options)
            return [values, places.to(x[0].dtype)]
        return getattr(F, f"{kind}_pool{n}d")(x[0], kernel, **options)
    return call


def lp_pool(x, a):
    """PyTorch's formula, of which it has no third spatial axis."""
    kernel = a["kernel"] * (x[0].dim() - 2) if len(a["kernel"]) == 1 else a["kernel"]
    powers = pooling("avg")([x[0] ** a["p"]], {k: v for k, v in a.items() if k != "p"})
    ours = (powers * float(np.prod(kernel))) ** (1 / a["p"])
    function = getattr(F, f"lp_pool{x[0].dim() - 2}d")
    single = kernel[0] if x[0].dim() == 3 else kernel
    stride = a.get("stride", kernel)
    return checked(ours, lambda: function(x[0].detach(), a["p"], single, stride[0] if x[0].dim() == 3 else stride,
                                          a.get("ceil_mode", False)))


def max_unpool(x, a):
    n = x[0].dim() - 2
    return getattr(F, f"max_unpool{n}d")(x[0], x[1].long(), *(
        a.get(k, [None])[0] if len(a.get(k, [None])) == 1 else a[k] for k in ("kernel", "stride")),
        a.get("padding", [0])[0], a.get("output_size"))


def adaptive_pool(kind, indices=False):
    def call(x, a):
        n = x[0].dim() - 2
        size = [None if v == -1 else v for v in a["output_size"]]
        size = size * n if len(size) == 1 else size
        if n == 1 and size[0] is None:
            size[0] = x[0].shape[2]
        if 0 in size or x[0].numel() == 0:
            return None
        function = getattr(F, f"adaptive_{kind}_pool{n}d")
        y = function(x[0], size[0] if n == 1 else size, *([True] if indices else []))
        return [y[0], y[1].to(x[0].dtype)] if indices else y
    return call


def grid_sample(x, a):
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(a.get("mode", "linear"), "nearest")
    if x[0].numel() == 0:
        return None
    y = F.grid_sample(x[0], x[1], mode, a.get("padding_mode", "zeros"), a.get("align_corners", False))
    if not y.requires_grad:
        return y
    # PyTorch has no second derivative of volumes and of other modes: a formula, held to its results.
    return checked(sampled(x[0], x[1], a), lambda: y)


def sampled(x, grid, a):
    """grid_sample by its definition."""
    n, align, padding = x.dim() - 2, a.get("align_corners", False), a.get("padding_mode", "zeros")

    def continued(at, size):
        if padding == "zeros":
            return at
        if padding == "reflection":
            low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
            away = (at - low).abs()
            turns = torch.floor(away / span).detach()
            left = away - turns * span
            at = torch.where(turns % 2 == 0, left + low, span - left + low)
        return at.clamp(0, size - 1)

    def taps(i):
        size = x.shape[i + 2]
        g = grid[..., n - 1 - i]
        at = (g + 1) / 2 * (size - 1) if align else ((g + 1) * size - 1) / 2
        mode = a.get("mode", "linear")
        if mode != "cubic":
            at = continued(at, size)
        if mode == "nearest":
            return [(torch.round(at).detach(), torch.ones_like(at))]
        first = torch.floor(at).detach()
        t = at - first
        if mode == "linear":
            return [(first, 1 - t), (first + 1, t)]
        A = -0.75
        near = lambda t: ((A + 2) * t - (A + 3)) * t * t + 1
        far = lambda t: ((A * t - 5 * A) * t + 8 * A) * t - 4 * A
        return [(continued(first + k - 1, size).detach(), w) for k, w in enumerate((far(t + 1), near(t), near(1 - t),
                                                                                    far(2 - t)))]

    total = 0
    for combination in __import__("itertools").product(*[taps(i) for i in range(n)]):
        index, weight, inside = 0, 1, True
        for i, (at, w) in enumerate(combination):
            size = x.shape[i + 2]
            index = index * size + at.clamp(0, size - 1).long()
            weight = weight * w
            inside = inside & (at >= 0) & (at <= size - 1)
        flat = x.flatten(2)
        places = index.flatten(1).unsqueeze(1).expand(-1, x.shape[1], -1)
        values = torch.gather(flat, 2, places).reshape(x.shape[:2] + index.shape[1:])
        total = total + values * (weight * inside).unsqueeze(1)
    return total


def columns(function):
    """PyTorch has images alone: signals are images of one row."""
    def call(x, a):
        options = {k: a.get(k, [v]) for k, v in (("dilation", 1), ("padding", 0), ("stride", 1))}
        n = len(a["output_size"]) if "output_size" in a else x[0].dim() - 2
        kernel = a["kernel"]
        if n == 3:
            return None
        if n == 1:
            kernel = [1] + kernel
            options = {"dilation": [1] + options["dilation"], "padding": [0] + options["padding"],
                       "stride": [1] + options["stride"]}
        options = {k: v[0] if len(v) == 1 else v for k, v in options.items()}
        kernel = kernel[0] if len(kernel) == 1 else kernel
        if function is F.unfold:
            return F.unfold(x[0].unsqueeze(2) if n == 1 else x[0], kernel, **options)
        y = F.fold(x[0], ([1] if n == 1 else []) + a["output_size"], kernel, **options)
        return y.squeeze(2) if n == 1 else y
    return call


def complex_of(t):
    return torch.complex(t[..., 0], t[..., 1])


def real_of(z):
    """torch.view_as_real of what has no conjugate bit."""
    return torch.stack([z.real, z.imag], -1)


def from_polar(x, a):
    """PyTorch's gradient takes magnitudes for positive."""
    r, angle = torch.broadcast_tensors(*x)
    theirs = lambda: torch.view_as_real(torch.polar(r.detach(), angle.detach()))
    return checked(torch.stack([r * torch.cos(angle), r * torch.sin(angle)], -1), theirs)


def fourier(name, single=True):
    def call(x, a):
        is_real = name.startswith(("rfft", "ihfft")) or a.get("real")
        t = x[0] if is_real else complex_of(x[0])
        if t.numel() == 0:
            return None
        sizes = {"n": a.get("n"), "dim": a.get("axis", -1)} if single else {"s": a.get("s"), **(
            {"dim": a["axes"]} if "axes" in a else {})}
        y = getattr(torch.fft, name)(t, norm=a.get("norm", "backward"), **sizes)
        return real_of(y) if y.is_complex() else y
    return call


def frames(x, a):
    hop = a.get("hop_length", a["n_fft"] // 4)
    return dict(n_fft=a["n_fft"], hop_length=hop, win_length=a.get("win_length", a["n_fft"]),
                window=x[1] if len(x) > 1 else None, center=a.get("center", True),
                normalized=a.get("normalized", False), onesided=a.get("onesided", True))


def framed(x, a):
    """The window of each frame, as long as it."""
    length = a.get("win_length", a["n_fft"])
    window = x[1] if len(x) > 1 else torch.ones(length, dtype=x[0].dtype)
    left = (a["n_fft"] - length) // 2
    return F.pad(window, (left, a["n_fft"] - length - left))


def stft(x, a):
    y = torch.stft(x[0], pad_mode=a.get("pad_mode", "reflect"), return_complex=True, **frames(x, a))
    return real_of(y)


def istft(x, a):
    """PyTorch refuses windows that are differentiated, and sums of squares of nothing: a formula, held to it."""
    z, n = complex_of(x[0]), a["n_fft"]
    hop, count = a.get("hop_length", n // 4), z.shape[-1]
    norm = "ortho" if a.get("normalized") else "backward"
    parts = torch.fft.irfft(z[..., :n // 2 + 1, :], n, -2, norm)
    window = framed(x, a)
    signal = torch.zeros(z.shape[:-2] + (n + hop * (count - 1),), dtype=x[0].dtype)
    weight = torch.zeros(n + hop * (count - 1), dtype=x[0].dtype)
    for t in range(count):
        ahead, behind = t * hop, hop * (count - 1 - t)
        signal = signal + F.pad(parts[..., t] * window, (ahead, behind))
        weight = weight + F.pad(window * window, (ahead, behind))
    first = n // 2 if a.get("center", True) else 0
    stop = first + a["length"] if "length" in a else signal.shape[-1] - first
    ours = signal[..., first:stop] / weight[first:stop]
    missing = stop - first - ours.shape[-1]
    ours = F.pad(ours, (0, missing)) if missing > 0 else ours
    options = {k: v.detach() if torch.is_tensor(v) else v for k, v in frames(x, a).items()}
    return checked(ours, lambda: torch.istft(z.detach(), length=a.get("length"), **options))


def window_of(name, **names):
    def call(x, a):
        options = {names.get(k, k): v for k, v in a.items() if k in ("alpha", "beta")}
        dtype = TYPES[a["dtype"]["dtype"]]
        return getattr(torch, name)(a["n"], a.get("periodic", True), dtype=torch.float64, **options).to(dtype)
    return call


def power(x, a):
    # PyTorch refuses negative integer powers of integers; the samples have some.
    whole = not x[0].is_floating_point()
    return None if whole and x[1].numel() and x[1].min() < 0 else torch.pow(x[0], x[1])


def like(value):
    return lambda x, a: torch.full_like(x[0], a.get("value", value), dtype=dtype_of(a))


def arange(x, a):
    dtype = TYPES[a["dtype"]["dtype"]]
    if "from" in a:
        return torch.tensor(range(a["from"], a["to"], a["by"]), dtype=torch.int64).to(dtype)
    if "n" in a:
        return torch.arange(a["n"], dtype=torch.float64).to(dtype)
    return torch.from_numpy(np.arange(a["start"], a["stop"], a["step"])).to(dtype)


def linspace(x, a):
    return torch.from_numpy(np.linspace(a["start"], a["stop"], a["num"], a["endpoint"])).to(TYPES[a["dtype"]["dtype"]])


def roll(x, a):
    shift, axis = a["shift"], a.get("axes")
    if axis is None:
        return torch.roll(x[0], shift[0])
    return torch.roll(x[0], shift * len(axis) if len(shift) == 1 else shift, axis)


def continued(mode, of_numpy):
    """PyTorch pads up to three last axes of floating tensors; the others are NumPy's."""
    def call(x, a):
        t, margins = x[0], list(zip(a["low"], a["high"]))
        if not t.is_floating_point():
            return torch.from_numpy(np.pad(t.numpy(), margins, mode=of_numpy)) if t.dim() else t.clone()
        if t.dim() == 0 or t.numel() == 0:
            return None
        while len(margins) > 1 and (margins[0] == (0, 0) or len(margins) > 3):
            margins.pop(0)
        wide = t.reshape((1,) * (len(margins) + 2 - t.dim()) + t.shape)
        y = F.pad(wide, [m for pair in reversed(margins) for m in pair], mode)
        return y.reshape(y.shape[-t.dim():])
    return call


def interpolate(x, a):
    mode = a["mode"]
    if mode == "linear":
        mode = {3: "linear", 4: "bilinear", 5: "trilinear"}[x[0].dim()]
    size = a.get("size")
    if size is not None and len(size) == 1:
        size = size[0]
    scale = a.get("scale_factor")
    smooth = "linear" in mode or mode == "cubic"
    options = (a.get("align_corners", False) if smooth else None, a.get("recompute_scale_factor", False) or None,
               a.get("antialias", False))
    if mode != "cubic":
        return F.interpolate(x[0], size, scale, mode, *options)
    if x[0].dim() == 4:
        return F.interpolate(x[0], size, scale, "bicubic", *options)
    return F.interpolate(x[0].unsqueeze(2), (1, size), None, "bicubic", *options).squeeze(2)  # signals as images


def cast(x, a):
    return x[0].to(TYPES[a["dtype"]["dtype"]])


def symmetric(t):
    return (t + t.mT) / 2


def system(function):
    def call(x, a):
        return function(x[0], x[1].unsqueeze(-1)).squeeze(-1) if x[1].dim() == 1 else function(x[0], x[1])
    return call


def lstsq(x, a):
    return system(lambda m, b: torch.linalg.pinv(m, rtol=a.get("rtol")) @ b)(x, a)


def order(a):
    ord = a.get("ord", "fro")
    return ord if ord in ("fro", "nuc") else float(ord)


def cond(x, a):
    """torch.linalg.cond changes the inverse in place, which has no gradient then."""
    norm = torch.linalg.matrix_norm
    if "ord" not in a:
        return norm(x[0], 2) / norm(x[0], -2)
    return norm(x[0], order(a)) * norm(torch.linalg.inv(x[0]), order(a))


def qr(x, a):
    """The signs that the engine chooses: r's diagonal is not negative."""
    q, r = torch.linalg.qr(x[0], a.get("mode", "reduced"))
    signs = torch.where(torch.diagonal(r, 0, -2, -1).detach() < 0, -1.0, 1.0)
    return q * signs.unsqueeze(-2), r * signs.unsqueeze(-1)


def upright(v):
    """Signs that make the element of each column that is largest in magnitude positive."""
    if v.numel() == 0:
        return torch.ones(v.shape[:-2] + v.shape[-1:], dtype=v.dtype)
    largest = torch.gather(v, -2, v.abs().argmax(-2, keepdim=True)).squeeze(-2).detach()
    return torch.where(largest < 0, -1.0, 1.0)


def svd(x, a):
    u, s, vh = torch.linalg.svd(x[0], full_matrices=a.get("full_matrices", True))
    signs = upright(u)
    return u * signs.unsqueeze(-2), s, vh * signs.unsqueeze(-1)


def eigh(x, a):
    w, v = torch.linalg.eigh(symmetric(x[0]))
    return w, v * upright(v).unsqueeze(-2)


def shift(function):
    """PyTorch 1.13 leaves counts to the processor that reach the width."""
    return lambda x, a: function(*x) if not x[1].numel() or x[1].max() < 8 * x[0].element_size() else None


def clip(x, a):
    given = {"low": a.get("low"), "high": a.get("high")}
    names = {"low": ["low"], "high": ["high"], "both": ["low", "high"]}[a["bounds"]] if "bounds" in a else []
    given.update(zip(names, x[1:]))
    if given["low"] is None and given["high"] is None:
        return x[0]
    return torch.clamp(x[0], given["low"], given["high"])


def rounded(x, a):
    if "decimals" not in a or not x[0].is_floating_point():
        unit = 10 ** -a.get("decimals", 0)
        return torch.round(x[0]) if unit <= 1 else torch.from_numpy(np.around(x[0].numpy(), a["decimals"]))
    return torch.round(x[0], decimals=a["decimals"])


def repeat(x, a):
    if len(x) > 1:
        counts = x[1].long() if x[1].numel() > 1 else x[1].item()
        y = torch.repeat_interleave(x[0], counts, a.get("axis"))
        return torch.narrow(y, a.get("axis", 0), 0, a["total"])
    return torch.repeat_interleave(x[0], a["repeats"][0] if len(a["repeats"]) == 1 else torch.tensor(a["repeats"]),
                                   a.get("axis"))


def missing(t, instead=float("nan")):
    """What stands for NaN in samples, which hold none: what is below -1, but for an infinity."""
    gone = ((t < -1) & (t > -1e30)) | t.isnan() if t.is_floating_point() else None
    return torch.where(gone, torch.tensor(instead, dtype=t.dtype), t) if t.is_floating_point() else t


def left(function):
    return lambda x, a: function([missing(x[0])] + list(x[1:]), a)


def nan_spread(root):
    def call(x, a):
        t, dims, keep = missing(x[0]), axes(a) or tuple(range(x[0].dim())), a.get("keepdims", False)
        there = ~t.isnan()
        known, count = torch.where(there, t, 0.0), there.sum(dims, True)
        free = torch.sum(there, dims, keep) - a.get("correction", 0)
        squares = torch.sum(torch.where(there, known - known.sum(dims, True) / count, 0.0) ** 2, dims, keep)
        ours = torch.where(free > 0, squares / free, torch.tensor(float("nan"), dtype=t.dtype))
        ours = torch.sqrt(ours) if root else ours
        theirs = (np.nanstd if root else np.nanvar)(t.detach().numpy(), axis=dims, ddof=a.get("correction", 0),
                                                    keepdims=keep)
        return checked(ours, lambda: torch.as_tensor(theirs))
    return call


def nan_extremum(instead, along_one, over_several):
    def call(x, a):
        y = extremum(along_one, over_several)([missing(x[0], instead)], a)
        if not y.is_floating_point():
            return y
        none = missing(x[0]).isnan()
        for d in sorted(axes(a) or range(none.dim()), reverse=True):
            none = none.all(d, True)
        return torch.where(none.reshape(y.shape), torch.tensor(math.nan, dtype=y.dtype), y)
    return call


def indexed(results, like_):
    return [results[0], results[1].to(like_.dtype)]


def cumulative_extremum(function):
    """PyTorch tells the last of ties; samples have none."""
    return lambda x, a: indexed(function(x[0], a.get("axis", -1)), x[0])


def along_with_indices(function):
    def call(x, a):
        return indexed(function(x[0], a.get("axis", -1), a.get("keepdims", False)), x[0])
    return call


def mode(x, a):
    """torch.mode, with the first position instead of the last."""
    axis, keep = a.get("axis", -1), a.get("keepdims", False)
    if x[0].dim() == 0:
        return [x[0], torch.zeros((), dtype=x[0].dtype)]
    values = torch.mode(x[0], axis, True)[0] if x[0].dtype != torch.bool else torch.mode(x[0].byte(), axis, True)[0].bool()
    index = (x[0] == values).int().argmax(axis, True) if x[0].numel() else values
    found = torch.gather(x[0], axis, index) if x[0].numel() else values
    squeezed = (lambda t: t) if keep else (lambda t: t.squeeze(axis))
    return [squeezed(found), squeezed(index.to(x[0].dtype))]


def quantile(function, prepare=lambda t: t):
    def call(x, a):
        if not x[0].numel():
            return None
        q = torch.tensor([p / 100 for p in a["percent"]], dtype=x[0].dtype) if "percent" in a else a.get("q", 0.5)
        return function(prepare(x[0]), q, a.get("axis", -1), a.get("keepdims", False),
                        interpolation=a.get("mode", "linear"))
    return call


def isin(x, a):
    return torch.isin(*[t.byte() if t.dtype == torch.bool else t for t in x], invert=a.get("invert", False))


def close(function):
    def call(x, a):
        y = torch.broadcast_tensors(*x)
        return torch.as_tensor(function(*y, rtol=a.get("rtol", 1e-5), atol=a.get("atol", 1e-8),
                                        equal_nan=a.get("equal_nan", False)))
    return call


def cov(x, a):
    given = a.get("weights", "")
    extra = dict(zip(({"f": "fweights", "a": "aweights"}[w] for w in given), x[1:]))
    return torch.cov(real(x[0]), correction=int(a.get("correction", 1)), **extra)


def trapezoid(function):
    def call(x, a):
        y, axis = real(x[0]), a.get("axis", -1)
        if len(x) > 1:
            return function(y, real(x[1]), dim=axis)
        return function(y, dx=a.get("dx", 1.0), dim=axis)
    return call


def gradient(x, a):
    spacing = [real(t) for t in x[1:]] if len(x) > 1 else a.get("spacing", 1.0)
    y, dims = real(x[0]), a.get("axis")
    ours = []
    for at, d in enumerate(dims if dims is not None else range(y.dim())):
        here = [spacing[at]] if len(x) > 1 else spacing
        if len(x) > 1 and not y.requires_grad:
            ours += torch.gradient(y, spacing=[here[0]], dim=[d], edge_order=a.get("edge_order", 1))
        elif len(x) > 1:
            ours.append(uneven_gradient(y, here[0], d, a.get("edge_order", 1)))
        else:
            ours += torch.gradient(y, spacing=here, dim=[d], edge_order=a.get("edge_order", 1))
    return ours


def uneven_gradient(y, x, d, order):
    """torch.gradient is not differentiable with respect to positions: its formulas."""
    n = y.shape[d]
    shape = [1] * y.dim()
    shape[d] = n - 1
    w = (x[1:] - x[:-1]).reshape(shape)
    s, h = (lambda i: y.narrow(d, i % n, 1)), (lambda i: w.narrow(d, i % (n - 1), 1))
    if order == 1:
        first, last = (s(1) - s(0)) / h(0), (s(-1) - s(-2)) / h(-1)
    else:
        a, b, c, e = h(0), h(1), h(-2), h(-1)
        first = -(2 * a + b) / (a * (a + b)) * s(0) + (a + b) / (a * b) * s(1) - a / (b * (a + b)) * s(2)
        last = e / (c * (c + e)) * s(-3) - (e + c) / (c * e) * s(-2) + (2 * e + c) / (e * (c + e)) * s(-1)
    a, b = w.narrow(d, 0, n - 2), w.narrow(d, 1, n - 2)
    inner = -b / (a * (a + b)) * y.narrow(d, 0, n - 2) + (b - a) / (a * b) * y.narrow(d, 1, n - 2) + a / (
        b * (a + b)) * y.narrow(d, 2, n - 2)
    ours = torch.cat([first, inner, last], d)
    return checked(ours, lambda t, p: torch.gradient(t, spacing=[p], dim=[d], edge_order=order)[0], y, x)


def cdist(x, a):
    p = a.get("p", 2.0)
    ours = torch.linalg.vector_norm(x[0].unsqueeze(-2) - x[1].unsqueeze(-3), p, -1)
    return checked(ours, lambda s, t: torch.cdist(s, t, p, "donot_use_mm_for_euclid_dist"), *x)


def pdist(x, a):
    p, n = a.get("p", 2.0), x[0].shape[0]
    i, j = torch.triu_indices(n, n, 1)
    ours = torch.linalg.vector_norm(x[0][i] - x[0][j], p, -1)
    return checked(ours, lambda t: F.pdist(t, p), x[0])


def combinations(x, a):
    y = torch.combinations(x[0], a.get("r", 2), a.get("with_replacement", False))
    return y.reshape(-1, a.get("r", 2))


def vander(x, a):
    n = a.get("n", x[0].shape[-1])
    if n == 0:
        return torch.zeros(x[0].shape + (0,), dtype=x[0].dtype)
    powers = [torch.ones_like(x[0])]
    while len(powers) < n:
        powers.append(powers[-1] * x[0])
    return torch.stack(powers if a.get("increasing") else powers[::-1], -1)


def zeta(x, a):
    """torch.special.zeta has no gradient in s: Euler and Maclaurin's sum from 40 on."""
    s, q = torch.broadcast_tensors(*[real(t) for t in x])
    terms, numbers = 40, (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)
    end = q + terms
    total = sum((q + k) ** -s for k in range(terms)) + end ** (1 - s) / (s - 1) + end ** -s / 2
    factor = s * end ** (-s - 1)
    for j, number in enumerate(numbers):
        total = total + number * factor
        factor = factor * (s + 2 * j + 1) * (s + 2 * j + 2) / end ** 2
    return torch.where(s < 1, torch.tensor(math.nan, dtype=total.dtype), total)


def polygamma(x, a):
    """torch.polygamma(1) is wrong in the eleventh digit: the same sum, whose powers are of integers."""
    n, q, terms = a["n"], real(x[0]), 40
    if n == 0:
        return torch.digamma(q)
    end = q + terms
    total = sum((q + k) ** -(n + 1) for k in range(terms)) + end ** -n / n + end ** -(n + 1) / 2
    factor = (n + 1) * end ** (-n - 2)
    for j, number in enumerate((1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)):
        total = total + number * factor
        factor = factor * (n + 2 * j + 2) * (n + 2 * j + 3) / end ** 2
    return (-1) ** (n + 1) * math.factorial(n) * total


def multigammaln(x, a):
    """By Stirling's series from 30 on: the second derivative of torch.lgamma is that of torch.polygamma(1)."""
    y, p, terms = real(x[0]), a["p"], 30
    def log_gamma(t):
        end = t + terms
        series = 1 / (12 * end) - 1 / (360 * end ** 3) + 1 / (1260 * end ** 5) - 1 / (1680 * end ** 7)
        whole = (end - 0.5) * torch.log(end) - end + 0.5 * math.log(2 * math.pi) + series
        return whole - sum(torch.log(t + k) for k in range(terms))
    inside = y > (p - 1) / 2
    given = torch.where(inside, y, p + 1.0)
    ours = sum(log_gamma(given - i / 2) for i in range(p)) + p * (p - 1) / 4 * math.log(math.pi)
    ours = checked(ours, lambda t: torch.special.multigammaln(t, p), given)
    return torch.where(inside, ours, torch.tensor(math.nan, dtype=ours.dtype))


def xlog1py(x, a):
    return torch.special.xlog1py(*[real(t) for t in x])


def placed(t, order):
    return torch.gather(t, -1, order.unsqueeze(-2).expand(t.shape) if t.dim() > order.dim() else order)


def eig(vectors):
    """In order of real, then of imaginary parts; the largest element of each vector real and positive."""
    def call(x, a):
        w, v = torch.linalg.eig(x[0])
        n = w.shape[-1]
        if n:
            tensors = w.detach().reshape(-1, n)
            order = torch.tensor([sorted(range(n), key=lambda i: (row[i].real.item(), row[i].imag.item()))
                                  for row in tensors], dtype=torch.long).reshape(w.shape)
            w, v = placed(w, order), placed(v, order)
            largest = torch.gather(v, -2, v.detach().abs().argmax(-2, keepdim=True))
            v = v * (largest.abs() / largest)
        return [w.real, w.imag, v.real, v.imag] if vectors else [w.real, w.imag]
    return call


def of_factor(function):
    """PyTorch's gradients of the factor are not triangular."""
    def call(x, a):
        l = x[-1].triu().mT if a.get("upper") else x[-1].tril()
        return function(l @ l.mT, *x[:-1])
    return call


OPERATIONS = {
    **{n: plain(getattr(torch, n)) for n in (
        "negative abs sign square floor ceil trunc isnan logical_not logical_and logical_or logical_xor subtract "
        "multiply floor_divide remainder maximum minimum less less_equal greater greater_equal where matmul").split()},
    **{n: floating(getattr(torch, n)) for n in (
        "exp expm1 log log1p sqrt rsqrt sin cos tan tanh sigmoid erf reciprocal divide atan2").split()},
    "add": plain(torch.add),
    "equal": plain(torch.eq),
    "not_equal": plain(torch.ne),
    "pow": power,
    "astype": cast,
    "sum": reduction(summed),
    "mean": reduction(mean),
    "max": extremum(torch.max, torch.amax),
    "min": extremum(torch.min, torch.amin),
    "amax": reduction(torch.amax),
    "amin": reduction(torch.amin),
    "prod": reduction(prod),
    "var": spread(torch.var),
    "std": spread(torch.std),
    "any": truth(torch.any),
    "all": truth(torch.all),
    "count_nonzero": reduction(lambda t, dims, keep: torch.sum(t != 0, dims, keep).int()),
    "argmax": search(torch.argmax),
    "argmin": search(torch.argmin),
    "cumsum": scan(torch.cumsum),
    "cumulative_sum": cumulative_sum,
    "cumprod": scan(torch.cumprod),
    "cummax": lambda x, a: torch.cummax(x[0], a.get("axis", -1))[0],
    "cummin": lambda x, a: torch.cummin(x[0], a.get("axis", -1))[0],
    "logcumsumexp": lambda x, a: torch.logcumsumexp(x[0], a.get("axis", -1)),
    "logaddexp": plain(torch.logaddexp),
    "einsum": lambda x, a: torch.einsum(a["equation"], *x),
    "tensordot": tensordot,
    "vecdot": lambda x, a: (x[0] * x[1]).sum(a.get("axis", -1)).to(x[0].dtype),
    "outer": plain(torch.outer),
    "cross": lambda x, a: torch.cross(*torch.broadcast_tensors(*x), dim=a.get("axis", -1)),
    "diagonal": lambda x, a: torch.diagonal(x[0], a.get("offset", 0), a.get("axis1", -2), a.get("axis2", -1)),
    "trace": in_type(lambda x, a: summed(torch.diagonal(x[0], a.get("offset", 0), -2, -1), -1, False)),
    "tril": lambda x, a: torch.tril(x[0], a.get("k", 0)),
    "triu": lambda x, a: torch.triu(x[0], a.get("k", 0)),
    "vector_norm": lambda x, a: torch.linalg.vector_norm(x[0], float(a.get("ord", 2)), axes(a), a.get("keepdims", False)),
    "conv": convolution(False),
    "conv_transpose": convolution(True),
    "max_pool": pooling("max"),
    "avg_pool": pooling("avg"),
    "lp_pool": lp_pool,
    "max_pool_with_indices": pooling("max", True),
    "max_unpool": max_unpool,
    "adaptive_avg_pool": adaptive_pool("avg"),
    "adaptive_max_pool": adaptive_pool("max"),
    "adaptive_max_pool_with_indices": adaptive_pool("max", True),
    # images
    "grid_sample": grid_sample,
    "affine_grid": lambda x, a: F.affine_grid(x[0], a["size"], a.get("align_corners", False)),
    "pixel_shuffle": lambda x, a: F.pixel_shuffle(x[0], a["upscale_factor"]) if x[0].numel() else None,
    "pixel_unshuffle": lambda x, a: F.pixel_unshuffle(x[0], a["downscale_factor"]) if x[0].numel() else None,
    "channel_shuffle": lambda x, a: x[0].unflatten(1, (a["groups"], -1)).transpose(1, 2).flatten(1, 2)
    if x[0].numel() else None,
    "im2col": columns(F.unfold),
    "col2im": columns(F.fold),
    "softmax": along(torch.softmax),
    "log_softmax": along(torch.log_softmax),
    "logsumexp": logsumexp,
    "rms_norm": rms_norm,
    "layer_norm": layer_norm,
    **{n: plain(getattr(F, n)) for n in (
        "relu relu6 selu silu mish softsign hardswish tanhshrink").split()},
    **{n: renamed(getattr(F, n)) for n in "elu celu softplus leaky_relu".split()},
    "hardtanh": renamed(F.hardtanh, low="min_val", high="max_val"),
    "softshrink": renamed(F.softshrink, **{"lambda": "lambd"}),
    "hardshrink": renamed(F.hardshrink, **{"lambda": "lambd"}),
    "log_sigmoid": plain(F.logsigmoid),
    "hardsigmoid": lambda x, a: F.relu6(x[0] + 3) / 6,  # whose own has no second derivative
    "gelu": lambda x, a: F.gelu(x[0], approximate={"exact": "none"}.get(a.get("form", "exact"), "tanh")),
    "glu": lambda x, a: F.glu(x[0], a.get("axis", -1)),
    "prelu": lambda x, a: torch.where(x[0] > 0, x[0], x[0] * x[1]),
    "at": at,
    "take": take,
    "scatter_add": scatter_add,
    "mean_cross_entropy": cross_entropy,
    "cross_entropy": cross_entropy,
    "weighted_mean": weighted_mean,
    "lora_delta": lambda x, a: a["scale"] * ((x[0] @ x[1]) @ x[2]),
    "concatenate": lambda x, a: torch.cat(x, a.get("axis", 0)),
    "concat": lambda x, a: torch.cat([t.flatten() for t in x] if a.get("flat") else x, a.get("axis", 0)),
    "stack": lambda x, a: torch.stack(x, a.get("axis", 0)),
    "pad": pad,
    "reshape": lambda x, a: torch.reshape(x[0], a["shape"]),
    "permute_dims": lambda x, a: torch.permute(x[0], a["axes"]),
    "transpose": lambda x, a: x[0].transpose(-2, -1),
    "swapaxes": lambda x, a: torch.swapaxes(x[0], a["a"], a["b"]),
    "squeeze": lambda x, a: x[0].reshape([n for i, n in enumerate(x[0].shape) if n != 1 or "axis" in a and
                                          i not in [k % x[0].dim() for k in a["axis"]]]),
    "expand_dims": lambda x, a: torch.unsqueeze(x[0], a["axis"]),
    "broadcast_to": lambda x, a: torch.broadcast_to(x[0], a["shape"]),
    "slice": strided,
    "dynamic_slice": lambda x, a: x[0][window(x[0], a["starts"], a["sizes"])],
    "dynamic_update_slice": updated,
    "one_hot": lambda x, a: (x[0].long().unsqueeze(-1) == torch.arange(a["classes"])).to(TYPES[a["dtype"]["dtype"]]),
    "zeros": lambda x, a: torch.zeros(a["shape"], dtype=TYPES[a["dtype"]["dtype"]]),
    "ones": lambda x, a: torch.ones(a["shape"], dtype=TYPES[a["dtype"]["dtype"]]),
    "full": lambda x, a: torch.full(a["shape"], a["value"], dtype=torch.float64).to(TYPES[a["dtype"]["dtype"]]),
    "arange": arange,
    "linspace": linspace,
    "eye": lambda x, a: torch.from_numpy(np.eye(a["rows"], a["columns"], a["k"])).to(TYPES[a["dtype"]["dtype"]]),
    "iota": lambda x, a: torch.from_numpy(np.indices(a["shape"])[a["axis"]]).to(TYPES[a["dtype"]["dtype"]]),
    "empty": lambda x, a: torch.zeros(a["shape"], dtype=TYPES[a["dtype"]["dtype"]]),
    **{n + "_like": like(v) for n, v in (("zeros", 0), ("empty", 0), ("ones", 1), ("full", 1))},
    # functions
    **{n: floating(getattr(torch, n)) for n in (
        "acos asin atan deg2rad rad2deg cosh sinh acosh asinh atanh exp2 log2 log10 hypot xlogy copysign sinc erfinv "
        "digamma lgamma").split()},
    **{n: plain(getattr(torch, n)) for n in "signbit isfinite isinf positive fmax fmin fmod frac".split()},
    "erfc": lambda x, a: torch.erfc(real(x[0])),
    "logit": lambda x, a: torch.logit(real(x[0]), a.get("eps")),
    "heaviside": lambda x, a: None if x[0].requires_grad else torch.heaviside(*x),
    "nan_to_num": renamed(torch.nan_to_num, positive_infinity="posinf", negative_infinity="neginf"),
    "lerp": lambda x, a: torch.lerp(*[real(t) for t in torch.broadcast_tensors(*x)]),
    "clip": clip,
    # bitwise
    "bitwise_and": plain(torch.bitwise_and),
    "bitwise_or": plain(torch.bitwise_or),
    "bitwise_xor": plain(torch.bitwise_xor),
    "bitwise_invert": plain(torch.bitwise_not),
    "bitwise_left_shift": shift(torch.bitwise_left_shift),
    "bitwise_right_shift": shift(torch.bitwise_right_shift),
    # sorting
    "sort": lambda x, a: torch.sort(x[0], dim=a.get("axis", -1), descending=a.get("descending", False), stable=True)[0],
    "argsort": lambda x, a: torch.sort(x[0], dim=a.get("axis", -1), descending=a.get("descending", False),
                                       stable=True)[1].int(),
    "topk": lambda x, a: [t.to(x[0].dtype) for t in torch.topk(x[0], a["k"], a.get("axis", -1), a.get("largest", True))],
    "searchsorted": lambda x, a: torch.searchsorted(x[0], x[1], right=a.get("right", False),
                                                  sorter=x[2].long() if len(x) > 2 else None).int(),
    # order_statistics
    "quantile": quantile(torch.quantile),
    "nanquantile": quantile(torch.nanquantile, missing),
    "median": quantile(torch.quantile),
    "nanmedian": quantile(torch.nanquantile, missing),
    "median_with_indices": along_with_indices(torch.median),
    "kthvalue": lambda x, a: indexed(torch.kthvalue(x[0], a["k"], a.get("axis", -1), a.get("keepdims", False)), x[0]),
    "mode": mode,
    # random
    # manipulation
    "flip": lambda x, a: torch.flip(x[0], a.get("axes", list(range(x[0].dim())))),
    "roll": roll,
    "moveaxis": lambda x, a: torch.movedim(x[0], tuple(a["source"]), tuple(a["destination"])),
    "flatten": lambda x, a: torch.flatten(x[0], a.get("first", 0), a.get("last", -1)),
    "unflatten": lambda x, a: x[0].unflatten(a["axis"], a["extents"]),
    "unstack": lambda x, a: torch.unbind(x[0], a.get("axis", 0)),
    "split": lambda x, a: torch.split(x[0], a["sizes"] if "sizes" in a else a["size"], a.get("axis", 0)),
    "chunk": lambda x, a: torch.chunk(x[0], a["count"], a.get("axis", 0)),
    "meshgrid": lambda x, a: torch.meshgrid(*x, indexing=a.get("indexing", "xy")),
    "broadcast_arrays": lambda x, a: torch.broadcast_tensors(*x),
    "tile": lambda x, a: torch.tile(x[0], a["repeats"]),
    "repeat": repeat,
    "diag": lambda x, a: torch.diag(x[0], a["offset"]),
    "diag_embed": lambda x, a: torch.diag_embed(x[0], a["offset"], a.get("axis1", -2), a.get("axis2", -1)),
    "unfold": lambda x, a: x[0].unfold(a["axis"], a["size"], a["step"]),
    "diff": lambda x, a: torch.diff(x[0], a.get("n", 1), a.get("axis", -1), *x[1:]),
    "pad_reflect": continued("reflect", "reflect"),
    "pad_replicate": continued("replicate", "edge"),
    "pad_circular": continued("circular", "wrap"),
    # interpolation
    "interpolate": interpolate,
    # scatter
    "scatter": scatter("set"),
    "scatter_max": scatter("max"),
    "scatter_min": scatter("min"),
    "take_along_axis": lambda x, a: torch.take_along_dim(x[0], x[1].long(), a.get("axis", -1)),
    "put_along_axis": put_along_axis,
    "masked_fill": lambda x, a: x[0].masked_fill(x[1], a["value"]),
    "masked_select": masked_select,
    "nonzero": nonzero,
    "index": lambda x, a: x[0][tuple(i.long() for i in x[1:])],
    "index_put": index_put,
    # complex, fourier, short_time
    "view_as_complex": lambda x, a: [x[0][..., 0], x[0][..., 1]],
    "view_as_real": lambda x, a: x[0],
    "real": lambda x, a: x[0][..., 0],
    "imag": lambda x, a: x[0][..., 1],
    "conj": lambda x, a: torch.stack([x[0][..., 0], -x[0][..., 1]], -1),
    "angle": lambda x, a: torch.angle(complex_of(x[0])) if x[0].dtype in (torch.float32, torch.float64) else None,
    "from_polar": from_polar,
    **{n: fourier(n) for n in "fft ifft rfft irfft hfft ihfft".split()},
    **{n: fourier(n, False) for n in "fftn ifftn rfftn irfftn fft2 ifft2 rfft2 irfft2".split()},
    **{n: lambda x, a, n=n: getattr(torch.fft, n)(a["n"], a.get("d", 1.0), dtype=torch.float64).to(
        TYPES[a["dtype"]["dtype"]]) for n in ("fftfreq", "rfftfreq")},
    **{n: lambda x, a, n=n: getattr(torch.fft, n)(x[0], a.get("axes"))
       if x[0].dim() else x[0].clone() for n in ("fftshift", "ifftshift")},
    "stft": stft,
    "istft": istft,
    **{n: window_of(n) for n in "hann_window hamming_window blackman_window bartlett_window kaiser_window".split()},
    # take_put, groups
    "put": put,
    "index_fill": lambda x, a: torch.index_fill(x[0], a["axis"], x[1].long() % x[0].shape[a["axis"]], x[2]),
    "masked_scatter": masked_scatter,
    "unique": unique(torch.unique),
    "unique_consecutive": unique(torch.unique_consecutive),
    "unique_along": unique_along(torch.unique),
    "unique_consecutive_along": unique_along(torch.unique_consecutive),
    "bincount": bincount,
    "histc": lambda x, a: torch.histc(x[0].detach(), a["bins"], a["low"], a["high"]) if x[0].numel() else None,
    "histogram": histogram,
    "scatter_reduce": scatter_reduce,
    # layers
    "embedding_bag": embedding_bag,
    "linear": lambda x, a: F.linear(*x) if x[1].dim() == 2 else x[0] @ x[1] + (x[2] if len(x) > 2 else 0),
    "bilinear": lambda x, a: torch.einsum("...i,kij,...j->...k", x[0], x[2], x[1]) + (x[3] if len(x) > 3 else 0),
    "local_response_norm": lambda x, a: F.local_response_norm(x[0], a["size"], *(
        a.get(k, v) for k, v in (("alpha", 1e-4), ("beta", 0.75), ("k", 1.0)))) if x[0].numel() else None,
    "renorm": lambda x, a: torch.renorm(x[0], a["p"], a["axis"], a["maxnorm"]) if x[0].numel() else None,
    "alpha_dropout": drop,
    "rrelu": lambda x, a: F.leaky_relu(x[0], a["lower"]) if a.get("lower", 0) == a.get("upper") else None,
    # channel_normalization
    "batch_norm": batch_norm,
    "group_norm": lambda x, a: F.group_norm(x[0], a["groups"], *(list(x[1:]) + [None] * (3 - len(x))), a["eps"]),
    "instance_norm": lambda x, a: F.instance_norm(x[0], None, None, *(list(x[1:]) + [None] * (3 - len(x))),
                                                  eps=a["eps"]) if x[0].numel() else None,
    # network
    "scaled_dot_product_attention": attention,
    "causal_mask": lambda x, a: torch.ones(a["queries"], a["keys"], dtype=torch.bool).tril(a["offset"]),
    "dropout": drop,
    "channel_dropout": drop,
    "embedding": lambda x, a: F.embedding(x[1].long(), x[0], a.get("padding_idx")),
    # linalg
    "cholesky": lambda x, a: torch.linalg.cholesky(symmetric(x[0]), upper=a.get("upper", False)),
    "solve": lambda x, a: system(torch.linalg.solve)(x, a) if a.get("left", True) else torch.linalg.solve(*x, left=False),
    "solve_triangular": lambda x, a: system(lambda m, b: torch.linalg.solve_triangular(m, b, **{"upper": False, **a}))(x, a),
    **{n: plain(getattr(torch.linalg, n)) for n in "inv slogdet svdvals".split()},
    "det": lambda x, a: None if ((d := torch.linalg.det(x[0])).abs() < 1e-9).any() else d,  # its gradient fails there
    "qr": qr,
    "svd": svd,
    "eigh": eigh,
    "eigvalsh": lambda x, a: torch.linalg.eigvalsh(symmetric(x[0])),
    "pinv": lambda x, a: torch.linalg.pinv(symmetric(x[0]) if a.get("hermitian") else x[0], rtol=a.get("rtol"),
                                           atol=a.get("atol")),
    "matrix_rank": lambda x, a: torch.linalg.matrix_rank(
        symmetric(x[0]) if a.get("hermitian") else x[0], rtol=a.get("rtol"), atol=a.get("atol")).int()
    if x[0].numel() else None,
    "lstsq": lstsq,
    "matrix_norm": lambda x, a: torch.linalg.matrix_norm(x[0], order(a), keepdim=a.get("keepdims", False)),
    "cond": cond,
    "matrix_power": lambda x, a: torch.linalg.matrix_power(x[0], a["n"]),
    "matrix_transpose": lambda x, a: x[0].mT,
    # nan_reductions
    "round": rounded,
    "nansum": left(reduction(lambda t, d, k: torch.nansum(t, d, k) if t.is_floating_point() else summed(t, d, k))),
    "nanprod": lambda x, a: reduction(prod)([missing(x[0], 1.0)], a),
    "nanmean": left(reduction(lambda t, d, k: torch.nanmean(t if t.is_floating_point() else t.double(), d, k))),
    "nanvar": nan_spread(False),
    "nanstd": nan_spread(True),
    "nanmax": nan_extremum(-float("inf"), torch.max, torch.amax),
    "nanmin": nan_extremum(float("inf"), torch.min, torch.amin),
    # indexed_extrema
    "max_with_indices": along_with_indices(torch.max),
    "min_with_indices": along_with_indices(torch.min),
    "cummax_with_indices": cumulative_extremum(torch.cummax),
    "cummin_with_indices": cumulative_extremum(torch.cummin),
    "aminmax": lambda x, a: [reduction(torch.amin)(x, a), reduction(torch.amax)(x, a)],
    # analysis
    "isclose": close(torch.isclose),
    "allclose": close(torch.allclose),
    "isin": isin,
    "cov": cov,
    "corrcoef": lambda x, a: torch.corrcoef(real(x[0])),
    "trapezoid": trapezoid(torch.trapezoid),
    "cumulative_trapezoid": trapezoid(torch.cumulative_trapezoid),
    "gradient": gradient,
    "normalize": lambda x, a: F.normalize(x[0], a.get("p", 2.0), a.get("axis", 1), a.get("eps", 1e-12)),
    "cdist": cdist,
    "pdist": pdist,
    # special
    **{n: floating(getattr(torch.special, n)) for n in "i0 i0e i1 i1e erfcx ndtr log_ndtr ndtri entr".split()},
    "xlog1py": xlog1py,
    "igamma": lambda x, a: torch.special.gammainc(torch.full_like(real(x[0]), a.get("a", 1.0)), real(x[0])),
    "igammac": lambda x, a: torch.special.gammaincc(torch.full_like(real(x[0]), a.get("a", 1.0)), real(x[0])),
    "zeta": zeta,
    "polygamma": polygamma,
    "multigammaln": multigammaln,
    # matrix_functions
    "lu": lambda x, a: torch.linalg.lu(x[0]),
    "lu_factor": lambda x, a: [t.to(x[0].dtype) for t in torch.linalg.lu_factor(x[0])],
    "lu_solve": lambda x, a: torch.linalg.lu_solve(x[0], x[1], x[2].unsqueeze(-1) if x[2].dim() == 1 else x[2], **a).reshape(
        x[2].shape if x[0].dim() == 2 else x[0].shape[:-1] + x[2].shape[-1:]),
    "eigvals": eig(False),
    "eig": eig(True),
    "matrix_exp": plain(torch.linalg.matrix_exp),
    "cholesky_solve": of_factor(torch.linalg.solve),
    "cholesky_inverse": of_factor(torch.linalg.inv),
    "multi_dot": lambda x, a: functools.reduce(torch.matmul, x),
    "tensorinv": lambda x, a: torch.linalg.tensorinv(x[0].reshape((4, 2, 2) if "ind" in a else (2, 2, 4)), a.get("ind", 2)),
    "tensorsolve": lambda x, a: torch.linalg.tensorsolve(x[0].reshape(2, 3, 6), x[1].reshape(2, 3)),
    # compositions
    "kron": plain(torch.kron),
    "block_diag": lambda x, a: torch.block_diag(*x),
    "cartesian_prod": lambda x, a: torch.cartesian_prod(*x),
    "combinations": combinations,
    "vander": vander,
    "rot90": lambda x, a: torch.rot90(x[0], a.get("k", 1), a.get("axes", [0, 1])),
    # losses, regression, likelihoods, margins
    "nll_loss": nll_loss,
    "mse_loss": loss(F.mse_loss),
    "l1_loss": loss(F.l1_loss),
    "huber_loss": loss(F.huber_loss),
    "smooth_l1_loss": loss(F.smooth_l1_loss),
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "kl_div": loss(F.kl_div),
    "gaussian_nll_loss": loss(lambda x, t, var, **a: F.gaussian_nll_loss(x, t, var if var.dim() else var.expand(x.shape),
                                                                         **a)),
    "poisson_nll_loss": loss(F.poisson_nll_loss),
    "cosine_similarity": cosine_similarity,
    "pairwise_distance": lambda x, a: F.pairwise_distance(*x, **{{"keepdims": "keepdim"}.get(k, k): v
                                                                 for k, v in a.items()}),
    "hinge_embedding_loss": loss(F.hinge_embedding_loss, 1),
    "margin_ranking_loss": loss(lambda *x, **a: F.margin_ranking_loss(*torch.broadcast_tensors(*x), **a), 1),
    "soft_margin_loss": loss(F.soft_margin_loss, 1),
    "multilabel_soft_margin_loss": multilabel_soft_margin_loss,
    "multi_margin_loss": multi_margin_loss,
    "multilabel_margin_loss": multilabel_margin_loss,
    "ctc_loss": ctc_loss,
    "triplet_margin_loss": loss(F.triplet_margin_loss),
    "cosine_embedding_loss": cosine_embedding_loss,
}


def weights(tensor, position):
    values = [((i * 37 + position * 11) % 64) / 32 - 1 + 1 / 64 for i in range(tensor.numel())]
    return torch.tensor(values, dtype=torch.float64).reshape(tensor.shape)


def weighted(tensors):
    return sum((t.double() * weights(t, k)).sum() for k, t in enumerate(tensors))


def gradients(total, variables, create_graph=False):
    if not total.requires_grad:
        return [torch.zeros_like(v) for v in variables]
    found = torch.autograd.grad(total, variables, create_graph=create_graph, allow_unused=True)
    return [torch.zeros_like(v) if g is None else g for v, g in zip(variables, found)]


def record(call):
    function = OPERATIONS.get(call["op"])
    if function is None:
        return None
    operands, variables = [], []
    for operand in call["operands"]:
        t = torch.tensor(operand["values"], dtype=torch.float64).reshape(operand["shape"])
        t = t.to(TYPES[operand["dtype"]])
        if operand["varies"] and t.dtype == torch.float64 and call["gradient"]:
            t.requires_grad_()
            variables.append(t)
        operands.append(t)
    try:
        results = function(operands, call["arguments"])
    except RuntimeError as error:
        if "not implemented for" not in str(error):
            raise RuntimeError(f"{call['op']} {call['arguments']} {call['dtype']}: {error}") from error
        return None  # in this type
    if results is None:
        return None
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    if call["dtype"] == "uint32":
        results = [t & 0xFFFFFFFF if t.dtype == torch.int64 else t for t in results]
    first, second = [], []
    if variables and results[0].is_floating_point() and call["dtype"] == "float64":
        first = gradients(weighted(results), variables, True)
        second = gradients(weighted(first), variables)
    return results, first, second


def main():
    families, missing, count = {}, set(), 0
    for line in sys.stdin:
        call = json.loads(line)
        made = record(call)
        if made is None:
            missing.add(call["op"])
            continue
        key = f"{call['op']}/{call['sample']}/{call['dtype']}"
        row = {"key": key, "digest": call["digest"]}
        index, blob = families.setdefault(call["family"], ([], bytearray()))
        for part, tensors in zip(("results", "first", "second"), made):
            row[part] = [t.numel() for t in tensors]
            for t in tensors:
                # Gradients that are zero may be tensors without memory.
                t = torch.zeros(t.shape) if t._is_zerotensor() else t.detach()
                values = t.double().reshape(-1).tolist()
                blob += struct.pack(f"<{len(values)}d", *values)
        index.append(row)
        count += 1
    folder = pathlib.Path(__file__).parent / "values"
    for family, (index, blob) in families.items():
        text = json.dumps(index, separators=(",", ":")).encode()
        known = sorted(folder.rglob(f"{family}.golden"))
        (known[0] if known else folder / f"{family}.golden").write_bytes(b"caldera golden 1\n" + text + b"\n" + bytes(blob))
    print(f"{count} samples; without a counterpart: {', '.join(sorted(missing)) or 'none'}")


if __name__ == "__main__":
    main()
