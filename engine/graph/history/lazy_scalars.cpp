#include "engine/graph/history/lazy_scalars.h"

#include <array>
#include <cstdint>
#include <mutex>

#include "engine/base/adaptive_mutex.h"

namespace caldera {

/// Threads share lists, so that those which end leave nothing behind.
struct LazyScalar::List {
  AdaptiveMutex mutex;
  LazyScalar* youngest = nullptr;
};

namespace {

/// Its address stands for the thread.
constinit thread_local char this_thread = 0;

}  // namespace

LazyScalar::List& LazyScalar::list_of_this_thread() {
  constexpr std::size_t kLists = 16;
  static auto* lists = new std::array<List, kLists>;  // outlive every static tensor
  const auto address = reinterpret_cast<std::uintptr_t>(&this_thread);
  return (*lists)[(address >> 12 ^ address >> 20) % kLists];
}

LazyScalar::LazyScalar(Node& node) : node_(&node), list_(&list_of_this_thread()), thread_(&this_thread) {
  const std::scoped_lock lock(list_->mutex);
  older_ = list_->youngest;
  if (older_ != nullptr) older_->younger_ = this;
  list_->youngest = this;
}

LazyScalar::~LazyScalar() {
  const std::scoped_lock lock(list_->mutex);
  (younger_ == nullptr ? list_->youngest : younger_->older_) = older_;
  if (older_ != nullptr) older_->younger_ = younger_;
}

void LazyScalar::visit_all(std::size_t most, bool (*visit)(void*, Node&), void* to) {
  List& list = list_of_this_thread();
  const std::scoped_lock lock(list.mutex);
  std::size_t looks = 64 * most;  // threads share lists
  for (LazyScalar* entry = list.youngest; entry != nullptr && most > 0 && looks > 0; entry = entry->older_) {
    --looks;
    if (entry->thread_ == &this_thread && visit(to, *entry->node_)) --most;
  }
}

}  // namespace caldera
