// MemoryForecast: the memory that an evaluation would take, known before it runs.
#pragma once

#include <cstdint>
#include <span>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Bytes of one device.
struct MemoryForecast {
  std::uint64_t held_bytes = 0;    ///< in use before: parameters, and whatever else the program holds
  std::uint64_t arena_bytes = 0;   ///< of intermediates, as the plan places them
  std::uint64_t output_bytes = 0;  ///< of the results
  /// Counts those of them that may take the memory of an input: they do where nobody else holds it by then.
  std::uint64_t donated_bytes = 0;

  /// The most in use while all that may be donated is.
  std::uint64_t peak_bytes() const { return held_bytes + arena_bytes + output_bytes - donated_bytes; }
};

/// Plans `outputs` (lazy, on one device) and computes nothing. Throws as plan_for() does.
MemoryForecast forecast_memory(std::span<const LazyTensor> outputs);

/// Returns a tensor like `x` that counts as evaluated and takes no memory: in what is planned it stands for
/// what will be there by then. Its bytes come on top of held_bytes. Evaluate nothing that reads it.
LazyTensor stand_in_for(const LazyTensor& x);

}  // namespace caldera
