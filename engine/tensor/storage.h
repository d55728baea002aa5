// Storage: a block of device memory that values live in.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/tensor/device.h"

namespace caldera {

/// A block of memory on one device. Shared by the values that are in it; freed with the last of them.
class Storage {
 public:
  Storage(Device device, std::size_t bytes) : device_(device), bytes_(bytes) {}
  virtual ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Device device() const { return device_; }
  std::size_t bytes() const { return bytes_; }
  /// Address in host memory, or nullptr where the host cannot reach the block.
  virtual std::byte* host_data() { return nullptr; }

 private:
  Device device_;
  std::size_t bytes_;
};

using StoragePtr = std::shared_ptr<Storage>;

}  // namespace caldera
