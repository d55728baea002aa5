"""The PyTorch side of `caldera bench`: a process that runs one case at a time, as it is told over its standard input.

Requests and answers are JSON objects, a line each; benches/peer.h lists them. A case may be written in several ways
(VARIANTS below): `open` tries each and keeps the fastest, so that the figure is what a careful user would get.
"""
import json
import math
import os
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(json.dumps({"ready": False, "error": str(error)}), flush=True)
    sys.exit(0)

EPS = 1e-5

# On the GPU only where Caldera is on one, too.
ON_GPU = os.environ.get("CALDERA_PEER_DEVICE") == "gpu" and torch.cuda.is_available()
if ON_GPU:
    if hasattr(torch, "set_default_device"):
        torch.set_default_device("cuda")
    else:
        torch.set_default_tensor_type("torch.cuda.FloatTensor")


def library():
    where = ", " + torch.cuda.get_device_name() if ON_GPU else ""
    return "torch " + torch.__version__ + where


def finish():
    """Waits until the device has done what was asked of it."""
    if ON_GPU:
        torch.cuda.synchronize()


def dtype_of(case):
    return getattr(torch, case.get("dtype", "float32"))


def operands_of(case):
    scale = 0.05 if "matmul" in case["op"] or "linear" in case["op"] or case["op"] == "lora" else 1.0
    dtype = dtype_of(case)
    return [(torch.randn(shape) * (scale if i else 1.0)).to(dtype) for i, shape in enumerate(case.get("operands", []))]


# ---- Functions of tensors: op -> {variant: function(case, tensors)} ------------------------------------------------


def lora_plain(case, t):
    delta = case["scale"] * ((t[0] @ t[1]) @ t[2])
    return t[0] @ t[3] + delta if len(t) > 3 else delta


def lora_addmm(case, t):
    x = t[0].reshape(-1, t[0].shape[-1])
    if len(t) > 3:
        y = torch.addmm(x @ t[3], x @ t[1], t[2], alpha=case["scale"])
    else:
        y = (x @ t[1] * case["scale"]) @ t[2]
    return y.view(*t[0].shape[:-1], -1)


def lora_in_place(case, t):
    if len(t) < 4:
        return lora_addmm(case, t)
    x = t[0].reshape(-1, t[0].shape[-1])
    y = (x @ t[3]).addmm_(x @ t[1], t[2], alpha=case["scale"])
    return y.view(*t[0].shape[:-1], -1)


def rms_norm(case, t):
    y = t[0] * torch.rsqrt(t[0].pow(2).mean(-1, keepdim=True) + EPS)
    return y * t[1] if len(t) > 1 else y


def rms_norm_by_norm(case, t):
    x = t[0]
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    y = x * torch.rsqrt(norm * norm * (1.0 / x.shape[-1]) + EPS)
    return y * t[1] if len(t) > 1 else y


def rms_norm_in_place(case, t):
    x = t[0]
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    y = x * norm.square_().mul_(1.0 / x.shape[-1]).add_(EPS).rsqrt_()
    return y.mul_(t[1]) if len(t) > 1 else y


def rms_norm_builtin(case, t):
    return F.rms_norm(t[0], t[0].shape[-1:], t[1] if len(t) > 1 else None, EPS)


def add_chain(case, t):
    y = t[0] + t[1]
    for _ in range(case["length"] - 1):
        y = y + t[1]
    return y


def add_chain_in_place(case, t):
    y = t[0] + t[1]
    for _ in range(case["length"] - 1):
        y += t[1]
    return y


def chain8(case, t):
    y = t[0]
    for _ in range(4):
        y = y * 1.0625 + 0.25
    return y


def chain8_in_place(case, t):
    y = t[0] * 1.0625
    y.add_(0.25)
    for _ in range(3):
        y.mul_(1.0625).add_(0.25)
    return y


def rotary(case, t):
    half = t[0].shape[-1] // 2
    return t[0] * t[1] + torch.cat([-t[0][..., half:], t[0][..., :half]], -1) * t[2]


def rotary_in_place(case, t):
    half = t[0].shape[-1] // 2
    y = t[0] * t[1]
    y[..., :half].addcmul_(t[0][..., half:], t[2][..., :half], value=-1)
    y[..., half:].addcmul_(t[0][..., :half], t[2][..., half:])
    return y


def reduction(function):
    def run(case, t):
        return function(t[0], case["axis"]) if "axis" in case else function(t[0])

    return {"": run}


def causal_mask(case, length):
    """Minus infinity above the diagonal; made once a case."""
    if "mask" not in case:
        case["mask"] = torch.full((length, length), float("-inf")).triu(1).to(dtype_of(case))
    return case["mask"]


def attention(case, t):
    q, k, v = t
    scores = (q @ k.transpose(-1, -2)) * (1 / math.sqrt(q.shape[-1]))
    if case.get("causal"):
        scores = scores + causal_mask(case, q.shape[-2])
    return torch.softmax(scores, -1) @ v


def attention_baddbmm(case, t):
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in t)
    scale = 1 / math.sqrt(q.shape[-1])
    if case.get("causal"):
        mask = causal_mask(case, q.shape[-2])
        scores = torch.baddbmm(mask.expand(q.shape[0], -1, -1), q, k.transpose(1, 2), alpha=scale)
    else:
        scores = torch.bmm(q * scale, k.transpose(1, 2))
    return torch.bmm(torch.softmax(scores, -1), v).view(t[0].shape)


def attention_builtin(case, t):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(*t, is_causal=bool(case.get("causal")))
    mask = causal_mask(case, t[0].shape[-2]) if case.get("causal") else None
    result = F._scaled_dot_product_attention(*t, mask) if mask is not None else F._scaled_dot_product_attention(*t)
    return result[0] if isinstance(result, tuple) else result


def indices(case):
    """The integers that Caldera uses in the same case; made once."""
    if "made_indices" not in case:
        case["made_indices"] = torch.arange(case["indices"], dtype=torch.int64) * 7919 % case["index_limit"]
    return case["made_indices"]


FUNCTIONS = {
    "lora": {"": lora_plain, "addmm": lora_addmm, "addmm in place": lora_in_place},
    "softmax": {"": lambda c, t: torch.softmax(t[0], -1)},
    "log_softmax": {"": lambda c, t: torch.log_softmax(t[0], -1)},
    "rms_norm": {
        "": rms_norm,
        "vector_norm": rms_norm_by_norm,
        "in place": rms_norm_in_place,
        "built in": rms_norm_builtin,
    },
    "layer_norm": {"": lambda c, t: F.layer_norm(t[0], t[0].shape[-1:], t[1], t[2], EPS)},
    "add_chain": {"": add_chain, "in place": add_chain_in_place},
    "add": {"": lambda c, t: t[0] + t[1]},
    "mul": {"": lambda c, t: t[0] * t[1]},
    "scale": {"": lambda c, t: t[0] * 1.5},
    "exp": {"": lambda c, t: torch.exp(t[0])},
    "tanh": {"": lambda c, t: torch.tanh(t[0])},
    "tan": {"": lambda c, t: torch.tan(t[0])},
    "asin": {"": lambda c, t: torch.asin(t[0])},
    "acos": {"": lambda c, t: torch.acos(t[0])},
    "atan": {"": lambda c, t: torch.atan(t[0])},
    "atan2": {"": lambda c, t: torch.atan2(t[0], t[1])},
    "remainder": {"": lambda c, t: torch.remainder(t[0], t[1])},
    "floor_divide": {"": lambda c, t: torch.floor_divide(t[0], t[1])},
    "sigmoid": {"": lambda c, t: torch.sigmoid(t[0])},
    "gelu": {"": lambda c, t: F.gelu(t[0])},
    "silu": {"": lambda c, t: F.silu(t[0])},
    "chain8": {"": chain8, "in place": chain8_in_place},
    "swiglu": {"": lambda c, t: F.silu(t[0]) * t[1], "in place": lambda c, t: F.silu(t[0]).mul_(t[1])},
    "rotary": {"": rotary, "in place": rotary_in_place},
    "sum": reduction(torch.sum),
    "max": reduction(torch.amax),
    "mean_square": {
        "": lambda c, t: t[0].square().mean(),
        "dot": lambda c, t: torch.dot(t[0].view(-1), t[0].view(-1)) / t[0].numel(),
    },
    "matmul": {"": lambda c, t: t[0] @ t[1]},
    "matmul_tn": {"": lambda c, t: t[0].transpose(-1, -2) @ t[1]},
    "matmul_nt": {"": lambda c, t: t[0] @ t[1].transpose(-1, -2)},
    "linear_gelu": {"": lambda c, t: F.gelu(torch.addmm(t[2], t[0], t[1]))},
    "linear_residual": {
        "": lambda c, t: t[3] + torch.addmm(t[2], t[0], t[1]),
        "addmm in place": lambda c, t: (t[3] + t[2]).addmm_(t[0], t[1]),
    },
    "attention": {"": attention, "baddbmm": attention_baddbmm, "built in": attention_builtin},
    "take": {
        "index_select": lambda c, t: t[0].index_select(0, indices(c)),
        "embedding": lambda c, t: F.embedding(indices(c), t[0]),
    },
    "scatter_add": {"index_add": lambda c, t: t[0].index_add(0, indices(c), t[1])},
    "nll_loss": {"": lambda c, t: F.nll_loss(t[0], indices(c))},
    "sort": {"": lambda c, t: torch.sort(t[0])[0]},
    "median": {"": lambda c, t: torch.quantile(t[0], 0.5, -1), "lower": lambda c, t: torch.median(t[0], -1)[0]},
    "topk": {"": lambda c, t: torch.topk(t[0], c["k"])[0]},
    "max_pool2d": {"": lambda c, t: F.max_pool2d(t[0], c["kernel"], c["stride"], c["padding"])},
    "conv2d": {"": lambda c, t: F.conv2d(t[0], t[1], padding=c["padding"], groups=c["groups"])},
    "conv_transpose3d": {"": lambda c, t: F.conv_transpose3d(t[0], t[1], stride=c["stride"])},
    "cross_entropy": {"": lambda c, t: F.cross_entropy(t[0], indices(c))},
    "concatenate": {"": lambda c, t: torch.cat(t, c["axis"])},
    "transpose_add": {"": lambda c, t: t[0].t().contiguous().add_(1.0), "strided": lambda c, t: t[0].t() + 1.0},
    "swap_heads_add": {
        "": lambda c, t: t[0].permute(0, 2, 1, 3).contiguous().add_(1.0),
        "strided": lambda c, t: t[0].permute(0, 2, 1, 3) + 1.0,
    },
    "cast": {"": lambda c, t: t[0].to(getattr(torch, c["to"]))},
    "randn": {"": lambda c, t: torch.randn(c["shape"])},
}


def function_variants(case):
    """{variant: callable without arguments} of a function, or of its loss and gradients."""
    tensors = operands_of(case)
    count = case.get("gradients", 0)
    functions = FUNCTIONS[case["op"]]
    if count == 0:
        return {name: lambda function=function: function(case, tensors) for name, function in functions.items()}

    leaves = [x.requires_grad_(i < count) for i, x in enumerate(tensors)]
    with torch.no_grad():
        cotangent = torch.randn_like(next(iter(functions.values()))(case, leaves))

    def with_gradient(function):
        y = function(case, leaves)
        return torch.autograd.grad((y * cotangent).sum(), leaves[:count])

    return {name: lambda function=function: with_gradient(function) for name, function in functions.items()}


# ---- The language model --------------------------------------------------------------------------------------------


class Llama:
    """The decoder of Hugging Face's LlamaForCausalLM, written out; LoRA on the query and value projections.

    In 16 bits it is mixed precision: frozen weights and activations have the type, what is trained stays float32 and
    is converted where it is used, and norms and the loss are computed in float32."""

    def __init__(self, case, lora):
        d, inner, vocabulary = case["hidden"], case["intermediate"], case["vocabulary"]
        self.heads = case["heads"]
        self.width = d // self.heads
        self.rank_scale = 16 / case["rank"]
        self.prompt, self.generated = case.get("prompt", 0), case.get("generated", 0)
        frozen = lora
        self.dtype = dtype_of(case)
        stored = self.dtype if frozen else torch.float32

        def matrix(rows, columns):
            return (torch.randn(rows, columns) * 0.02).to(stored).requires_grad_(not frozen)

        self.embedding = matrix(vocabulary, d)
        self.head = matrix(vocabulary, d)
        self.norm = torch.ones(d, dtype=stored, requires_grad=not frozen)
        self.layers = []
        for _ in range(case["layers"]):
            layer = {name: matrix(d, d) for name in ("q", "k", "v", "o")}
            layer.update(gate=matrix(inner, d), up=matrix(inner, d), down=matrix(d, inner))
            layer.update({n: torch.ones(d, dtype=stored, requires_grad=not frozen) for n in ("norm1", "norm2")})
            if lora:
                for name in ("q", "v"):
                    layer[name + "_a"] = (torch.randn(case["rank"], d) * 0.02).requires_grad_()
                    layer[name + "_b"] = (torch.randn(d, case["rank"]) * 0.02).requires_grad_()
            self.layers.append(layer)
        length = case["length"]
        angles = torch.outer(torch.arange(length), 10000 ** (-torch.arange(0, self.width, 2) / self.width))
        self.cos = torch.cat([angles.cos()] * 2, -1).to(self.dtype)
        self.sin = torch.cat([angles.sin()] * 2, -1).to(self.dtype)
        self.mask = torch.full((length, length), float("-inf")).triu(1).to(self.dtype)
        tokens = torch.arange(case["batch"] * length)
        self.ids = (tokens * 7919 + 11).remainder(vocabulary).view(case["batch"], length)
        self.targets = (tokens * 104729 + 11).remainder(vocabulary)

    def parameters(self):
        everything = [self.embedding, self.head, self.norm] + [w for layer in self.layers for w in layer.values()]
        return [w for w in everything if w.requires_grad]

    def linear(self, x, weight):
        return F.linear(x, weight.to(self.dtype))

    def project(self, layer, name, x):
        y = self.linear(x, layer[name])
        if name + "_a" in layer:
            y = y + self.rank_scale * self.linear(self.linear(x, layer[name + "_a"]), layer[name + "_b"])
        return y

    def rms(self, x, weight):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(self.dtype) * weight.to(self.dtype)

    def rotate(self, x, start=0):
        half = self.width // 2
        cos, sin = (table[start : start + x.shape[-2]] for table in (self.cos, self.sin))
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def decode(self):
        """Greedy, with the keys and values of earlier tokens kept: the prompt at once, then token by token."""
        shape = (1, self.heads, self.prompt + self.generated, self.width)
        caches = [(torch.empty(shape), torch.empty(shape)) for _ in self.layers]
        ids, start = self.ids[:1, : self.prompt], 0
        chosen = []
        for _ in range(self.generated):
            end = start + ids.shape[1]
            x = F.embedding(ids, self.embedding)
            for layer, (keys, values) in zip(self.layers, caches):
                h = self.rms(x, layer["norm1"])
                q, k, v = (
                    F.linear(h, layer[name]).view(1, end - start, self.heads, self.width).transpose(1, 2)
                    for name in ("q", "k", "v")
                )
                q, keys[:, :, start:end] = self.rotate(q, start), self.rotate(k, start)
                values[:, :, start:end] = v
                scores = q @ keys[:, :, :end].transpose(-1, -2) * (1 / math.sqrt(self.width))
                if ids.shape[1] > 1:
                    scores = scores + self.mask[start:end, :end]
                mixed = (torch.softmax(scores, -1) @ values[:, :, :end]).transpose(1, 2).reshape(x.shape)
                x = x + F.linear(mixed, layer["o"])
                h = self.rms(x, layer["norm2"])
                x = x + F.linear(F.silu(F.linear(h, layer["gate"])) * F.linear(h, layer["up"]), layer["down"])
            logits = F.linear(self.rms(x[:, -1:], self.norm), self.head)
            ids, start = logits.argmax(-1), end
            chosen.append(ids.item())
        return chosen

    def loss(self):
        x = F.embedding(self.ids, self.embedding).to(self.dtype)
        batch, length, d = x.shape
        for layer in self.layers:
            h = self.rms(x, layer["norm1"])
            q, k, v = (
                self.project(layer, name, h).view(batch, length, self.heads, self.width).transpose(1, 2)
                for name in ("q", "k", "v")
            )
            q, k = self.rotate(q), self.rotate(k)
            scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(self.width)) + self.mask
            mixed = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, length, d)
            x = x + self.linear(mixed, layer["o"])
            h = self.rms(x, layer["norm2"])
            x = x + self.linear(F.silu(self.linear(h, layer["gate"])) * self.linear(h, layer["up"]), layer["down"])
        logits = self.linear(self.rms(x, self.norm), self.head)
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), self.targets)


def llama_variants(case):
    model = Llama(case, lora=case["part"] == "lora_step")
    if case["part"] == "forward":

        def forward():
            with torch.no_grad():
                return model.loss()

        return {"": forward}

    if case["part"] == "decode":

        def decode():
            with torch.inference_mode():
                return model.decode()

        return {"": decode}

    def step(optimizer):
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss()
        loss.backward()
        optimizer.step()
        return loss

    variants = {}
    for foreach in (False, True):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, foreach=foreach)
        variants["foreach" if foreach else ""] = lambda optimizer=optimizer: step(optimizer)
    return variants


# ---- Measuring -----------------------------------------------------------------------------------------------------


def seconds_of(run, iterations):
    finish()
    start = time.perf_counter()
    for _ in range(iterations):
        run()
        finish()  # Caldera's iterations are waited for one by one
    return (time.perf_counter() - start) / iterations


SLOW = 2.0  # seconds, beside which warming up is nothing: some types have no fast code on some processors


def trial(run):
    """Seconds an iteration, once it is warm: the best of a few short stretches."""
    cold = seconds_of(run, 1)
    if cold > SLOW:
        return cold
    first = seconds_of(run, 1)
    iterations = max(1, min(10000, int(0.01 / max(first, 1e-9))))
    return min(seconds_of(run, iterations) for _ in range(3 if first < 0.01 else 1))


def open_case(case):
    variants = llama_variants(case) if case["op"] == "llama" else function_variants(case)
    best, failures = None, []
    for name, run in variants.items():
        try:
            seconds = trial(run)
        except Exception as error:  # a way that this version of the library does not have, or cannot differentiate
            if str(error) not in failures:
                failures.append(str(error))
            continue
        if best is None or seconds < best[0]:
            best = (seconds, name, run)
    if best is None:
        raise RuntimeError("; ".join(failures))
    return best


def main():
    torch.manual_seed(1)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    print(json.dumps({"ready": True, "library": library()}), flush=True)
    run = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            answer = {"ok": True}
            if request["do"] == "open":
                gradients = request["case"].get("gradients", 0) or request["case"]["op"] == "llama"
                torch.set_grad_enabled(bool(gradients))
                seconds, variant, run = open_case(request["case"])
                answer.update(seconds=seconds, variant=variant)
            elif request["do"] == "run":
                if seconds < SLOW:
                    run()
                answer.update(seconds=seconds_of(run, request["iterations"]))
            elif request["do"] == "close":
                run = None
            else:
                raise ValueError("unknown request: " + str(request["do"]))
        except Exception as error:
            answer = {"ok": False, "error": "%s: %s" % (type(error).__name__, error)}
        print(json.dumps(answer), flush=True)


main()
