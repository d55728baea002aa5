// The registry of open devices. Internal to the runtime.
#pragma once

#include "engine/device/backend.h"
#include "engine/runtime/stream.h"

namespace caldera {

struct OpenDevice {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Stream> stream;
};

/// Opened on first use; never closed before the process ends. Throws DeviceError.
OpenDevice& open_device(Device device);

}  // namespace caldera
