// What a row reduction combines with.
#pragma once

#include "engine/plan/kernel/kernel.h"

namespace caldera {

/// `op` is a row reduction (is_row_reduction).
inline Combine combine_of_row(ScalarOp op) {
  switch (op) {
    case ScalarOp::row_maximum:
      return Combine::maximum;
    case ScalarOp::row_minimum:
      return Combine::minimum;
    case ScalarOp::row_product:
      return Combine::product;
    default:
      return Combine::sum;
  }
}

}  // namespace caldera
