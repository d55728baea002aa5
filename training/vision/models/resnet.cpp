// Residual networks (He et al. 2015), as torchvision has them: the stride of a bottleneck is in its 3x3.
#include <array>

#include "ops/nn/activations.h"
#include "ops/spatial/pooling.h"
#include "training/vision/layers/layer_maker.h"
#include "training/vision/models/image_networks.h"

namespace caldera::vision {
namespace {

/// Adds what two or three convolutions make of x to x, or to a projection of it where sizes differ.
class Residual final : public Layer {
 public:
  Residual(LayerPtr body, LayerPtr shortcut) : body_(std::move(body)), shortcut_(std::move(shortcut)) {}

  LazyTensor forward(const LazyTensor& x) override {
    return relu(body_->forward(x) + (shortcut_ ? shortcut_->forward(x) : x));
  }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    visitor.module(prefix, *body_);
    if (shortcut_) visitor.module(join_name(prefix, "downsample"), *shortcut_);
  }

 private:
  LayerPtr body_, shortcut_;
};

struct ResNetForm {
  std::array<int, 4> blocks;
  bool bottleneck;
};

LayerPtr residual(LayerMaker& make, std::int64_t in, std::int64_t width, std::int64_t stride,
                  bool bottleneck) {
  const std::int64_t out = bottleneck ? 4 * width : width;
  auto body = std::make_unique<Chain>();
  const auto part = [&](const char* number, LayerPtr conv, std::int64_t channels) {
    body->add(std::string("conv") + number, std::move(conv));
    body->add(std::string("bn") + number, make.norm(channels));
  };
  if (bottleneck) {
    part("1", make.conv(in, width, 1, {.bias = false}), width);
    body->then(rectified);
    part("2", make.conv(width, width, 3, {.stride = stride, .padding = 1, .bias = false}), width);
    body->then(rectified);
    part("3", make.conv(width, out, 1, {.bias = false}), out);
  } else {
    part("1", make.conv(in, width, 3, {.stride = stride, .padding = 1, .bias = false}), width);
    body->then(rectified);
    part("2", make.conv(width, width, 3, {.padding = 1, .bias = false}), width);
  }
  std::unique_ptr<Chain> shortcut;
  if (stride != 1 || in != out) {
    shortcut = std::make_unique<Chain>();
    shortcut->add("0", make.conv(in, out, 1, {.stride = stride, .bias = false})).add("1", make.norm(out));
  }
  return std::make_unique<Residual>(std::move(body), std::move(shortcut));
}

std::unique_ptr<Layer> resnet(const ImageModelOptions& options, const ResNetForm& form) {
  LayerMaker make(options.device, options.seed);
  const bool small = options.is_small();
  auto net = std::make_unique<Chain>();
  net->add("conv1", small ? make.conv(options.channels, 64, 3, {.padding = 1, .bias = false})
                          : make.conv(options.channels, 64, 7, {.stride = 2, .padding = 3, .bias = false}));
  net->add("bn1", make.norm(64)).then(rectified);
  if (!small)
    net->then([](const LazyTensor& x) { return max_pool(x, {3}, {.stride = {2}, .padding = {1}}); });
  std::int64_t in = 64, width = 64;
  for (std::size_t stage = 0; stage < form.blocks.size(); ++stage, width *= 2) {
    auto layer = std::make_unique<Chain>();
    for (int i = 0; i < form.blocks[stage]; ++i) {
      layer->add(std::to_string(i), residual(make, in, width, i == 0 && stage > 0 ? 2 : 1, form.bottleneck));
      in = form.bottleneck ? 4 * width : width;
    }
    net->add("layer" + std::to_string(stage + 1), std::move(layer));
  }
  net->then(global_average).add("fc", make.linear(in, options.classes));
  return net;
}

}  // namespace

std::unique_ptr<Layer> resnet18(const ImageModelOptions& options) {
  return resnet(options, {{2, 2, 2, 2}, false});
}
std::unique_ptr<Layer> resnet34(const ImageModelOptions& options) {
  return resnet(options, {{3, 4, 6, 3}, false});
}
std::unique_ptr<Layer> resnet50(const ImageModelOptions& options) {
  return resnet(options, {{3, 4, 6, 3}, true});
}

}  // namespace caldera::vision
