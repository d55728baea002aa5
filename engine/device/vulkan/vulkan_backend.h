// The Vulkan device: 1.2 with buffer device addresses and timeline semaphores, loaded at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/backend.h"

namespace caldera {

/// Devices that can run Caldera, best first (discrete, integrated, virtual, software). Empty without a loader
/// or driver. Each call gives the same order; `DeviceInfo::device.index` is the position. Throws DeviceError
/// when CALDERA_VALIDATION asks for the validation layer and it is not installed.
std::vector<DeviceInfo> list_vulkan_devices();

/// Opens a device of the list. Throws DeviceError that says what there is when the index does not exist.
std::unique_ptr<Backend> make_vulkan_backend(int index);

/// Opens a device of the list for a survey: the backend is a Surveyor. Throws DeviceError likewise.
std::unique_ptr<Backend> make_vulkan_surveyor(int index);

/// Messages that the validation layer has given since the process began; 0 without CALDERA_VALIDATION=1 or 2.
/// Each was also printed on stderr.
std::uint64_t vulkan_validation_messages();

}  // namespace caldera
