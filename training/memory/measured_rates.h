// Measures how fast a device computes, for the choice of what is kept and what is computed again. Private to
// training/.
#pragma once

#include "engine/autodiff/checkpoint/keep_problem.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"

namespace caldera::detail {

/// Returns the rates of `device` in `dtype`, which are measured by the first call of the process and kept:
/// growing products and element-wise work, until one takes milliseconds. Rounded to powers of two, so that
/// noise seldom changes a choice. Where the device's limit leaves no room to measure in, those of a usual
/// device; the next call tries again. All memory that it took is given back. Safe to call from any thread.
KeepRates measured_rates(Device device, DType dtype);

}  // namespace caldera::detail
