// Estimates what fused work costs on the CPU: that decides whether a second thread is woken for it
// (host/parallel.h).
#pragma once

#include "engine/plan/kernel/kernel.h"

namespace caldera::cpu {

/// Rough time of one point of the kernel on one thread, nanoseconds: its operations, by tables of what they
/// take in SIMD loops over data in L1, and its traffic to memory.
double region_nanoseconds(const Kernel& kernel);

}  // namespace caldera::cpu
