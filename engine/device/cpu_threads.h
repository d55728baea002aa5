// Says how many threads the kernels of the CPU device may use.
#pragma once

namespace caldera {

/// Sets the number of threads that kernels of the CPU device may use, from the next evaluation on; values
/// below 1 mean 1. Initially the number of cores that this process may run on (OMP_NUM_THREADS counts).
/// Thread-safe.
void set_cpu_threads(int count);
int cpu_threads();

}  // namespace caldera
