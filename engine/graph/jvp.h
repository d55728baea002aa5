// JvpContext: the contract between forward-mode differentiation and the tangent rules in ops/.
#pragma once

#include <span>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Holds what a tangent rule sees and fills. Rules live beside their operation in ops/. Element-wise
/// operations need none: the gradient rule says all, as their Jacobian is diagonal.
struct JvpContext {
  std::span<const LazyTensor> inputs;
  const LazyTensor& output;
  std::span<const LazyTensor>
      tangents;        // of the inputs, in their shape and dtype; empty where zero. Not all are
  LazyTensor tangent;  // to fill: of the output, in its shape and dtype
};

}  // namespace caldera
