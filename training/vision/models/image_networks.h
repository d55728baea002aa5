// Declares the networks, a source each. Private to training/vision/models/.
#pragma once

#include <memory>

#include "lm/nn/module.h"
#include "training/vision/models/image_model_options.h"

namespace caldera::vision {

std::unique_ptr<Layer> lenet5(const ImageModelOptions& options);
std::unique_ptr<Layer> alexnet(const ImageModelOptions& options);
std::unique_ptr<Layer> vgg16(const ImageModelOptions& options);
std::unique_ptr<Layer> resnet18(const ImageModelOptions& options);
std::unique_ptr<Layer> resnet34(const ImageModelOptions& options);
std::unique_ptr<Layer> resnet50(const ImageModelOptions& options);
std::unique_ptr<Layer> densenet121(const ImageModelOptions& options);
std::unique_ptr<Layer> googlenet(const ImageModelOptions& options);
std::unique_ptr<Layer> mobilenet_v2(const ImageModelOptions& options);
std::unique_ptr<Layer> vit_tiny(const ImageModelOptions& options);

}  // namespace caldera::vision
