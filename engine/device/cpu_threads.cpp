#include "engine/device/cpu_threads.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __linux__
#include <sched.h>
#endif

#include "engine/device/cpu_quota.h"

namespace caldera {
namespace {

int cores_of_process() {
#ifdef _OPENMP
  return omp_get_max_threads();  // honours OMP_NUM_THREADS and the process's affinity
#else
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
#endif
}

/// A thread more than a container has time for would be stopped in the middle of its work, and all others
/// wait for it.
int default_threads() {
  const int cores = cores_of_process();
  return std::getenv("OMP_NUM_THREADS") != nullptr ? cores
                                                   : std::min(cores, cores_of_quota().value_or(cores));
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count{default_threads()};
  return count;
}

}  // namespace

void set_cpu_threads(int count) { thread_count().store(std::max(1, count), std::memory_order_relaxed); }
int cpu_threads() { return thread_count().load(std::memory_order_relaxed); }

}  // namespace caldera
