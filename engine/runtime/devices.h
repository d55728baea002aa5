// The registry of open devices. Internal to the runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/backend.h"
#include "engine/runtime/stream.h"

namespace caldera {

struct OpenDevice {
  std::shared_ptr<Backend> backend;  // shared by copies that other devices wait for
  std::unique_ptr<Stream> stream;
  std::uint64_t opening = 0;  // counts how often devices were opened: plans of one opening do not fit another
};

/// Opened on first use, then the same until reopen_device. Who works with it shares it, since another thread
/// may reopen the device meanwhile; the last to go waits for what its stream still runs. Throws DeviceError.
std::shared_ptr<OpenDevice> open_device(Device device);

/// Returns the devices that are open now.
std::vector<std::shared_ptr<OpenDevice>> open_devices();

}  // namespace caldera
