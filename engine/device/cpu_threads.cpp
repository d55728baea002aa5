#include "engine/device/cpu_threads.h"

#include <algorithm>
#include <atomic>
#include <thread>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __linux__
#include <sched.h>
#endif

namespace caldera {
namespace {

int default_threads() {
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

std::atomic<int>& thread_count() {
  static std::atomic<int> count{default_threads()};
  return count;
}

}  // namespace

void set_cpu_threads(int count) { thread_count().store(std::max(1, count), std::memory_order_relaxed); }
int cpu_threads() { return thread_count().load(std::memory_order_relaxed); }

}  // namespace caldera
