// Copies between devices. Internal to the runtime.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/device/backend.h"

namespace caldera {

/// Bytes to bring from a block of one device to the start of a block of another. Keeps both blocks.
struct DeviceCopy {
  std::shared_ptr<Backend> from_backend;
  StoragePtr from;
  std::size_t from_offset = 0;
  Backend* to_backend = nullptr;  // whose stream runs the copy
  StoragePtr to;
  std::size_t bytes = 0;
};

/// Copies, and returns when the bytes are there. Through the host: straight from or into the CPU's memory,
/// between two others in pieces of bounded size. What is copied must have been computed, and nobody may write
/// to either block meanwhile. Any thread. Throws DeviceError.
void run_copy(const DeviceCopy& copy);

}  // namespace caldera
