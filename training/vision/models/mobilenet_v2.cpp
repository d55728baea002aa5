// MobileNetV2 (Sandler et al. 2018), as torchvision has it.
#include <array>

#include "ops/nn/activations.h"
#include "training/vision/layers/layer_maker.h"
#include "training/vision/models/image_networks.h"

namespace caldera::vision {
namespace {

LayerPtr conv_norm(LayerMaker& make, std::int64_t in, std::int64_t out, std::int64_t kernel,
                   std::int64_t stride, std::int64_t groups) {
  auto part = std::make_unique<Chain>();
  part->add("0", make.conv(in, out, kernel,
                           {.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false}));
  part->add("1", make.norm(out)).then([](const LazyTensor& x) { return relu6(x); });
  return part;
}

/// Widens, filters each channel by itself, and narrows; x comes on top where sizes are the same.
class InvertedResidual final : public Layer {
 public:
  InvertedResidual(LayerMaker& make, std::int64_t in, std::int64_t out, std::int64_t stride,
                   std::int64_t factor)
      : adds_(stride == 1 && in == out) {
    const std::int64_t wide = in * factor;
    int at = 0;
    if (factor != 1) body_.add(std::to_string(at++), conv_norm(make, in, wide, 1, 1, 1));
    body_.add(std::to_string(at++), conv_norm(make, wide, wide, 3, stride, wide));
    body_.add(std::to_string(at++), make.conv(wide, out, 1, {.bias = false}));
    body_.add(std::to_string(at), make.norm(out));
  }
  LazyTensor forward(const LazyTensor& x) override {
    const LazyTensor y = body_.forward(x);
    return adds_ ? x + y : y;
  }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    visitor.module(join_name(prefix, "conv"), body_);
  }

 private:
  bool adds_;
  Chain body_;
};

}  // namespace

std::unique_ptr<Layer> mobilenet_v2(const ImageModelOptions& options) {
  LayerMaker make(options.device, options.seed);
  struct Stage {
    std::int64_t factor, width;
    int blocks;
    std::int64_t stride;
  };
  constexpr std::array<Stage, 7> kStages{{{1, 16, 1, 1},
                                          {6, 24, 2, 2},
                                          {6, 32, 3, 2},
                                          {6, 64, 4, 2},
                                          {6, 96, 3, 1},
                                          {6, 160, 3, 2},
                                          {6, 320, 1, 1}}};
  constexpr std::int64_t kLast = 1280;
  auto features = std::make_unique<Chain>();
  std::int64_t width = 32;
  int at = 0;
  features->add(std::to_string(at++), conv_norm(make, options.channels, width, 3, 2, 1));
  for (const Stage& stage : kStages) {
    for (int i = 0; i < stage.blocks; ++i) {
      features->add(std::to_string(at++),
                    std::make_unique<InvertedResidual>(make, width, stage.width, i == 0 ? stage.stride : 1,
                                                       stage.factor));
      width = stage.width;
    }
  }
  features->add(std::to_string(at), conv_norm(make, width, kLast, 1, 1, 1));
  auto classifier = std::make_unique<Chain>();
  classifier->add("0", make.dropout(0.2)).add("1", make.linear(kLast, options.classes));
  auto net = std::make_unique<Chain>();
  net->add("features", std::move(features)).then(global_average).add("classifier", std::move(classifier));
  return net;
}

}  // namespace caldera::vision
