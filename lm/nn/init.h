// The distributions that layers' weights begin with.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Uniform on (-bound, bound): a function of the seed.
LazyTensor uniform_init(const Shape& shape, double bound, std::uint64_t seed, Device device);
/// Normal with mean 0: a function of the seed.
LazyTensor normal_init(const Shape& shape, double std, std::uint64_t seed, Device device);

}  // namespace caldera
