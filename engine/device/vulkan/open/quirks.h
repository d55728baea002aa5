// Lists what drivers get wrong or do slowly, and what is done about it: one table, a row a workaround.
//
// A quirk changes the capabilities of the device that it applies to, and the code that plans and writes
// shaders follows these. Where a formula is right and as fast on every driver, it stands in place of the one
// that some driver fails, without asking which driver it is: such places in glsl/ say "Quirk".
#pragma once

#include <span>

#include "engine/device/vulkan/open/capabilities.h"
#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

/// A workaround for one driver: which device it is for, what is changed, and why. `applies` gets the
/// properties of the device and its driver.
struct Quirk {
  const char* name;
  const char* reason;
  bool (*applies)(const VkPhysicalDeviceProperties&, const VkPhysicalDeviceDriverProperties&);
  void (*change)(Capabilities&);
};
std::span<const Quirk> quirks();

/// Applies the quirks of a device and its driver to what it says it can do.
void apply_quirks(const VkPhysicalDeviceProperties& device, const VkPhysicalDeviceDriverProperties& driver,
                  Capabilities& capabilities);

}  // namespace caldera::vulkan
