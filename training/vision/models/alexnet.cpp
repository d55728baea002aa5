// AlexNet, in the form of "One weird trick" (Krizhevsky 2014), as torchvision has it.
#include "ops/nn/activations.h"
#include "ops/spatial/pooling.h"
#include "training/vision/layers/layer_maker.h"
#include "training/vision/models/image_networks.h"

namespace caldera::vision {

std::unique_ptr<Layer> alexnet(const ImageModelOptions& options) {
  LayerMaker make(options.device, options.seed);
  const auto pool = [](const LazyTensor& x) { return max_pool(x, {3}, {.stride = {2}}); };
  auto features = std::make_unique<Chain>();
  features->add("0", make.conv(options.channels, 64, 11, {.stride = 4, .padding = 2}))
      .then(rectified)
      .then(pool);
  features->add("3", make.conv(64, 192, 5, {.padding = 2})).then(rectified).then(pool);
  features->add("6", make.conv(192, 384, 3, {.padding = 1})).then(rectified);
  features->add("8", make.conv(384, 256, 3, {.padding = 1})).then(rectified);
  features->add("10", make.conv(256, 256, 3, {.padding = 1})).then(rectified).then(pool);
  auto classifier = std::make_unique<Chain>();
  classifier->add("0", make.dropout(0.5)).add("1", make.linear(256 * 6 * 6, 4096)).then(rectified);
  classifier->add("3", make.dropout(0.5)).add("4", make.linear(4096, 4096)).then(rectified);
  classifier->add("6", make.linear(4096, options.classes));
  auto net = std::make_unique<Chain>();
  net->add("features", std::move(features));
  net->then([](const LazyTensor& x) { return flat_rows(adaptive_average(x, 6, 6)); });
  net->add("classifier", std::move(classifier));
  return net;
}

}  // namespace caldera::vision
