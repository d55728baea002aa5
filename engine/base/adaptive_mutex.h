// A mutex for short sections that several threads want at once.
#pragma once

#include <mutex>

#ifdef __GLIBC__
#include <pthread.h>
#endif

namespace caldera {

/// A std::mutex whose waiters look again for a few microseconds before they sleep: putting a thread to sleep
/// and waking it costs more than all that is done under it. As any other where the C library has no such
/// kind.
class AdaptiveMutex : public std::mutex {
 public:
  AdaptiveMutex() noexcept {
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    *native_handle() = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#endif
  }
};

}  // namespace caldera
