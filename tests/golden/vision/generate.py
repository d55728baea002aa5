#!/usr/bin/env python3
"""Writes the first 50 losses of LeNet-5 and ResNet-18 by PyTorch: python3 tests/golden/vision/generate.py DATA

DATA has folders mnist (IDX, packed) and cifar10 (data_batch_1_first4000.bin). Weights follow from a formula, batches are the
first images in their order, the update is SGD with momentum: tests/training/vision/golden_losses_test.cpp does the same.
Made with PyTorch 1.13.0 and torchvision 0.14.1.
"""

import gzip
import json
import pathlib
import sys

import numpy
import torch
import torchvision

HERE = pathlib.Path(__file__).parent
STEPS = 50


def draws(seed, count):
    """Uniform numbers in [-1, 1): splitmix64 of seed * 2^32 + i, its upper 53 bits."""
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) * numpy.uint64(2**32) + numpy.arange(count, dtype=numpy.uint64)
        z = z * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    return 2 * ((z >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53) - 1


def set_weights(model, factor):
    """Matrices and kernels are uniform within sqrt(factor / fan in); the rest stays: ones and zeros, biases 0."""
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            if parameter.dim() < 2:
                if parameter.abs().max() != 1 or parameter.abs().min() != 1:
                    parameter.zero_()
                continue
            fan = parameter[0].numel()
            values = draws(number, parameter.numel()) * numpy.sqrt(factor / fan)
            parameter.copy_(torch.from_numpy(values.reshape(parameter.shape)))


def losses(model, factor, images, labels, batch, rate, dtype):
    model = model.to(dtype)
    set_weights(model, factor)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    values = []
    for step in range(STEPS):
        part = slice(step * batch, (step + 1) * batch)
        loss = torch.nn.functional.cross_entropy(model(images[part].to(dtype)), labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return values


def lenet():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


def normal(pixels, mean, deviation):
    return torch.from_numpy((pixels.astype(numpy.float32) / numpy.float32(255) - numpy.float32(mean)) / numpy.float32(deviation))


def main():
    data = pathlib.Path(sys.argv[1])
    pixels = numpy.frombuffer(gzip.open(data / "mnist/train-images-idx3-ubyte.gz").read(), numpy.uint8)[16:].reshape(-1, 1, 28, 28)
    labels = numpy.frombuffer(gzip.open(data / "mnist/train-labels-idx1-ubyte.gz").read(), numpy.uint8)[8:]
    records = numpy.frombuffer((data / "cifar10/data_batch_1_first4000.bin").read_bytes(), numpy.uint8).reshape(-1, 3073)
    mnist = (lenet, 1, normal(pixels[:3200], 0.1307, 0.3081), labels[:3200], 64)
    cifar = (lambda: torchvision.models.resnet18(num_classes=10), 6, normal(records[:800, 1:].reshape(-1, 3, 32, 32), 0.5, 0.25),
             records[:800, 0], 16)
    # Residual networks amplify roundings with each step: float32 and float64 of PyTorch itself are 1e-2 apart after 50 steps
    # at a rate of 1e-5, so that float32 is compared at a lower one.
    cases = {"lenet5": (mnist, {"float32": 0.05, "float64": 0.05}), "resnet18": (cifar, {"float32": 1e-7, "float64": 1e-5})}
    for name, ((make, factor, images, targets, batch), rates) in cases.items():
        targets = torch.from_numpy(targets.astype(numpy.int64))
        for dtype, rate in rates.items():
            found = {"batch": batch, "rate": rate, "factor": factor}
            found["losses"] = losses(make(), factor, images, targets, batch, rate, getattr(torch, dtype))
            print(name, dtype, "first", found["losses"][0], "last", found["losses"][-1])
            (HERE / f"{name}_{dtype}.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
