// The device on which tensors are created when none is named.
#pragma once

#include "engine/tensor/device.h"

namespace caldera {

/// Initially the device that the environment variable CALDERA_DEVICE names ("cpu", "vulkan:1"; "auto" and
/// nothing are the CPU): ValueError if it names none. Thread-safe.
Device default_device();
/// From now on, in all threads. Tensors that exist stay where they are. Thread-safe.
void set_default_device(Device device);

}  // namespace caldera
