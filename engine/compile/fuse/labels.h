// Labels: what a group of operations is called in the field. For people only (errors of steps name
// them): nothing depends on them.
#pragma once

#include <string>

#include "engine/compile/fuse/grouping.h"

namespace caldera {

/// "softmax", "rms_norm", "lora" ..., or nothing.
std::string label_of(const Placement& placement, const Group& group);

}  // namespace caldera
