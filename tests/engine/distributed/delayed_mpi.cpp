// A library for MPI whose messages take longer, for tests: opened by CALDERA_MPI, it opens the one that
// CALDERA_TEST_MPI names, and says of no message that it is done before CALDERA_TEST_DELAY_MS have passed
// since it was begun. Where CALDERA_TEST_DELAY_LOG names a file, the end of the process adds a line to it:
// its seconds of CPU time while large messages were delayed, and those since the first of them.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <numeric>

#include "engine/distributed/mpi/mpi_interface.h"

namespace {

using Clock = std::chrono::steady_clock;

const CalderaMpi* real = nullptr;
/// Returns the seconds that all threads of this process have computed for. Time that others compute does not
/// count, so what else runs on the machine changes little.
double cpu_seconds() {
  std::timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Counts what a process computes while its large messages are delayed. It does not count messages that wait
/// for the other rank alone, which last as long as that one computes, nor small ones, which say something of
/// the step before.
class Overlap {
 public:
  Overlap() = default;
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;
  ~Overlap() {
    const char* const path = std::getenv("CALDERA_TEST_DELAY_LOG");
    std::FILE* const file = path != nullptr ? std::fopen(path, "a") : nullptr;
    if (file == nullptr) return;
    if (first_ >= 0) std::fprintf(file, "%.6f %.6f\n", during_, cpu_seconds() - first_);
    std::fclose(file);
  }

  void delay_begins() {
    if (first_ < 0) first_ = cpu_seconds();
    if (delayed_++ == 0) since_ = cpu_seconds();
  }
  void delay_ends() {
    if (--delayed_ == 0) during_ += cpu_seconds() - since_;
  }

 private:
  int delayed_ = 0;
  double since_ = 0;
  double during_ = 0;
  double first_ = -1;
};

Overlap overlap;

std::chrono::milliseconds delay() {
  const char* const text = std::getenv("CALDERA_TEST_DELAY_MS");
  return std::chrono::milliseconds(text != nullptr ? std::atoi(text) : 0);
}

struct Delayed {
  Clock::time_point begun;
  bool is_large = false;
  bool is_over = false;
};

std::map<int, Delayed> begun;  // by request; until it is told to be done

constexpr int kLargeBytes = 64 * 1024;

int noted(int request, int bytes) {
  if (request < 0) return request;
  begun[request] = {Clock::now(), bytes >= kLargeBytes};
  if (bytes >= kLargeBytes) overlap.delay_begins();
  return request;
}

/// Of communicator 0, which is all that the test has.
int ranks = 0;
int start(CalderaMpiPlace* place) {
  const int failed = real->start(place);
  ranks = place->size;
  return failed;
}
int sum_of(const int* counts) { return std::accumulate(counts, counts + ranks, 0); }

int barrier(int comm) { return noted(real->barrier(comm), 0); }
int broadcast(int comm, void* data, int bytes, int root) {
  return noted(real->broadcast(comm, data, bytes, root), bytes);
}
int gather_all(int comm, const void* from, void* to, const int* counts, const int* places) {
  return noted(real->gather_all(comm, from, to, counts, places), sum_of(counts));
}
int exchange_all(int comm, const void* from, const int* counts, const int* places, void* to,
                 const int* to_counts, const int* to_places) {
  return noted(real->exchange_all(comm, from, counts, places, to, to_counts, to_places), sum_of(counts));
}
int reduce_all(int comm, const void* from, void* to, int elements, CalderaMpiType type, CalderaMpiOp op) {
  return noted(real->reduce_all(comm, from, to, elements, type, op), elements);  // of a byte at least
}
int receive(int comm, void* data, int bytes, int from, int tag) {
  return noted(real->receive(comm, data, bytes, from, tag), bytes);
}
int test(int request) {
  static const std::chrono::milliseconds kDelay = delay();
  const auto at = begun.find(request);
  if (at != begun.end() && !at->second.is_over) {
    if (Clock::now() - at->second.begun < kDelay) return 0;
    at->second.is_over = true;
    if (at->second.is_large) overlap.delay_ends();
  }
  const int done = real->test(request);
  if (done != 0) begun.erase(request);
  return done;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const CalderaMpi* caldera_mpi(void) {
  const char* const path = std::getenv("CALDERA_TEST_MPI");
  void* const library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : nullptr;
  if (library == nullptr) return nullptr;
  const auto entry = reinterpret_cast<CalderaMpiEntry>(dlsym(library, "caldera_mpi"));
  if (entry == nullptr) return nullptr;
  real = entry();
  static CalderaMpi delayed = *real;
  delayed.start = start;
  delayed.barrier = barrier;
  delayed.broadcast = broadcast;
  delayed.gather_all = gather_all;
  delayed.exchange_all = exchange_all;
  delayed.reduce_all = reduce_all;
  delayed.receive = receive;
  delayed.test = test;
  return &delayed;
}
