// LeNet-5 (LeCun et al. 1998), as it is usually written today: rectifiers, and maxima in pooling.
#include "ops/nn/activations.h"
#include "ops/spatial/pooling.h"
#include "training/vision/layers/layer_maker.h"
#include "training/vision/models/image_networks.h"

namespace caldera::vision {

std::unique_ptr<Layer> lenet5(const ImageModelOptions& options) {
  LayerMaker make(options.device, options.seed);
  const auto pooled = [](const LazyTensor& x) { return max_pool(relu(x), {2}); };
  // Digits of 28 x 28 stand in a frame of 32 x 32.
  const std::int64_t frame = options.height <= 28 ? 2 : 0;
  const auto left = [&](std::int64_t extent) { return ((extent + 2 * frame - 4) / 2 - 4) / 2; };
  auto net = std::make_unique<Chain>();
  net->add("conv1", make.conv(options.channels, 6, 5, {.padding = frame})).then(pooled);
  net->add("conv2", make.conv(6, 16, 5)).then(pooled).then(flat_rows);
  net->add("fc1", make.linear(16 * left(options.height) * left(options.width), 120)).then(rectified);
  net->add("fc2", make.linear(120, 84)).then(rectified);
  net->add("fc3", make.linear(84, options.classes));
  return net;
}

}  // namespace caldera::vision
