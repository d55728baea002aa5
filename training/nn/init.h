// How layers get their weights where a program does not say.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The next seed of the process's stream for layers that are given none: unrelated from call to call, the
/// same sequence in every run. From any thread.
std::uint64_t next_layer_seed();

/// Uniform on (-bound, bound): a function of the seed.
LazyTensor uniform_init(const Shape& shape, double bound, std::uint64_t seed, Device device);
/// Normal with mean 0: a function of the seed.
LazyTensor normal_init(const Shape& shape, double std, std::uint64_t seed, Device device);

}  // namespace caldera
