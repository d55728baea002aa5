// The CPU device: OpenBLAS for contractions, SIMD micro-operations over L1 tiles for regions.
#pragma once

#include <memory>

#include "engine/device/backend.h"

namespace caldera {

/// The embedded default; always available.
std::unique_ptr<Backend> make_cpu_backend();

/// Threads that kernels may use (default: the number of cores this process may run on). Values below 1
/// mean 1.
void set_cpu_threads(int count);
int cpu_threads();

}  // namespace caldera
