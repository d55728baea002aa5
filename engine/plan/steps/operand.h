// The buffers of a plan, and the views of them that steps read and write.
#pragma once

#include <cstdint>

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

inline constexpr std::int64_t kArenaAlignment = 256;

/// A strided view of a buffer over the iteration space of its step. Strides may be zero or negative.
struct Operand {
  std::int32_t buffer = -1;  // index into Plan::buffers; -1 for an index operand
  std::int64_t offset = 0;   // elements
  Dims strides;              // one per iteration dimension
};

}  // namespace caldera
