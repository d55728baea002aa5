#include "engine/device/cpu/host/awake_team.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#include "engine/device/cpu_threads.h"

namespace caldera::cpu {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a thread spins before it sleeps; one that sleeps takes about 50 us to wake.
constexpr std::chrono::microseconds kAwake{1000};
/// How long OpenMP's threads do the work after OpenBLAS had several: a training step calls it more often.
constexpr std::chrono::milliseconds kAfterBlas{20};
/// Looks at the work, of about 20 ns each, before a thread offers its core to others.
constexpr int kLooks = 256;

void look_again() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// What threads share. Never destroyed: they live as long as the process.
struct Work {
  /// A number of the work in the upper half, and in the lower one a bit for each piece that nobody has begun.
  alignas(64) std::atomic<std::uint64_t> open{0};
  alignas(64) std::atomic<int> unfinished{0};
  /// Of the work that is open: written before it is, and read by those who have begun a piece of it.
  AwakeTeam::Piece piece = nullptr;
  const void* body = nullptr;
  alignas(64) std::atomic<std::uint32_t> bell{0};
  std::atomic<int> asleep{0};
  std::atomic<bool> rests{false};
  std::atomic<Clock::rep> last_blas{0};
  int threads = 0;  // that were started
  /// Threads that may work, with the caller: those with a number from here on sleep until it grows, and no
  /// work wakes them.
  std::atomic<int> allowed{0};
};

Work& work() {
  static auto* shared = new Work;
  return *shared;
}
thread_local bool inside = false;

/// Begins piece `own` if nobody has, or else another one. Returns -1 where none is left.
int begin_piece(Work& w, int own) {
  std::uint64_t open = w.open.load(std::memory_order_acquire);
  for (;;) {
    const auto pieces = static_cast<std::uint32_t>(open);
    if (pieces == 0) return -1;
    const int piece = (pieces >> own & 1U) != 0 ? own : std::countr_zero(pieces);
    if (w.open.compare_exchange_weak(open, open & ~(std::uint64_t{1} << piece), std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      return piece;
  }
}

void run_piece(Work& w, int piece) noexcept {
  inside = true;
  w.piece(w.body, piece);
  inside = false;
  w.unfinished.fetch_sub(1, std::memory_order_release);
}

bool may_work(const Work& w, int own) { return own < w.allowed.load(std::memory_order_relaxed); }

void sleep_until_work(Work& w, int own) {
  if (!may_work(w, own)) {
    const int allowed = w.allowed.load();
    if (own >= allowed) w.allowed.wait(allowed);
    return;
  }
  w.asleep.fetch_add(1);
  const std::uint32_t bell = w.bell.load();
  if (static_cast<std::uint32_t>(w.open.load()) == 0) w.bell.wait(bell);
  w.asleep.fetch_sub(1);
}

[[noreturn]] void serve(int own) {
#ifdef _OPENMP
  omp_set_num_threads(1);  // OpenBLAS under a piece uses the thread that called it
#endif
  Work& w = work();
  Clock::time_point last = Clock::now();
  for (int looks = 0;;) {
    const int piece = may_work(w, own) ? begin_piece(w, own) : -1;
    if (piece >= 0) {
      run_piece(w, piece);
      last = Clock::now();
      looks = 0;
      continue;
    }
    look_again();
    if (++looks < kLooks) continue;
    looks = 0;
    if (w.rests.load(std::memory_order_relaxed) || !may_work(w, own) || Clock::now() - last > kAwake) {
      sleep_until_work(w, own);
      last = Clock::now();
    } else {
      std::this_thread::yield();
    }
  }
}

/// Where the system has no more threads, those that there are do all.
void start_threads(Work& w, int count) {
  try {
    for (; w.threads < count; ++w.threads) std::thread(serve, w.threads + 1).detach();
  } catch (const std::system_error&) {
  }
}

}  // namespace

void AwakeTeam::run(int pieces, Piece piece, const void* body) {
  if (inside) {
    for (int i = 0; i < pieces; ++i) piece(body, i);
    return;
  }
  Work& w = work();
  if (const int allowed = std::max(cpu_threads(), pieces); allowed != w.allowed.load()) {
    w.allowed.store(allowed);
    w.allowed.notify_all();
  }
  start_threads(w, pieces - 1);
  w.piece = piece;
  w.body = body;
  w.rests.store(false, std::memory_order_relaxed);
  w.unfinished.store(pieces, std::memory_order_relaxed);
  const std::uint64_t number = (w.open.load(std::memory_order_relaxed) >> 32) + 1;
  w.open.store(number << 32 | (~std::uint64_t{0} >> (64 - pieces) & ~std::uint64_t{1}));
  if (w.asleep.load() > 0) {
    w.bell.fetch_add(1);
    w.bell.notify_all();
  }
#ifdef _OPENMP
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
#endif
  for (int mine = 0; mine >= 0; mine = begin_piece(w, 1)) run_piece(w, mine);
#ifdef _OPENMP
  omp_set_num_threads(before);
#endif
  for (int looks = 0; w.unfinished.load(std::memory_order_acquire) > 0;) {
    look_again();
    if (++looks % (8 * kLooks) == 0) std::this_thread::yield();  // whoever is at work may want this core
  }
}

bool AwakeTeam::is_better() {
  const Clock::rep last = work().last_blas.load(std::memory_order_relaxed);
  return last == 0 || Clock::now().time_since_epoch() - Clock::duration(last) > kAfterBlas;
}

void AwakeTeam::rest() {
  Work& w = work();
  w.last_blas.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  w.rests.store(true, std::memory_order_relaxed);
}

bool AwakeTeam::is_inside() { return inside; }

}  // namespace caldera::cpu
