#include "engine/device/cpu/host/parallel.h"

#include <algorithm>
#include <mutex>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace caldera::cpu {
namespace {

std::mutex& team_mutex() {
  static auto* mutex = new std::mutex;  // outlives every thread that evaluates
  return *mutex;
}
thread_local int team_depth = 0;

}  // namespace

void Team::begin() {
  if (team_depth++ == 0) team_mutex().lock();
}
void Team::end() {
  if (--team_depth == 0) team_mutex().unlock();
}

bool in_parallel() {
#ifdef _OPENMP
  return AwakeTeam::is_inside() || omp_in_parallel() != 0;
#else
  return false;
#endif
}

int threads_for(double nanoseconds, std::int64_t tasks) {
#ifdef _OPENMP
  if (nanoseconds < kParallelNanoseconds || tasks < 2) return 1;
  const int threads = cpu_threads();
  if (threads == 1 || in_parallel()) return 1;
  // Every thread should have work that is worth its waking.
  const double worthwhile = nanoseconds / (kParallelNanoseconds / 2);
  return static_cast<int>(
      std::min<double>({static_cast<double>(threads), static_cast<double>(tasks), worthwhile}));
#else
  (void)nanoseconds;
  (void)tasks;
  return 1;
#endif
}

}  // namespace caldera::cpu
