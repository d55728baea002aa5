// Decides what happens to devices that are still open when the process ends.
//
// Backends and tensors may be in static objects. Those that were constructed before the driver and its
// layers were loaded are destroyed after the driver's own static objects, when calling it crashes. So once
// the process exits, devices finish what runs, and from then on giving handles back does nothing.
#pragma once

#include <functional>

#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

/// Registers an open device; called after it was made, so that the driver is loaded. `idle` says, without
/// asking the driver, whether all that was submitted is known to be done: then nothing is waited for. (The
/// validation layer of 2026 makes static objects while it is used, which are gone by then.)
void guard_exit(VkDevice device, VolkDeviceTable& table, std::function<bool()> idle);
/// The device is about to be destroyed.
void unguard_exit(VkDevice device);

}  // namespace caldera::vulkan
