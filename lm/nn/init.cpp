#include "lm/nn/init.h"

#include "ops/random/uniform_normal.h"

namespace caldera {

LazyTensor uniform_init(const Shape& shape, double bound, std::uint64_t seed, Device device) {
  return random_uniform(shape, seed, DType::f32, device) * (2 * bound) - bound;
}

LazyTensor normal_init(const Shape& shape, double std, std::uint64_t seed, Device device) {
  return random_normal(shape, seed, DType::f32, device) * std;
}

}  // namespace caldera
