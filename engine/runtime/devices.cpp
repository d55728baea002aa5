#include "engine/runtime/devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/cpu/cpu_backend.h"
#include "engine/device/null/null_backend.h"
#include "engine/explain/records.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/runtime.h"
#include "engine/runtime/survey.h"
#include "engine/survey/surveyor.h"
#if CALDERA_HAS_VULKAN
#include "engine/device/vulkan/vulkan_backend.h"
#endif

namespace caldera {
namespace {

std::unique_ptr<Backend> make_backend(Device device) {
  switch (device.kind) {
    case DeviceKind::cpu:
      return make_cpu_backend();
    case DeviceKind::null:
      return make_null_backend();
    case DeviceKind::vulkan:
      break;
  }
#if CALDERA_HAS_VULKAN
  return make_vulkan_backend(device.index);
#else
  throw DeviceError(fmt::format("{} is not available: this build of Caldera has no Vulkan; use --device cpu",
                                device.to_string()));
#endif
}

std::unique_ptr<Backend> make_surveyor(Device device) {
#if CALDERA_HAS_VULKAN
  if (device.kind == DeviceKind::vulkan) return make_vulkan_surveyor(device.index);
#endif
  throw DeviceError(fmt::format("{} has no kernels to survey: only Vulkan devices have (--device vulkan)",
                                device.to_string()));
}

struct Registry {
  std::mutex mutex;
  std::map<std::pair<DeviceKind, std::uint8_t>, std::shared_ptr<OpenDevice>> devices;
  std::map<CacheKind, std::uint64_t> cache_limits;  // that were set; of what is yet to be opened too
  std::uint64_t openings = 0;
  bool has_ended = false;  // the process is ending

  std::shared_ptr<OpenDevice> open(Device device) { return open(make_backend(device)); }
  std::shared_ptr<OpenDevice> open(std::unique_ptr<Backend> backend) {
    auto open = std::make_shared<OpenDevice>();
    open->backend = std::move(backend);
    if (settings().memory_limit > 0) open->backend->set_memory_limit(settings().memory_limit);
    for (const auto& [kind, bytes] : cache_limits) open->backend->set_cache_limit(kind, bytes);
    open->stream = std::make_unique<Stream>(*open->backend);
    open->opening = ++openings;
    return open;
  }
};

/// Never destroyed: static tensors may outlive every other static object.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

/// At exit, work in flight is finished, and what was compiled is kept, before the libraries that it runs in
/// are torn down. Other threads, and static objects, may go on after that.
void drain_at_exit() {
  Registry& r = registry();
  std::vector<std::shared_ptr<OpenDevice>> devices;
  {
    const std::scoped_lock lock(r.mutex);
    r.has_ended = true;
    for (auto& [key, open] : r.devices) devices.push_back(open);
  }
  for (const auto& open : devices) {
    open->stream->end_threads();
    open->backend->save_caches();
  }
}

}  // namespace

std::shared_ptr<OpenDevice> open_device(Device device) {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  if (r.has_ended && device.kind == DeviceKind::vulkan) {
    throw DeviceError(fmt::format(
        "{}: the process is ending, and the driver may be gone; read what is needed before main() returns",
        device.to_string()));
  }
  const auto key = std::pair(device.kind, device.index);
  const auto found = r.devices.find(key);
  if (found != r.devices.end()) return found->second;
  std::shared_ptr<OpenDevice> opened = r.open(device);
  if (r.has_ended) opened->stream->end_threads();
  if (r.devices.empty() && !r.has_ended) std::atexit(drain_at_exit);
  return r.devices.emplace(key, std::move(opened)).first->second;
}

void open_for_survey(Device device) {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  const auto key = std::pair(device.kind, device.index);
  auto surveyor = make_surveyor(device);  // or says what kind of device has none
  if (r.devices.contains(key))
    throw Error(
        fmt::format("{} is open already: survey it before anything else uses it", device.to_string()));
  if (r.devices.empty() && !r.has_ended) std::atexit(drain_at_exit);
  r.devices.emplace(key, r.open(std::move(surveyor)));
}

std::vector<KernelReport> survey_kernels(Device device,
                                         std::span<const std::shared_ptr<const RunRecord>> runs) {
  auto* const surveyor = dynamic_cast<Surveyor*>(&backend(device));
  if (surveyor == nullptr)
    throw Error(fmt::format("{} was not opened by open_for_survey()", device.to_string()));
  std::vector<std::shared_ptr<const Plan>> plans;
  plans.reserve(runs.size());
  for (const auto& run : runs) plans.push_back(run->plan);
  return surveyor->survey(plans);
}

const DeviceInfo& device_info(Device device) { return backend(device).info(); }

bool supports(Device device, DType type) { return backend(device).supports(type); }

DeviceCounters device_counters(Device device) { return backend(device).counters(); }

void reopen_device(Device device) {
  std::shared_ptr<OpenDevice> before;  // released outside the mutex: its stream may have work to finish
  {
    Registry& r = registry();
    const std::scoped_lock lock(r.mutex);
    const auto found = r.devices.find({device.kind, device.index});
    if (found != r.devices.end()) {
      const std::uint64_t limit = found->second->backend->counters().limit_bytes;
      before = std::exchange(found->second, r.open(device));
      found->second->backend->set_memory_limit(limit);
    }
  }
  if (before == nullptr) {
    open_device(device);
    return;
  }
  plan_cache().drop(device);
}

Backend& backend(Device device) { return *open_device(device)->backend; }

std::vector<std::shared_ptr<OpenDevice>> open_devices() {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  std::vector<std::shared_ptr<OpenDevice>> devices;
  devices.reserve(r.devices.size());
  for (const auto& [key, open] : r.devices) devices.push_back(open);
  return devices;
}

void synchronize() {
  for (const auto& open : open_devices()) open->stream->synchronize();
}

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
  {
    Registry& r = registry();
    const std::scoped_lock lock(r.mutex);
    r.cache_limits[kind] = bytes;  // of devices that are opened from now on
  }
  for (const auto& open : open_devices()) open->backend->set_cache_limit(kind, bytes);
}

PlanCacheStats plan_cache_stats() { return cache_stats(CacheKind::plans); }
void set_plan_cache_limit(std::size_t bytes) { set_cache_limit(CacheKind::plans, bytes); }
void clear_plan_cache() { plan_cache().clear(); }

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> all{backend(Device::cpu()).info()};
#if CALDERA_HAS_VULKAN
  for (DeviceInfo& found : list_vulkan_devices()) all.push_back(std::move(found));
#endif
  return all;
}

bool is_vulkan_available() {
  static bool available = list_devices().size() > 1;
  return available;
}

}  // namespace caldera
