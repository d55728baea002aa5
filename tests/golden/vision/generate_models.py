#!/usr/bin/env python3
"""Writes what networks of torchvision make of one image, with weights by a formula: python3 tests/golden/vision/generate_models.py

tests/training/vision/image_models_test.cpp reads models.json: for each network the SHA-256 of its parameters' names and shapes,
and the logits in evaluation mode. Of networks above 30 million parameters there are no logits. Made with torchvision 0.14.1.
"""

import hashlib
import json
import pathlib

import generate
import torch
import torchvision.models as models

SIZE = 64
WEIGHTS = {"googlenet": {"aux_logits": False, "init_weights": False}}


def described(state):
    lines = [f"{name} {'x'.join(map(str, value.shape))}\n" for name, value in sorted(state.items())
             if not name.endswith("num_batches_tracked")]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def main():
    found = {}
    image = torch.from_numpy(generate.draws(1000, 3 * SIZE * SIZE).reshape(1, 3, SIZE, SIZE)).float()
    for name in ("alexnet", "vgg16", "resnet18", "resnet34", "resnet50", "densenet121", "googlenet", "mobilenet_v2", "vit_tiny"):
        if name == "vit_tiny":
            model = models.VisionTransformer(image_size=SIZE, patch_size=16, num_layers=12, num_heads=3, hidden_dim=192,
                                             mlp_dim=768, num_classes=10)
        else:
            model = getattr(models, name)(num_classes=10, **WEIGHTS.get(name, {}))
        if name == "googlenet":
            model.transform_input = False
        found[name] = {"parameters": described(model.state_dict())}
        if sum(p.numel() for p in model.parameters()) > 30e6:
            continue
        generate.set_weights(model, 3)
        model.eval()
        with torch.no_grad():
            found[name]["logits"] = model(image)[0].tolist()
        print(name, found[name]["logits"][:3])
    (generate.HERE / "models.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
