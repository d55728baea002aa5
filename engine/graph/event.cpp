#include "engine/graph/event.h"

#include <utility>

namespace caldera {

void Event::wait() const {
  while (!is_set()) state_.wait(0, std::memory_order_acquire);
  if (error_) std::rethrow_exception(error_);
}

void Event::set(std::exception_ptr error) {
  error_ = std::move(error);
  state_.store(1, std::memory_order_release);
  state_.notify_all();
}

}  // namespace caldera
