#include "engine/runtime/plan_cache.h"

#include <utility>

namespace caldera {

std::shared_ptr<Executable> PlanCache::find(const Hash128& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->executable;
}

void PlanCache::insert(const Hash128& key, std::shared_ptr<Executable> executable) {
  std::shared_ptr<Executable> evicted;  // destroyed outside the lock
  const std::scoped_lock lock(mutex_);
  if (index_.contains(key)) return;
  entries_.push_front({key, std::move(executable)});
  index_.emplace(key, entries_.begin());
  if (entries_.size() > kMaxEntries) {
    evicted = std::move(entries_.back().executable);
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

void PlanCache::clear() {
  std::list<Entry> dropped;
  const std::scoped_lock lock(mutex_);
  index_.clear();
  dropped.swap(entries_);
}

PlanCacheStats PlanCache::stats() const {
  const std::scoped_lock lock(mutex_);
  return {.hits = hits_, .misses = misses_, .entries = entries_.size()};
}

PlanCache& plan_cache() {
  static auto* cache = new PlanCache;  // executables must not die after their device's libraries
  return *cache;
}

PlanCacheStats plan_cache_stats() { return plan_cache().stats(); }
void clear_plan_cache() { plan_cache().clear(); }

}  // namespace caldera
