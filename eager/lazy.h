// The lazy names of the eager API (its "v2"): caldera::LazyTensor, and what it does not have as a member.
//
// from_slice, zeros, ones, add, mul, mul_scalar, matmul, softmax, rms_norm, lora_fused, eval, eval_async,
// shape, dtype, device, node_id, graph_size and is_evaluated are members of LazyTensor.
#pragma once

#include "eager/tensor.h"
#include "engine/graph/lazy_tensor.h"
#include "ops/ops.h"

namespace caldera::v1 {

using caldera::LazyTensor;

/// Returns the value as a leaf of a lazy graph, without copying.
inline LazyTensor from_tensor(const Tensor& tensor) { return tensor.lazy(); }

/// Gives a tensor as an operand next to `lazy`. Graphs need no joining: any tensor combines with any other on
/// its device. Kept so that programs that say it still compile.
inline LazyTensor add_tensor_to_graph(const LazyTensor& /*lazy*/, const Tensor& tensor) {
  return tensor.lazy();
}

/// Evaluates: what the original's `eval` returned.
inline Tensor to_tensor(const LazyTensor& lazy) { return Tensor(lazy); }

}  // namespace caldera::v1
