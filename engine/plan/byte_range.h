// The bytes that an operand may touch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/plan/plan.h"

namespace caldera {

/// Half-open range of bytes relative to the buffer. Empty when the step has no points.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool empty() const { return begin >= end; }
};

/// The hull of operand k of the step: from its lowest to its highest byte. An indexed axis counts whole,
/// and so does every place that a position may move it to.
ByteRange byte_range(const Plan& plan, const Step& step, std::size_t k);

/// The bytes of an operand as a comb: teeth of equal length at equal distances, all within the hull. Windows
/// of the columns of one buffer are combs whose teeth fit between each other, though their hulls overlap.
struct ByteComb {
  ByteRange hull;
  std::int64_t period = 0;  // from tooth to tooth; 0: solid
  std::int64_t tooth = 0;   // its length

  /// Whether no byte can be in both. Ranges are relative to one origin.
  bool apart_from(const ByteComb& other) const;
};

ByteComb byte_comb(const Plan& plan, const Step& step, std::size_t k);

}  // namespace caldera
