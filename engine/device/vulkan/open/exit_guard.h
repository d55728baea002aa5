// What happens to devices that are still open when the process ends.
//
// Backends and tensors may lie in static objects. Those that were constructed before the driver and its
// layers were loaded are destroyed after the driver's own static objects, when calling it crashes. So once
// the process exits, devices finish what runs, and from then on giving handles back does nothing.
#pragma once

#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

/// Registers an open device; called after it was made, so that the driver is loaded.
void guard_exit(VkDevice device, VolkDeviceTable& table);
/// The device is about to be destroyed.
void unguard_exit(VkDevice device);

}  // namespace caldera::vulkan
