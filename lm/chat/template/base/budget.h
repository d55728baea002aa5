// Accounts for what a rendering uses, and stops it when it exceeds its limits.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

#include "lm/chat/template/base/limits.h"

namespace caldera::chat {

/// Anything wrong that values, filters and functions find: they do not know where in the template they are
/// called from. The interpreter adds line and column.
struct Fault {
  std::string message;
};

/// Throws a Fault with a formatted message.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Fault{fmt::format(format, std::forward<Args>(args)...)};
}

/// Refuses to go deeper into the calling thread's stack than `max_bytes` from where it was made.
class StackLimit {
 public:
  explicit StackLimit(std::size_t max_bytes);
  /// Throws a Fault where the stack has grown beyond the limit.
  void check() const;

 private:
  std::size_t base_;
  std::size_t max_bytes_;
};

/// The budget of one rendering. Values find it through current(), so that each counts itself; it is the
/// thread's own while a Budget::Use lives.
class Budget {
 public:
  explicit Budget(const ChatTemplateLimits& limits);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  /// The budget in use on this thread; nullptr outside of renderings (constants of a template being parsed).
  static Budget* current();

  /// Counts `count` steps; throws a Fault when there are none left.
  void step(std::size_t count = 1) {
    if (count > steps_left_) out_of_steps();
    steps_left_ -= count;
  }
  void take(std::size_t bytes);
  void give(std::size_t bytes) noexcept { bytes_ -= bytes; }

  const ChatTemplateLimits& limits() const { return limits_; }
  void check_stack() const { stack_.check(); }

  /// Makes a budget the thread's while it lives.
  class Use {
   public:
    explicit Use(Budget& budget);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Budget* before_;
  };

 private:
  [[noreturn]] void out_of_steps() const;

  ChatTemplateLimits limits_;
  StackLimit stack_;
  std::size_t steps_left_;
  std::size_t bytes_ = 0;
};

/// Counts steps of the current budget, if there is one, and looks after the stack of what recurses.
void step(std::size_t count = 1);
void check_stack();

/// Bytes taken from the current budget for as long as this lives.
class Charge {
 public:
  Charge() : budget_(Budget::current()) {}
  explicit Charge(std::size_t bytes) : budget_(Budget::current()) { resize(bytes); }
  ~Charge() {
    if (budget_ != nullptr) budget_->give(bytes_);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  Charge(Charge&& other) noexcept : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  /// Throws a Fault where that is more than the budget has; the charge is then what it was.
  void resize(std::size_t bytes) {
    if (budget_ == nullptr) return;
    if (bytes > bytes_) {
      budget_->take(bytes - bytes_);
    } else {
      budget_->give(bytes_ - bytes);
    }
    bytes_ = bytes;
  }

 private:
  Budget* budget_;
  std::size_t bytes_ = 0;
};

}  // namespace caldera::chat
