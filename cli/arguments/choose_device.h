// Which device a command works on.
#pragma once

#include <string>

#include "engine/tensor/device.h"

namespace caldera::cli {

/// The device that --device names (`flag`; empty: not given), else CALDERA_DEVICE, else the best there is:
/// the first hardware Vulkan GPU, or the CPU. Does not open it. Throws UsageError for a name that is none.
/// A flag removes CALDERA_DEVICE from the environment, which it outweighs: the engine must not trip over a
/// bad value there.
Device choose_device(const std::string& flag);

}  // namespace caldera::cli
