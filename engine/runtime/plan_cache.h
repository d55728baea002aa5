// The plan cache: executables by structural hash, least recently used out first. Internal to the runtime.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "engine/device/backend.h"
#include "engine/runtime/runtime.h"
#include "engine/tensor/hash.h"

namespace caldera {

/// Thread-safe.
class PlanCache {
 public:
  /// Null on a miss. Counts.
  std::shared_ptr<Executable> find(const Hash128& key);
  void insert(const Hash128& key, std::shared_ptr<Executable> executable);
  void clear();
  PlanCacheStats stats() const;

 private:
  static constexpr std::size_t kMaxEntries = 256;
  struct Entry {
    Hash128 key;
    std::shared_ptr<Executable> executable;
  };
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recent first
  std::unordered_map<Hash128, std::list<Entry>::iterator> index_;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

PlanCache& plan_cache();

}  // namespace caldera
