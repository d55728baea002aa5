// Tells what the CPU is: for `caldera devices`.
#pragma once

#include "engine/device/backend.h"

namespace caldera::cpu {

DeviceInfo describe_cpu();

}  // namespace caldera::cpu
