// Parallel loops of the CPU device, which small work never enters.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "engine/device/cpu/host/awake_team.h"
#include "engine/device/cpu_threads.h"

namespace caldera::cpu {

/// Estimated nanoseconds of work on one thread above which a second one is woken. A team that is still
/// spinning answers within one microsecond; a sleeping thread takes about 65, in which the caller does the
/// work itself.
inline constexpr double kParallelNanoseconds = 16'000;

/// Whether the calling thread already is one of a team: nested work stays on it.
bool in_parallel();

/// Threads that `nanoseconds` of work in `tasks` equal pieces should use.
int threads_for(double nanoseconds, std::int64_t tasks);

/// Held while several threads work on one thing. Teams take turns, in the whole process: evaluations that run
/// side by side would otherwise each wake as many threads as there are cores. What takes one thread runs
/// beside a team, so the number of threads that a kernel uses follows from its work alone, and with it the
/// order of its sums. May be nested in one thread; for one thread it does nothing.
class Team {
 public:
  explicit Team(int threads) : is_several_(threads > 1) {
    if (is_several_) begin();
  }
  ~Team() {
    if (is_several_) end();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

 private:
  static void begin();
  static void end();
  bool is_several_;
};

/// Carries the first error of several threads to the one that they work for.
class FirstError {
 public:
  template <class Work>
  void keep(const Work& work) noexcept {
    try {
      work();
    } catch (...) {
      if (!is_taken_.exchange(true)) error_ = std::current_exception();
    }
  }
  /// Throws it, if there was one. All threads must be done.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> is_taken_ = false;
  std::exception_ptr error_;
};

/// Calls body(begin, end) for `threads` contiguous pieces of [0, tasks), the pieces in parallel. Which thread
/// runs a piece is not said. Of what bodies throw, the first is thrown once all have ended.
template <class Body>
void parallel_ranges(std::int64_t tasks, int threads, const Body& body) {
#ifdef _OPENMP
  if (threads > 1) {
    FirstError error;
    const auto piece = [&](int t) {
      error.keep([&] { body(tasks * t / threads, tasks * (t + 1) / threads); });
    };
    const Team team(threads);
    if (threads <= AwakeTeam::kMostPieces && AwakeTeam::is_better()) {
      using Pieces = decltype(piece);
      AwakeTeam::run(
          threads, [](const void* b, int t) { (*static_cast<const Pieces*>(b))(t); }, &piece);
    } else {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
      for (int t = 0; t < threads; ++t) piece(t);
    }
    error.rethrow();
    return;
  }
#endif
  (void)threads;
  body(std::int64_t{0}, tasks);
}

}  // namespace caldera::cpu
