#include "training/nn/init.h"

#include <atomic>

#include "ops/ops.h"
#include "training/nn/module.h"

namespace caldera {

std::uint64_t next_layer_seed() {
  static std::atomic<std::uint64_t> next{0};
  return mix_seed(0, next.fetch_add(1, std::memory_order_relaxed));
}

LazyTensor uniform_init(const Shape& shape, double bound, std::uint64_t seed, Device device) {
  return random_uniform(shape, seed, DType::f32, device) * (2 * bound) - bound;
}

LazyTensor normal_init(const Shape& shape, double std, std::uint64_t seed, Device device) {
  return random_normal(shape, seed, DType::f32, device) * std;
}

}  // namespace caldera
