// DenseNet-121 (Huang et al. 2017), as torchvision has it.
#include <array>

#include "ops/nn/activations.h"
#include "ops/shape/joining.h"
#include "ops/spatial/pooling.h"
#include "training/vision/layers/layer_maker.h"
#include "training/vision/models/image_networks.h"

namespace caldera::vision {
namespace {

constexpr std::int64_t kGrowth = 32;
constexpr std::int64_t kBottleneck = 4 * kGrowth;

/// Puts what it makes behind what it takes.
class DenseLayer final : public Layer {
 public:
  explicit DenseLayer(LayerPtr body) : body_(std::move(body)) {}
  LazyTensor forward(const LazyTensor& x) override { return concatenate({x, body_->forward(x)}, 1); }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    visitor.module(prefix, *body_);
  }

 private:
  LayerPtr body_;
};

LayerPtr dense_layer(LayerMaker& make, std::int64_t in) {
  auto body = std::make_unique<Chain>();
  body->add("norm1", make.norm(in)).then(rectified);
  body->add("conv1", make.conv(in, kBottleneck, 1, {.bias = false}));
  body->add("norm2", make.norm(kBottleneck)).then(rectified);
  body->add("conv2", make.conv(kBottleneck, kGrowth, 3, {.padding = 1, .bias = false}));
  return std::make_unique<DenseLayer>(std::move(body));
}

}  // namespace

std::unique_ptr<Layer> densenet121(const ImageModelOptions& options) {
  LayerMaker make(options.device, options.seed);
  constexpr std::array<int, 4> kLayers{6, 12, 24, 16};
  auto features = std::make_unique<Chain>();
  features->add("conv0", make.conv(options.channels, 64, 7, {.stride = 2, .padding = 3, .bias = false}));
  features->add("norm0", make.norm(64)).then(rectified);
  features->then([](const LazyTensor& x) { return max_pool(x, {3}, {.stride = {2}, .padding = {1}}); });
  std::int64_t width = 64;
  for (std::size_t block = 0; block < kLayers.size(); ++block) {
    auto dense = std::make_unique<Chain>();
    for (int i = 1; i <= kLayers[block]; ++i, width += kGrowth)
      dense->add("denselayer" + std::to_string(i), dense_layer(make, width));
    features->add("denseblock" + std::to_string(block + 1), std::move(dense));
    if (block + 1 == kLayers.size()) break;
    auto transition = std::make_unique<Chain>();
    transition->add("norm", make.norm(width)).then(rectified);
    transition->add("conv", make.conv(width, width / 2, 1, {.bias = false}));
    transition->then([](const LazyTensor& x) { return avg_pool(x, {2}); });
    features->add("transition" + std::to_string(block + 1), std::move(transition));
    width /= 2;
  }
  features->add("norm5", make.norm(width)).then(rectified);
  auto net = std::make_unique<Chain>();
  net->add("features", std::move(features)).then(global_average);
  net->add("classifier", make.linear(width, options.classes));
  return net;
}

}  // namespace caldera::vision
