// The bytes that an operand may touch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/compile/plan.h"

namespace caldera {

/// Half-open range of bytes relative to the buffer. Empty when the step has no points.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool empty() const { return begin >= end; }
};

/// The hull of an operand of the step (one of step.operands): from its lowest to its highest byte. For gather
/// and scatter_add the indexed axis counts whole.
inline ByteRange byte_range(const Plan& plan, const Step& step, const Operand& operand) {
  std::int64_t low = operand.offset;
  std::int64_t high = operand.offset;
  const auto stretch = [&](std::int64_t extent, std::int64_t stride) {
    const std::int64_t reach = (extent - 1) * stride;
    (reach < 0 ? low : high) += reach;
  };
  const auto k = static_cast<std::size_t>(&operand - step.operands.data());
  const bool segmented = step.kind == StepKind::contract && k < 2 * step.segments.size();
  for (int d = 0; d < step.dims.rank(); ++d) {
    const bool along_k = segmented && d == step.dims.rank() - 1;
    const std::int64_t extent = along_k ? step.segments[k / 2].k : step.dims[d];
    // An extent of 0 means that nothing is touched, except that an empty reduction still writes its result.
    if (extent == 0 && operand.strides[d] != 0) return {};
    if (extent > 0) stretch(extent, operand.strides[d]);
  }
  const bool indexed = (step.kind == StepKind::gather && &operand == step.operands.data()) ||
                       (step.kind == StepKind::scatter_add && &operand == &step.operands.back());
  if (indexed) {
    if (step.axis_extent == 0) return {};
    stretch(step.axis_extent, step.axis_stride);
  }
  const auto size =
      static_cast<std::int64_t>(size_of(plan.buffers[static_cast<std::size_t>(operand.buffer)].dtype));
  return {low * size, (high + 1) * size};
}

}  // namespace caldera
