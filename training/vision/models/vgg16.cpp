// VGG-16, configuration D (Simonyan and Zisserman 2014), as torchvision has it.
#include <array>

#include "ops/nn/activations.h"
#include "ops/spatial/pooling.h"
#include "training/vision/layers/layer_maker.h"
#include "training/vision/models/image_networks.h"

namespace caldera::vision {

std::unique_ptr<Layer> vgg16(const ImageModelOptions& options) {
  LayerMaker make(options.device, options.seed);
  struct Stage {
    std::int64_t width;
    int convolutions;
  };
  constexpr std::array<Stage, 5> kStages{{{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}};
  auto features = std::make_unique<Chain>();
  std::int64_t width = options.channels;
  int at = 0;
  for (const Stage& stage : kStages) {
    for (int i = 0; i < stage.convolutions; ++i, at += 2) {
      features->add(std::to_string(at), make.conv(width, stage.width, 3, {.padding = 1})).then(rectified);
      width = stage.width;
    }
    features->then([](const LazyTensor& x) { return max_pool(x, {2}); });
    ++at;
  }
  auto classifier = std::make_unique<Chain>();
  classifier->add("0", make.linear(512 * 7 * 7, 4096)).then(rectified).add("2", make.dropout(0.5));
  classifier->add("3", make.linear(4096, 4096)).then(rectified).add("5", make.dropout(0.5));
  classifier->add("6", make.linear(4096, options.classes));
  auto net = std::make_unique<Chain>();
  net->add("features", std::move(features));
  net->then([](const LazyTensor& x) { return flat_rows(adaptive_average(x, 7, 7)); });
  net->add("classifier", std::move(classifier));
  return net;
}

}  // namespace caldera::vision
