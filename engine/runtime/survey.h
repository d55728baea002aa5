// Surveys: what a device would make of a program's kernels, without computing anything and without memory
// for tensors of any size.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/plan/plan.h"
#include "engine/survey/kernel_report.h"
#include "engine/tensor/device.h"

namespace caldera {

/// Opens the device for surveys, for the rest of the process: programs run on it as they are, and a Profiler
/// records their plans, but tensors have no memory, every value that the host reads is zero, and nothing is
/// compiled until survey_kernels asks for it. Throws DeviceError for a device without kernels of its own or
/// one that there is not, Error where the device is open already. Thread-safe.
void open_for_survey(Device device);

/// Compiles the kernels of plans of a device that open_for_survey opened, and reports what the driver made of
/// each. A kernel that cannot be compiled has an error in its report, and the others go on. Thread-safe.
/// Throws Error where the device was not opened so.
std::vector<KernelReport> survey_kernels(Device device, std::span<const std::shared_ptr<const Plan>> plans);

}  // namespace caldera
