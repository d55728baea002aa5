// TicketMutex: a mutex that threads get in the order in which they asked for it. Private to
// lm/generate/.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace caldera::detail {

/// A lock that one thread may take again as soon as it has given it back: with std::mutex another one may
/// wait for ever.
class TicketMutex {
 public:
  void lock() {
    std::unique_lock inner(inner_);
    const std::uint64_t ticket = next_++;
    turn_.wait(inner, [&] { return serving_ == ticket; });
  }
  void unlock() {
    const std::lock_guard inner(inner_);
    ++serving_;
    turn_.notify_all();
  }

 private:
  std::mutex inner_;
  std::condition_variable turn_;
  std::uint64_t next_ = 0;
  std::uint64_t serving_ = 0;
};

}  // namespace caldera::detail
