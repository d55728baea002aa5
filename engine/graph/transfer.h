// Moves between devices. The compiler never sees them: evaluation cuts the graph there. Included by
// ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The value of x on `device`, where operations with tensors of that device can take it. Gradients come back
/// to x's device. Numbers fit every device and stay as they are.
LazyTensor to(const LazyTensor& x, Device device);

}  // namespace caldera
