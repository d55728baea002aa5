// Examines a device: runs every kind of kernel on it and compares what comes of it, element by element, with
// an interpreter of the same plans in f64.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/check/doctor/report.h"
#include "engine/tensor/device.h"

namespace caldera::doctor {

/// Lists the families of checks that the device has. Opens it if need be; throws DeviceError when there is no
/// such device.
std::vector<std::string> family_names(Device device);

/// Runs the families whose name contains `filter`; all where it is empty. Takes a minute or two where kernels
/// have to be compiled for a processor. Sets variables of the environment meanwhile: no other thread may read
/// them, nor use the device. Throws DeviceError when there is no such device, and nothing for what it
/// computes wrongly.
Report examine(Device device, std::string_view filter = {}, const Progress& progress = {});

}  // namespace caldera::doctor
