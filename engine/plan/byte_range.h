// The bytes that an operand may touch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "engine/plan/plan.h"

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

/// The bytes of an operand as a comb: teeth of equal length at equal distances, all within the hull. Windows
/// of the columns of one buffer are combs whose teeth fit between each other, though their hulls overlap.
struct ByteComb {
  ByteRange hull;
  std::int64_t period = 0;  // from tooth to tooth; 0: solid
  std::int64_t tooth = 0;   // its length

  /// Whether no byte can be in both. Ranges are relative to one origin.
  bool apart_from(const ByteComb& other) const {
    if (hull.begin >= other.hull.end || other.hull.begin >= hull.end) return true;
    if (period == 0 || other.period == 0) return false;
    const std::int64_t common = std::gcd(period, other.period);
    if (tooth + other.tooth > common) return false;
    // From the start of one tooth to the start of the next one of the other comb.
    std::int64_t gap = (other.hull.begin - hull.begin) % common;
    if (gap < 0) gap += common;
    return gap >= tooth && gap + other.tooth <= common;
  }
};

inline ByteComb byte_comb(const Plan& plan, const Step& step, const Operand& operand) {
  ByteComb comb{.hull = byte_range(plan, step, operand)};
  const auto k = static_cast<std::size_t>(&operand - step.operands.data());
  const bool segmented = step.kind == StepKind::contract && k < 2 * step.segments.size();
  const bool indexed = step.kind == StepKind::gather || step.kind == StepKind::scatter_add;
  if (segmented || indexed || comb.hull.empty()) return comb;
  const auto size =
      static_cast<std::int64_t>(size_of(plan.buffers[static_cast<std::size_t>(operand.buffer)].dtype));
  // A tooth is what the innermost dimensions cover without holes; the others move it.
  std::int64_t tooth = 1;
  std::int64_t period = 0;
  for (int d = step.dims.rank() - 1; d >= 0; --d) {
    if (step.dims[d] == 1 || operand.strides[d] == 0) continue;
    if (period == 0 && operand.strides[d] == tooth) {
      tooth *= step.dims[d];
    } else {
      period = std::gcd(period, operand.strides[d]);
    }
  }
  if (period <= tooth) return comb;
  comb.period = period * size;
  comb.tooth = tooth * size;
  return comb;
}

}  // namespace caldera
