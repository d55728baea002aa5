// Tells what the CPU is: for `caldera devices`.
#pragma once

#include <cstdint>

#include "engine/device/backend.h"

namespace caldera::cpu {

DeviceInfo describe_cpu();

/// Bytes of the largest cache; 32 MiB where the system does not say.
std::int64_t last_level_cache_bytes();

}  // namespace caldera::cpu
