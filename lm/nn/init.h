// The distributions that layers' weights begin with.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Uniform on (-bound, bound): a function of the seed.
LazyTensor uniform_init(const Shape& shape, double bound, std::uint64_t seed, Device device);
/// Normal with mean 0: a function of the seed.
LazyTensor normal_init(const Shape& shape, double std, std::uint64_t seed, Device device);
/// A matrix whose rows, or columns where there are more rows, are orthonormal, times `gain`, evaluated in
/// f32: the factor q of a random normal matrix (Saxe et al. 2014; torch.nn.init.orthogonal_). A function of
/// the seed, the same on every device. Throws ShapeError for what is no matrix.
LazyTensor orthogonal_init(const Shape& shape, double gain, std::uint64_t seed, Device device);

}  // namespace caldera
