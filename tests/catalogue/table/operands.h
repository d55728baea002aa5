// Operands that some calls have and others have not, and those that are indices.
#pragma once

#include <utility>
#include <vector>

#include "tests/catalogue/table/operation.h"

namespace caldera::catalogue {

/// The operand in that place, or an undefined tensor where there are fewer.
inline LazyTensor optional_operand(Tensors x, std::size_t position) {
  return position < x.size() ? x[position] : LazyTensor();
}

/// An operand of int32: indices, targets.
inline Operand index_operand(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::i32, .values = std::move(values)};
}

}  // namespace caldera::catalogue
