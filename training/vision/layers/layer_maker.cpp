#include "training/vision/layers/layer_maker.h"

#include <vector>

#include "lm/nn/layers/dropout.h"
#include "lm/nn/layers/linear.h"
#include "ops/core/cast.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/activations.h"
#include "ops/reduce/mean.h"

namespace caldera::vision {
namespace {

/// The matrix (to, from) whose rows take the means of the parts of an axis.
LazyTensor parts_of(std::int64_t from, std::int64_t to, const LazyTensor& like) {
  std::vector<float> rows(static_cast<std::size_t>(from * to));
  for (std::int64_t i = 0; i < to; ++i) {
    const std::int64_t first = i * from / to, last = ((i + 1) * from + to - 1) / to;
    for (std::int64_t j = first; j < last; ++j)
      rows[static_cast<std::size_t>(i * from + j)] = 1 / static_cast<float>(last - first);
  }
  return astype(LazyTensor::from_vector(rows, Shape{to, from}, like.device()), like.dtype());
}

}  // namespace

std::uint64_t LayerMaker::next_seed() { return mix_seed(seed_, made_++); }

LayerPtr LayerMaker::conv(std::int64_t in, std::int64_t out, std::int64_t kernel, Conv2dOptions options) {
  options.seed = next_seed();
  options.device = device_;
  return std::make_unique<Conv2d>(in, out, kernel, options);
}
LayerPtr LayerMaker::norm(std::int64_t channels, double eps) {
  return std::make_unique<BatchNorm2d>(channels, device_, eps);
}
LayerPtr LayerMaker::linear(std::int64_t in, std::int64_t out) {
  return std::make_unique<Linear>(in, out, LinearOptions{.device = device_, .seed = next_seed()});
}
LayerPtr LayerMaker::dropout(double p) { return std::make_unique<Dropout>(p, made_++); }

LazyTensor rectified(const LazyTensor& x) { return relu(x); }
LazyTensor global_average(const LazyTensor& x) { return mean(x, {2, 3}); }
LazyTensor flat_rows(const LazyTensor& x) { return reshape(x, Shape{x.shape(0), -1}); }

LazyTensor adaptive_average(const LazyTensor& x, std::int64_t height, std::int64_t width) {
  LazyTensor y = x;
  if (x.shape(3) != width) y = matmul(y, transpose(parts_of(x.shape(3), width, x)));
  if (x.shape(2) != height) y = matmul(parts_of(x.shape(2), height, x), y);
  return y;
}

}  // namespace caldera::vision
