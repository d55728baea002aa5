// Counts what the engine keeps to spare itself work.
#pragma once

#include <cstdint>

namespace caldera {

/// Things kept to be used again. Each has a bound in bytes, beyond which what was used longest ago goes; the
/// newest always stays.
enum class CacheKind : std::uint8_t {
  plans,      // compiled graphs, made ready for a device
  kernels,    // fused kernels decoded for the CPU
  pipelines,  // kernels compiled for a Vulkan device, of each device
  files,      // compiled kernels and measurements on disk (CALDERA_CACHE_DIR)
};

struct CacheStats {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t evictions = 0;  // dropped to stay within the limit
  std::uint64_t entries = 0;    // held now
  std::uint64_t bytes = 0;      // that they take, about
  std::uint64_t limit = 0;
};

}  // namespace caldera
