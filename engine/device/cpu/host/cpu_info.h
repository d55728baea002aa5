// Tells what the CPU is: for `caldera devices`, and for loops that keep their operands in its caches.
#pragma once

#include <cstdint>

#include "engine/device/backend.h"

namespace caldera::cpu {

DeviceInfo describe_cpu();

/// Bytes of the cache of the second level that a core has for itself, from 256 KiB to 4 MiB; 1 MiB where the
/// system does not say.
std::int64_t second_level_cache_bytes();

/// Bytes of the largest cache; 32 MiB where the system does not say.
std::int64_t last_level_cache_bytes();

}  // namespace caldera::cpu
