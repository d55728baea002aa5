// GoogLeNet (Szegedy et al. 2014) as torchvision has it: normalised, with 3x3 in the place of 5x5, and
// without its two heads for training.
#include "ops/nn/activations.h"
#include "ops/shape/joining.h"
#include "ops/spatial/pooling.h"
#include "training/vision/layers/layer_maker.h"
#include "training/vision/models/image_networks.h"

namespace caldera::vision {
namespace {

LayerPtr basic(LayerMaker& make, std::int64_t in, std::int64_t out, std::int64_t kernel,
               std::int64_t stride = 1) {
  auto part = std::make_unique<Chain>();
  part->add("conv", make.conv(in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false}));
  part->add("bn", make.norm(out, 0.001)).then(rectified);
  return part;
}

LazyTensor halved(const LazyTensor& x, std::int64_t kernel) {
  return max_pool(x, {kernel}, {.stride = {2}, .ceil_mode = true});
}

/// The widths of a module: of its branches, and ahead of the 3x3.
struct InceptionWidths {
  std::int64_t one, three_before, three, five_before, five, pool;
  std::int64_t out() const { return one + three + five + pool; }
};

/// Joins four branches' channels.
class Inception final : public Layer {
 public:
  Inception(LayerMaker& make, std::int64_t in, const InceptionWidths& w) : one_(basic(make, in, w.one, 1)) {
    three_.add("0", basic(make, in, w.three_before, 1)).add("1", basic(make, w.three_before, w.three, 3));
    five_.add("0", basic(make, in, w.five_before, 1)).add("1", basic(make, w.five_before, w.five, 3));
    pool_.then([](const LazyTensor& x) { return max_pool(x, {3}, {.stride = {1}, .padding = {1}}); });
    pool_.add("1", basic(make, in, w.pool, 1));
  }
  LazyTensor forward(const LazyTensor& x) override {
    return concatenate({one_->forward(x), three_.forward(x), five_.forward(x), pool_.forward(x)}, 1);
  }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    visitor.module(join_name(prefix, "branch1"), *one_);
    visitor.module(join_name(prefix, "branch2"), three_);
    visitor.module(join_name(prefix, "branch3"), five_);
    visitor.module(join_name(prefix, "branch4"), pool_);
  }

 private:
  LayerPtr one_;
  Chain three_, five_, pool_;
};

}  // namespace

std::unique_ptr<Layer> googlenet(const ImageModelOptions& options) {
  LayerMaker make(options.device, options.seed);
  auto net = std::make_unique<Chain>();
  const auto pool = [&](std::int64_t kernel) {
    net->then([kernel](const LazyTensor& x) { return halved(x, kernel); });
  };
  net->add("conv1", basic(make, options.channels, 64, 7, 2));
  pool(3);
  net->add("conv2", basic(make, 64, 64, 1)).add("conv3", basic(make, 64, 192, 3));
  pool(3);
  std::int64_t width = 192;
  const auto module = [&](const char* name, const InceptionWidths& widths) {
    net->add(std::string("inception") + name, std::make_unique<Inception>(make, width, widths));
    width = widths.out();
  };
  module("3a", {64, 96, 128, 16, 32, 32});
  module("3b", {128, 128, 192, 32, 96, 64});
  pool(3);
  module("4a", {192, 96, 208, 16, 48, 64});
  module("4b", {160, 112, 224, 24, 64, 64});
  module("4c", {128, 128, 256, 24, 64, 64});
  module("4d", {112, 144, 288, 32, 64, 64});
  module("4e", {256, 160, 320, 32, 128, 128});
  pool(2);
  module("5a", {256, 160, 320, 32, 128, 128});
  module("5b", {384, 192, 384, 48, 128, 128});
  net->then(global_average).add("dropout", make.dropout(0.2));
  net->add("fc", make.linear(width, options.classes));
  return net;
}

}  // namespace caldera::vision
