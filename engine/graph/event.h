// Event: completion of a piece of asynchronous work.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace caldera {

/// Set once. Any thread may wait.
class Event {
 public:
  bool is_set() const { return state_.load(std::memory_order_acquire) != 0; }
  /// The error the work ended with, or null. Valid once set.
  const std::exception_ptr& error() const { return error_; }
  /// Blocks until set. Rethrows the error, if any.
  void wait() const;
  void set(std::exception_ptr error = nullptr);

  /// Asks the work to end early. Loops look at it between turns; what has no loop runs to its end.
  void request_cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }
  const std::atomic<bool>& cancel_flag() const { return is_cancelled_; }

 private:
  std::atomic<std::uint32_t> state_{0};
  std::atomic<bool> is_cancelled_{false};
  std::exception_ptr error_;
};

}  // namespace caldera
