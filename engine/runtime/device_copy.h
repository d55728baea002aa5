// Copies between devices. Internal to the runtime.
#pragma once

#include "engine/runtime/job.h"

namespace caldera {

/// Copies, and returns when the bytes are there. Through the host: straight from or into the CPU's memory,
/// between two others in pieces of bounded size. What is copied must have been computed, and nobody may write
/// to either block meanwhile. Any thread. Throws DeviceError.
void run_copy(const DeviceCopy& copy);

}  // namespace caldera
