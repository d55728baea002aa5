// Surveys: what a device would make of a program's kernels, without computing anything and without memory
// for tensors of any size.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/survey/kernel_report.h"
#include "engine/survey/roofline.h"
#include "engine/tensor/device.h"

namespace caldera {

struct RunRecord;

/// Opens the device for surveys, for the rest of the process: programs run on it as they are, and a Profiler
/// records their plans, but tensors have no memory, every value that the host reads is zero, and nothing is
/// compiled until survey_kernels asks for it. Throws DeviceError for a device without kernels of its own or
/// one that there is not, Error where the device is open already. Thread-safe.
void open_for_survey(Device device);

/// Compiles the kernels of evaluations that a Profiler recorded on a device that open_for_survey opened, and
/// reports what the driver made of each. A kernel that cannot be compiled has an error in its report, and the
/// others go on. estimate_time() (roofline.h) says how long a card would take. Thread-safe. Throws Error
/// where the device was not opened so.
std::vector<KernelReport> survey_kernels(Device device,
                                         std::span<const std::shared_ptr<const RunRecord>> runs);

}  // namespace caldera
