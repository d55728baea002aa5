// The buffers of a plan, and the views of them that steps read and write.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/arena_sizes.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace caldera {

enum class BufferRole : std::uint8_t { input, output, arena };

struct PlanBuffer {
  BufferRole role = BufferRole::arena;
  DType dtype = DType::f32;
  std::int64_t bytes = 0;
  std::int64_t arena_offset = 0;  // arena buffers only; a multiple of kArenaAlignment
};

/// Says how far a replay moves an operand: the sum of its terms, in elements.
struct Position {
  /// A scalar argument, an int64, as far as it is within [0, limit], times a stride. The nearest bound
  /// stands for what is outside.
  struct Term {
    std::int32_t scalar = -1;  // index into Plan::scalars
    std::int64_t limit = 0;
    std::int64_t stride = 0;
    friend bool operator==(const Term&, const Term&) = default;
  };
  std::vector<Term> terms;
  friend bool operator==(const Position&, const Position&) = default;
};

/// The elements by which `position` moves an operand where the plan's scalar arguments have these bits.
inline std::int64_t shift_by(const Position& position, std::span<const std::uint64_t> scalars) {
  std::int64_t shift = 0;
  for (const Position::Term& term : position.terms) {
    const auto value = static_cast<std::int64_t>(scalars[static_cast<std::size_t>(term.scalar)]);
    shift += std::clamp<std::int64_t>(value, 0, term.limit) * term.stride;
  }
  return shift;
}

/// A strided view of a buffer over the iteration space of its step. Strides may be zero or negative.
struct Operand {
  std::int32_t buffer = -1;    // index into Plan::buffers; -1 for an index operand
  std::int64_t offset = 0;     // elements
  Dims strides;                // one per iteration dimension
  std::int32_t position = -1;  // index into Plan::positions, by which all of it is moved; -1: stays
};

}  // namespace caldera
