// A cache of things made from a key: each made once, the least recently used out first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "engine/base/hash.h"
#include "engine/device/cache_stats.h"

namespace caldera {

/// Thread-safe. `Value` has `std::size_t bytes() const`, which may change from use to use. What is dropped
/// lives on with those who hold it.
template <class Value>
class RecentCache {
 public:
  explicit RecentCache(std::uint64_t limit) { stats_.limit = limit; }

  /// Returns what is kept under the key, made by `make()` if there is none: by one thread, for which others
  /// that ask for the same key wait, and nobody else. Throws what `make` throws; the next to ask tries again.
  template <class Make>
  std::shared_ptr<Value> get(const Hash128& key, const Make& make) {
    const std::shared_ptr<Slot> slot = slot_of(key);
    const std::lock_guard making(slot->mutex);
    if (slot->value == nullptr) {
      try {
        std::shared_ptr<Value> made = make();
        const std::lock_guard lock(mutex_);
        slot->value = std::move(made);
      } catch (...) {
        drop(key, slot);
        throw;
      }
    }
    refresh(key);
    return slot->value;
  }

  /// Looks again how many bytes the value under the key has, and makes room.
  void refresh(const Hash128& key) {
    Entries dropped;
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found == index_.end() || found->second->slot->value == nullptr) return;
    Entry& entry = *found->second;
    const std::uint64_t bytes = entry.slot->value->bytes();
    stats_.bytes += bytes - std::exchange(entry.bytes, bytes);
    shrink(dropped);
  }

  /// Forgets `value`, unless another one has taken its place.
  void forget(const Hash128& key, const Value* value) {
    Entries dropped;
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found != index_.end() && found->second->slot->value.get() == value) take_out(found->second, dropped);
  }

  void set_limit(std::uint64_t bytes) {
    Entries dropped;
    const std::lock_guard lock(mutex_);
    stats_.limit = bytes;
    shrink(dropped);
  }

  CacheStats stats() const {
    const std::lock_guard lock(mutex_);
    CacheStats stats = stats_;
    stats.entries = entries_.size();
    return stats;
  }

 private:
  struct Slot {
    std::mutex mutex;              // held while the value is made
    std::shared_ptr<Value> value;  // written under both mutexes
  };
  struct Entry {
    Hash128 key;
    std::shared_ptr<Slot> slot;
    std::uint64_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  std::shared_ptr<Slot> slot_of(const Hash128& key) {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found != index_.end()) {
      ++stats_.hits;
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->slot;
    }
    ++stats_.misses;
    entries_.push_front({key, std::make_shared<Slot>(), 0});
    index_.emplace(key, entries_.begin());
    return entries_.front().slot;
  }

  void drop(const Hash128& key, const std::shared_ptr<Slot>& slot) {
    Entries dropped;
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found != index_.end() && found->second->slot == slot) take_out(found->second, dropped);
  }

  /// Moves to `dropped`, to be destroyed outside the lock.
  void take_out(typename Entries::iterator entry, Entries& dropped) {
    stats_.bytes -= entry->bytes;
    index_.erase(entry->key);
    dropped.splice(dropped.begin(), entries_, entry);
  }

  void shrink(Entries& dropped) {
    while (stats_.bytes > stats_.limit && entries_.size() > 1) {
      take_out(std::prev(entries_.end()), dropped);
      ++stats_.evictions;
    }
  }

  mutable std::mutex mutex_;
  Entries entries_;  // most recent first
  std::unordered_map<Hash128, typename Entries::iterator> index_;
  CacheStats stats_;
};

}  // namespace caldera
