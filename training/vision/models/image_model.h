// ImageModel: networks that classify images, by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lm/nn/module.h"
#include "training/vision/models/image_model_options.h"

namespace caldera::vision {

/// Lists names: lenet5, alexnet, vgg16, resnet18, resnet34, resnet50, densenet121, googlenet, mobilenet_v2,
/// vit_tiny.
std::vector<std::string> image_model_names();

/// Makes a network: (batch, channels, height, width) to logits (batch, classes). Parameters have
/// torchvision's names. Throws ValueError for a name that is none, and for images that are too small for the
/// network.
std::unique_ptr<Layer> make_image_model(std::string_view name, const ImageModelOptions& options = {});

/// Returns the least height and width that a network takes.
std::int64_t least_image_size(std::string_view name);

}  // namespace caldera::vision
