// The work during which fault tests make calls fail: small, but it goes through every part of a device.
#pragma once

#include <vector>

#include "engine/tensor/device.h"

namespace caldera::testing {

/// Everything that was computed and read back, in a fixed order.
using WorkloadResults = std::vector<std::vector<float>>;

/// Uploads parameters and tokens; trains two steps (embedding rows gathered, causal attention, a LoRA
/// projection, cross-entropy, AdamW), each one plan with an arena; queues two dependent plans without
/// waiting; computes with tensors larger than a block of memory; reads all results back. A function of
/// nothing: each call gives the same bits on the same device. Throws Error.
WorkloadResults run_fault_workload(Device device);

}  // namespace caldera::testing
