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

 private:
  std::atomic<std::uint32_t> state_{0};
  std::exception_ptr error_;
};

}  // namespace caldera
