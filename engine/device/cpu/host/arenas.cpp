#include "engine/device/cpu/host/arenas.h"

#include <algorithm>
#include <exception>

namespace caldera::cpu {

Arenas::Arenas(Allocator& allocator)
    : allocator_(allocator), reclaimer_(allocator.memory(), Pressure::heavy, [this] { drop(); }) {}

Arenas::Lease Arenas::take(std::size_t bytes, std::uint64_t now) {
  if (bytes == 0) return {*this, nullptr, now, 0};
  std::uint64_t needed = now;
  while (true) {
    std::uint64_t drops = 0;
    std::uint64_t given = 0;
    StoragePtr block;
    {
      const std::lock_guard lock(mutex_);
      drops = drops_;
      given = given_;
      block = take_idle(bytes, needed);
      ++in_use_;
    }
    try {
      if (block == nullptr) block = allocator_.allocate(bytes);
    } catch (...) {
      if (!await_room(given)) throw;
      continue;
    }
    if (bytes >= block->bytes() / 4) needed = now;
    return {*this, std::move(block), needed, drops};
  }
}

/// Of a replay that found no room: what does not fit beside the arenas of others may fit after them. Returns
/// when one has been given back since there were `given`; false where nobody is left who could.
bool Arenas::await_room(std::uint64_t given) {
  std::unique_lock<std::mutex> lock(mutex_);
  --in_use_;
  if (given_ != given) return true;
  if (in_use_ == 0) {
    back_.notify_all();
    return false;
  }
  ++waiting_;
  back_.wait(lock, [&] { return given_ != given || in_use_ == 0; });
  --waiting_;
  return true;
}

/// The smallest block that is large enough. Where there is none the largest goes: its successor need not fit
/// beside it.
StoragePtr Arenas::take_idle(std::size_t bytes, std::uint64_t& needed) {
  const auto size = [](const Idle& idle) { return idle.block->bytes(); };
  auto best = idle_.end();
  for (auto idle = idle_.begin(); idle != idle_.end(); ++idle) {
    if (size(*idle) >= bytes && (best == idle_.end() || size(*idle) < size(*best))) best = idle;
  }
  const bool found = best != idle_.end();
  if (!found) best = std::ranges::max_element(idle_, {}, size);
  if (best == idle_.end()) return nullptr;
  StoragePtr block = std::move(best->block);
  needed = best->needed;
  idle_.erase(best);
  return found ? block : nullptr;
}

void Arenas::give(Lease& lease) noexcept {
  StoragePtr dropped = std::move(lease.block_);  // unless it is kept: gone before anyone looks for its room
  std::unique_lock<std::mutex> lock(mutex_);
  if (lease.drops_ == drops_) {
    try {
      idle_.push_back({dropped, lease.needed_});
    } catch (const std::exception&) {  // no memory for the list: the block goes
    }
  }
  lock.unlock();
  dropped.reset();
  lock.lock();
  --in_use_;
  ++given_;
  if (waiting_ > 0) back_.notify_all();
}

void Arenas::drop() {
  std::vector<Idle> dropped;
  const std::lock_guard lock(mutex_);
  ++drops_;
  dropped.swap(idle_);
}

void Arenas::age(std::uint64_t since) {
  std::vector<Idle> dropped;
  {
    const std::lock_guard lock(mutex_);
    const auto is_old = [&](const Idle& idle) {
      return idle.needed < since && idle.block->bytes() >= kWorthGivingBack;
    };
    const auto old =
        std::partition(idle_.begin(), idle_.end(), [&](const Idle& idle) { return !is_old(idle); });
    std::move(old, idle_.end(), std::back_inserter(dropped));
    idle_.erase(old, idle_.end());
  }
  for (Idle& idle : dropped) {
    const std::size_t bytes = idle.block->bytes();
    idle.block.reset();
    allocator_.trim(bytes);
  }
}

}  // namespace caldera::cpu
