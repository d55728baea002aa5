// A device that is opened to look at kernels.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/plan/plan.h"
#include "engine/survey/kernel_report.h"

namespace caldera {

/// Implemented by backends that are opened for a survey. Such a backend plans as the device does and computes
/// nothing: tensors have a size but no memory, downloads give zeros, and a plan is made ready at no cost.
class Surveyor {
 public:
  virtual ~Surveyor() = default;
  /// Compiles the plans' kernels for the device: a report each. A kernel that cannot be compiled has an
  /// error in its report. Throws DeviceError where the device is lost.
  virtual std::vector<KernelReport> survey(std::span<const std::shared_ptr<const Plan>> plans) = 0;
};

}  // namespace caldera
