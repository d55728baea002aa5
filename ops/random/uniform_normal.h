// Uniform and normal random numbers, by Philox4x32-10: counter-based, the same stream on every device, a pure
// function of seed and shape. What is made of them: distributions.h. Part of ops/ops.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Uniform on [0, 1). `seed` is an argument of the plan: a new seed does not compile again.
LazyTensor random_uniform(const Shape& shape, std::uint64_t seed, DType dtype = DType::f32);
LazyTensor random_uniform(const Shape& shape, std::uint64_t seed, DType dtype, Device device);
/// With a seed of the global generator (generator.h).
LazyTensor random_uniform(const Shape& shape, DType dtype = DType::f32);
LazyTensor random_uniform(const Shape& shape, DType dtype, Device device);
/// Mean 0, deviation 1.
LazyTensor random_normal(const Shape& shape, std::uint64_t seed, DType dtype = DType::f32);
LazyTensor random_normal(const Shape& shape, std::uint64_t seed, DType dtype, Device device);
LazyTensor random_normal(const Shape& shape, DType dtype = DType::f32);
LazyTensor random_normal(const Shape& shape, DType dtype, Device device);

}  // namespace caldera
