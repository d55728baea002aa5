#include "engine/device/vulkan/open/quirks.h"

namespace caldera::vulkan {
namespace {

bool is_llvmpipe(const VkPhysicalDeviceProperties&, const VkPhysicalDeviceDriverProperties& driver) {
  return driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
}

bool is_nvidia(const VkPhysicalDeviceProperties&, const VkPhysicalDeviceDriverProperties& driver) {
  return driver.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
}

// A row a workaround, with its reason and the driver versions it was seen on.
constexpr Quirk kQuirks[] = {
    {"llvmpipe-loop-limit",
     "Mesa 22.3: code generation gives every invocation 65535 loop iterations, counted over all of its "
     "loops, and leaves the loop in silence after that (LP_MAX_TGSI_LOOP_ITERATIONS).",
     is_llvmpipe, [](Capabilities& c) { c.loop_limit = 65535; }},
    {"llvmpipe-scalar-loads",
     "Mesa 22.3: a load is a loop over the lanes for each component, so vectors save nothing; a matrix "
     "product with vector loads along the columns of B ran at 0.45 of its speed with scalar ones.",
     is_llvmpipe, [](Capabilities& c) { c.scalar_loads = true; }},
    {"nvidia-allocation-limit",
     "530 to 580 (llama.cpp's reports, not tried here): maxMemoryAllocationSize is 4 GiB, and larger "
     "allocations succeed; one that does not is an error that the pools handle like any other.",
     is_nvidia, [](Capabilities& c) { c.max_allocation = c.max_buffer; }},
    {"llvmpipe-exit",
     "Mesa 22.3, LLVM 15: the first compilation makes static objects that exit() destroys ahead of whatever "
     "was registered before it; a kernel that is still being compiled then crashes the process.",
     is_llvmpipe, [](Capabilities& c) { c.compile_early = true; }},
};

}  // namespace

std::span<const Quirk> quirks() { return kQuirks; }

void apply_quirks(const VkPhysicalDeviceProperties& device, const VkPhysicalDeviceDriverProperties& driver,
                  Capabilities& capabilities) {
  for (const Quirk& quirk : quirks()) {
    if (quirk.applies(device, driver)) quirk.change(capabilities);
  }
}

}  // namespace caldera::vulkan
