// A library for MPI whose messages take longer, for tests: opened by CALDERA_MPI, it opens the one that
// CALDERA_TEST_MPI names, and says of no message that it is done before CALDERA_TEST_DELAY_MS have passed
// since it was begun.
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <map>

#include "engine/distributed/mpi/mpi_interface.h"

namespace {

using Clock = std::chrono::steady_clock;

const CalderaMpi* real = nullptr;
std::map<int, Clock::time_point> begun;  // by request

std::chrono::milliseconds delay() {
  const char* const text = std::getenv("CALDERA_TEST_DELAY_MS");
  return std::chrono::milliseconds(text != nullptr ? std::atoi(text) : 0);
}

int noted(int request) {
  if (request >= 0) begun[request] = Clock::now();
  return request;
}

int barrier(int comm) { return noted(real->barrier(comm)); }
int broadcast(int comm, void* data, int bytes, int root) {
  return noted(real->broadcast(comm, data, bytes, root));
}
int gather_all(int comm, const void* from, void* to, const int* counts, const int* places) {
  return noted(real->gather_all(comm, from, to, counts, places));
}
int exchange_all(int comm, const void* from, const int* counts, const int* places, void* to,
                 const int* to_counts, const int* to_places) {
  return noted(real->exchange_all(comm, from, counts, places, to, to_counts, to_places));
}
int reduce_all(int comm, const void* from, void* to, int elements, CalderaMpiType type, CalderaMpiOp op) {
  return noted(real->reduce_all(comm, from, to, elements, type, op));
}
int receive(int comm, void* data, int bytes, int from, int tag) {
  return noted(real->receive(comm, data, bytes, from, tag));
}
int test(int request) {
  static const std::chrono::milliseconds kDelay = delay();
  const auto at = begun.find(request);
  if (at != begun.end() && Clock::now() - at->second < kDelay) return 0;
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
  delayed.barrier = barrier;
  delayed.broadcast = broadcast;
  delayed.gather_all = gather_all;
  delayed.exchange_all = exchange_all;
  delayed.reduce_all = reduce_all;
  delayed.receive = receive;
  delayed.test = test;
  return &delayed;
}
