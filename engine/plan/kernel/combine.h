// Combine: how a reduction makes one element of many. All that compiler and devices know of it in common.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "engine/graph/scalar_op.h"

namespace caldera {

/// Says how a reduction combines elements. Sums of f32 keep f32 accumulators; the order is fixed, so results
/// are reproducible.
enum class Combine : std::uint8_t { sum, maximum, minimum, product };

struct CombineFacts {
  Combine combine;
  std::string_view name;
  /// Combines two elements. A reduction starts from its neutral element and skips extents of 1, so f(neutral,
  /// x) has to be x.
  ScalarOp function;
  ScalarOp row;  // the reduction as an instruction of a row kernel
};

// In the order of Combine.
inline constexpr std::array kCombines{
    CombineFacts{Combine::sum, "sum", ScalarOp::add, ScalarOp::row_sum},
    CombineFacts{Combine::maximum, "max", ScalarOp::maximum, ScalarOp::row_maximum},
    CombineFacts{Combine::minimum, "min", ScalarOp::minimum, ScalarOp::row_minimum},
    CombineFacts{Combine::product, "prod", ScalarOp::mul, ScalarOp::row_product},
};

constexpr const CombineFacts& facts(Combine combine) { return kCombines[static_cast<std::size_t>(combine)]; }

/// Whether kernels combine elements of the type so.
inline bool accepts(Combine combine, DType type) { return accepts(facts(combine).function, type); }

/// The combine whose function of two elements, or whose row reduction, `op` is. Throws std::logic_error where
/// there is none: a bug of the caller.
constexpr Combine combine_of(ScalarOp op) {
  for (const CombineFacts& c : kCombines) {
    if (c.function == op || c.row == op) return c.combine;
  }
  throw std::logic_error("combine_of: not a function that reductions combine with");
}

// A combine that the table lacks, or a row reduction without a combine, does not compile.
static_assert([] {
  for (std::size_t i = 0; i < kCombines.size(); ++i) {
    const CombineFacts& c = kCombines[i];
    if (static_cast<std::size_t>(c.combine) != i || !is_row_reduction(c.row)) return false;
  }
  int rows = 0;
  for (int op = 0; op < kScalarOpCount; ++op) rows += is_row_reduction(static_cast<ScalarOp>(op)) ? 1 : 0;
  return rows == static_cast<int>(kCombines.size());
}());

}  // namespace caldera
