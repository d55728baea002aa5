#include "engine/device/memory_budget.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace caldera {

std::uint64_t MemoryBudget::bound() const {
  std::uint64_t bound = UINT64_MAX;
  for (const std::uint64_t bytes : {limit(), capacity_}) {
    if (bytes > 0) bound = std::min(bound, bytes);
  }
  return bound;
}

bool MemoryBudget::reserve(std::uint64_t bytes) {
  const std::uint64_t most = bound();
  std::uint64_t now = reserved_.load(std::memory_order_relaxed);
  do {
    if (now > most || bytes > most - now) return false;
  } while (!reserved_.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  now += bytes;
  std::uint64_t seen = peak_.load(std::memory_order_relaxed);
  while (seen < now && !peak_.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
  }
  return true;
}

void MemoryBudget::release(std::uint64_t bytes) { reserved_.fetch_sub(bytes, std::memory_order_relaxed); }

void MemoryBudget::set_limit(std::uint64_t bytes) {
  limit_.store(bytes, std::memory_order_relaxed);
  relieve(Pressure::heavy);
  peak_.store(reserved(), std::memory_order_relaxed);
}

void MemoryBudget::relieve(Pressure pressure) {
  trims_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (pressure == Pressure::heavy) {
    for (Reclaimer* reclaimer : reclaimers_) {
      if (reclaimer->at_ == Pressure::heavy) reclaimer->give_back_();
    }
  }
  for (Reclaimer* reclaimer : reclaimers_) {
    if (reclaimer->at_ == Pressure::light) reclaimer->give_back_();
  }
}

MemoryBudget::Reclaimer::Reclaimer(MemoryBudget& budget, Pressure at, std::function<void()> give_back)
    : budget_(budget), at_(at), give_back_(std::move(give_back)) {
  const std::lock_guard lock(budget_.mutex_);
  position_ = budget_.reclaimers_.insert(budget_.reclaimers_.end(), this);
}

MemoryBudget::Reclaimer::~Reclaimer() {
  const std::lock_guard lock(budget_.mutex_);
  budget_.reclaimers_.erase(position_);
}

std::string MemoryBudget::out_of_memory(std::uint64_t wanted, const std::string& what_there_is) const {
  const std::uint64_t most = limit();
  const std::uint64_t taken = reserved();
  const std::string bound =
      most == 0 ? "of " + what_there_is
                : fmt::format("of a limit of {}, which leaves {}", most, most - std::min(most, taken));
  return fmt::format(
      "out of memory: {} bytes wanted; {} in use by tensors, {} taken {}; let go of tensors, use smaller "
      "batches or shorter sequences{}",
      wanted, tensors_.load(std::memory_order_relaxed), taken, bound,
      most > 0 ? ", or raise the limit (--memory-limit, CALDERA_MEMORY_LIMIT, set_memory_limit)" : "");
}

}  // namespace caldera
