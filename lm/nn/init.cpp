#include "lm/nn/init.h"

#include <algorithm>

#include "engine/base/error.h"
#include "ops/core/cast.h"
#include "ops/linalg/linalg.h"
#include "ops/random/uniform_normal.h"

namespace caldera {

LazyTensor uniform_init(const Shape& shape, double bound, std::uint64_t seed, Device device) {
  return random_uniform(shape, seed, DType::f32, device) * (2 * bound) - bound;
}

LazyTensor normal_init(const Shape& shape, double std, std::uint64_t seed, Device device) {
  return random_normal(shape, seed, DType::f32, device) * std;
}

LazyTensor orthogonal_init(const Shape& shape, double gain, std::uint64_t seed, Device device) {
  if (shape.rank() != 2)
    throw ShapeError("orthogonal_init: " + shape.to_string() + " is no matrix; it takes two axes");
  const Shape tall{std::max(shape[0], shape[1]), std::min(shape[0], shape[1])};
  const LazyTensor q = qr(random_normal(tall, seed, DType::f64, Device::cpu())).q * gain;
  const LazyTensor matrix = shape[0] < shape[1] ? q.T() : q;
  return LazyTensor::from_vector(astype(matrix, DType::f32).to_vector<float>(), shape, device);
}

}  // namespace caldera
