// The traces of one compiled function. Internal to compiled functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/base/adaptive_mutex.h"
#include "engine/base/hash.h"
#include "engine/jit/trace.h"

namespace caldera {

/// Thread-safe.
class TraceCache {
 public:
  /// Keeps at least one.
  explicit TraceCache(std::size_t limit) : limit_(limit == 0 ? 1 : limit) {}

  /// The trace that a call with these arguments replays; null: there is none.
  std::shared_ptr<const Trace> find(std::span<const LazyTensor> arguments);
  /// Drops what was used longest ago beyond the limit.
  void insert(std::span<const LazyTensor> arguments, std::shared_ptr<const Trace> trace);
  void drop(const std::shared_ptr<const Trace>& trace);

 private:
  struct Entry {
    Hash128 key;
    std::shared_ptr<const Trace> trace;
  };

  /// Hashes the signature, and the values of numbers that traces of it have looked at. Under the mutex.
  Hash128 key_of(std::span<const LazyTensor> arguments, const Hash128& signature) const;

  const std::size_t limit_;
  AdaptiveMutex mutex_;
  std::list<Entry> entries_;  // most recent first
  std::unordered_map<Hash128, std::list<Entry>::iterator> index_;
  std::unordered_map<Hash128, std::vector<std::uint32_t>> looked_at_;  // by signature, where there are any
};

}  // namespace caldera
