// Masks that depend on coordinates alone, such as the causal one: where a kernel compares linear functions of
// its index operands, a span of a row on which the outcome is known needs a simpler kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/plan/kernel/kernel.h"

namespace caldera::cpu {

/// A boolean value of a kernel that is true where sum(index_factors * index operands) + sum(scalar_factors *
/// scalar arguments) + constant >= 0.
struct CoordinateComparison {
  std::size_t value = 0;  // number in the kernel's code
  std::vector<std::int64_t> index_factors;
  std::vector<std::int64_t> scalar_factors;
  std::int64_t constant = 0;
};

/// Finds them among the kernel's comparisons of integers.
std::vector<CoordinateComparison> coordinate_comparisons(const Kernel& kernel);

/// The kernel where each of `comparisons` has the outcome of its bit in `outcomes`: without the selections
/// that this decides and without what only the rejected side needs. Operands keep their numbers.
Kernel decided(const Kernel& kernel, std::span<const CoordinateComparison> comparisons,
               std::uint32_t outcomes);

}  // namespace caldera::cpu
