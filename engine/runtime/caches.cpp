// What is kept to be used again, over all devices, and memory that is held but not used.
#include <algorithm>

#include "engine/device/backend.h"
#include "engine/graph/histories.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/runtime.h"

namespace caldera {

CacheStats cache_stats(CacheKind kind) {
  if (kind == CacheKind::plans) return plan_cache().stats();
  CacheStats all;
  for (const auto& open : open_devices()) {
    const CacheStats one = open->backend->cache_stats(kind);
    all.hits += one.hits;
    all.misses += one.misses;
    all.evictions += one.evictions;
    all.limit = std::max(all.limit, one.limit);
    if (kind == CacheKind::files) {  // one folder for all devices
      all.entries = std::max(all.entries, one.entries);
      all.bytes = std::max(all.bytes, one.bytes);
    } else {
      all.entries += one.entries;
      all.bytes += one.bytes;
    }
  }
  return all;
}

void set_cache_limit(CacheKind kind, std::uint64_t bytes) {
  if (kind == CacheKind::plans) {
    plan_cache().set_limit(static_cast<std::size_t>(bytes));
    return;
  }
  note_cache_limit(kind, bytes);
  for (const auto& open : open_devices()) open->backend->set_cache_limit(kind, bytes);
}

PlanCacheStats plan_cache_stats() { return cache_stats(CacheKind::plans); }
void set_plan_cache_limit(std::size_t bytes) { set_cache_limit(CacheKind::plans, bytes); }
void clear_plan_cache() { plan_cache().clear(); }

void trim(Device device) {
  give_up_histories();
  for (const auto& open : open_devices()) {
    if (open->backend->info().device == device) open->backend->trim();
  }
}

void trim() {
  give_up_histories();
  for (const auto& open : open_devices()) open->backend->trim();
}

}  // namespace caldera
