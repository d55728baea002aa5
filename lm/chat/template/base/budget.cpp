#include "lm/chat/template/base/budget.h"

#include <cstdint>

namespace caldera::chat {
namespace {

thread_local Budget* current_budget = nullptr;

/// Where the stack is now. The frame's own address, because the address of a local variable may be elsewhere
/// under AddressSanitizer.
std::size_t stack_position() { return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)); }

}  // namespace

StackLimit::StackLimit(std::size_t max_bytes) : base_(stack_position()), max_bytes_(max_bytes) {}

void StackLimit::check() const {
  const std::size_t now = stack_position();
  if ((now > base_ ? now - base_ : base_ - now) > max_bytes_)
    fail("nested too deeply: it would overflow the stack");
}

Budget::Budget(const ChatTemplateLimits& limits)
    : limits_(limits), stack_(limits.max_stack_bytes), steps_left_(limits.max_steps) {}

Budget* Budget::current() { return current_budget; }

void Budget::take(std::size_t bytes) {
  if (bytes > limits_.max_memory_bytes || bytes_ > limits_.max_memory_bytes - bytes) {
    fail("the template needs more memory than its limit of {} bytes (max_memory_bytes)",
         limits_.max_memory_bytes);
  }
  bytes_ += bytes;
}

void Budget::out_of_steps() const {
  fail("the template takes more steps than its limit of {} (max_steps)", limits_.max_steps);
}

Budget::Use::Use(Budget& budget) : before_(std::exchange(current_budget, &budget)) {}
Budget::Use::~Use() { current_budget = before_; }

void step(std::size_t count) {
  if (current_budget != nullptr) current_budget->step(count);
}

void check_stack() {
  if (current_budget != nullptr) current_budget->check_stack();
}

}  // namespace caldera::chat
