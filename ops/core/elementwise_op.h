// Definitions of element-wise primitives.
#pragma once

#include <string_view>

#include "engine/graph/node.h"

namespace caldera::ops {

/// An element-wise primitive: `function` applied to every element. Without a rule its gradient is 0. Shapes,
/// types and forward mode follow from the function (engine/graph/scalar_op.h) and the rule.
constexpr OpDef elementwise_op(std::string_view name, ScalarOp function, VjpRule vjp = nullptr) {
  return {.name = name,
          .kind = OpClass::elementwise,
          .scalar = function,
          .vjp = vjp,
          .zero_gradient = vjp == nullptr};
}

}  // namespace caldera::ops
