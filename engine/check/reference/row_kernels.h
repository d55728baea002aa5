// Row kernels that several checks run, and how far a device may be from the reference on them.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/check/reference/kernel_builder.h"
#include "engine/check/reference/plan_case.h"
#include "engine/tensor/device.h"

namespace caldera::reference {

// The type that they take, if any, is that of their operands in memory.

/// x -> exp(x - max) / sum
std::shared_ptr<const Kernel> softmax_kernel(DType type);
/// f32: x -> x - max - log(sum)
std::shared_ptr<const Kernel> log_softmax_kernel();
/// f32; inputs x, weight, bias; scalars 1 / length, epsilon
std::shared_ptr<const Kernel> layer_norm_kernel();
/// Inputs x, weight; scalars 1 / length, epsilon; outputs x * r * weight, and r for each row
std::shared_ptr<const Kernel> rms_norm_kernel(DType type);

/// Returns the tolerance of f32 results of one sum of `length` positive numbers and functions such as exp.
/// GPUs: exp within 3 + 2 |x| ulp.
Tolerance row_tolerance(Device device, std::int64_t length);

}  // namespace caldera::reference
