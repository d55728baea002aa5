// Weights that follow from a formula, as those of tests/golden/vision/generate.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "lm/nn/module.h"
#include "ops/core/cast.h"

namespace caldera::vision {

/// A number in [-1, 1): splitmix64 of seed * 2^32 + i, its upper 53 bits.
inline double drawn_weight(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = (seed << 32) + i;
  z *= 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  z ^= z >> 31;
  return 2 * (static_cast<double>(z >> 11) * 0x1p-53) - 1;
}

/// Matrices and kernels are uniform within sqrt(factor / fan in); what is all ones stays, the rest is 0.
inline void set_formula_weights(Module& model, DType type, double factor) {
  std::uint64_t number = 0;
  for (const Parameter& p : model.parameters()) {
    const Shape shape = p.tensor->shape();
    std::vector<double> values(static_cast<std::size_t>(shape.numel()));
    if (p.trainable && shape.rank() >= 2) {
      const double bound = std::sqrt(factor / static_cast<double>(shape.numel() / shape[0]));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = drawn_weight(number, i) * bound;
    } else {
      const std::vector<float> now = p.tensor->to_vector<float>();
      if (std::ranges::all_of(now, [](float v) { return v == 1; })) values.assign(values.size(), 1.0);
    }
    if (p.trainable) ++number;
    *p.tensor = astype(LazyTensor::from_vector(values, shape, Device::cpu()), type).eval().detach();
  }
}

}  // namespace caldera::vision
