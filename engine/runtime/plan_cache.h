// The plan cache: executables by structural hash, least recently used out first. Internal to the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "engine/base/adaptive_mutex.h"
#include "engine/base/hash.h"
#include "engine/device/backend.h"
#include "engine/device/cache_stats.h"
#include "engine/graph/event.h"

namespace caldera {

/// Returns the key that a plan is found by: the structure of its graph (GraphKey::hash), every setting and
/// every trait of the device that changes what is compiled, and the opening of the device (OpenDevice).
Hash128 plan_key(const Hash128& structure, const DeviceTraits& traits, std::uint64_t opening);

/// Thread-safe.
class PlanCache {
 public:
  static constexpr std::size_t kDefaultLimit = std::size_t{256} << 20;

  explicit PlanCache(std::size_t limit = kDefaultLimit) : limit_(limit) {}

  enum class Lookup : std::uint8_t { first, further };
  /// Null on a miss. Counts; a further lookup counts as one with that before it, which found a plan that is
  /// not wanted.
  std::shared_ptr<Executable> find(const Hash128& key, Lookup lookup = Lookup::first);
  /// Makes room by dropping what was used longest ago. The newest stays, however large it is: a loop must not
  /// compile its plan at every turn.
  void insert(const Hash128& key, std::shared_ptr<Executable> executable);
  /// Inserts and returns what `make` gives; of several threads that ask for one key at a time, one calls it,
  /// and the others wait for what comes of it: the executable, or its error.
  std::shared_ptr<Executable> make_once(const Hash128& key,
                                        const std::function<std::shared_ptr<Executable>()>& make);
  void clear();
  /// Drops the plans of a device.
  void drop(Device device);
  void set_limit(std::size_t bytes);
  /// Drops the plans of a device that nobody else holds: none that waits or runs.
  void drop_unused(Device device);
  CacheStats stats() const;

 private:
  struct Entry {
    Hash128 key;
    std::shared_ptr<Executable> executable;
    std::size_t bytes;
  };

  /// Holds what a thread is making, for those that wait.
  struct Making {
    std::shared_ptr<Executable> made;
    Event done;
  };

  /// Moves to `dropped` what does not fit, to be destroyed outside the lock.
  void shrink(std::list<Entry>& dropped);

  mutable AdaptiveMutex mutex_;
  std::size_t limit_;
  std::list<Entry> entries_;  // most recent first
  std::unordered_map<Hash128, std::list<Entry>::iterator> index_;
  std::unordered_map<Hash128, std::shared_ptr<Making>> making_;
  std::size_t bytes_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  std::uint64_t evictions_ = 0;
};

/// Bytes that an executable keeps while it is cached, plan and all: an estimate.
std::size_t cached_bytes(const Executable& executable);

PlanCache& plan_cache();

}  // namespace caldera
