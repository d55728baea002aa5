// The runtime: open devices, compiled plans, and what they have done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device/cache_stats.h"
#include "engine/device/device_info.h"
#include "engine/runtime/settings.h"
#include "engine/tensor/dtype.h"

namespace caldera {

class Backend;

/// The device's backend, opened on first use and kept until reopen_device. Thread-safe. Throws DeviceError
/// when there is no such device.
Backend& backend(Device device);

/// Opens the device again, next to what was open before, and drops its plans: the way on after the device was
/// lost. What is scheduled on the former opening ends first. Tensors whose values are in Vulkan memory of the
/// former opening give a DeviceError where they are used; those of a device that was not lost should be
/// copied to the host before. Thread-safe. Throws DeviceError, and changes nothing, when the device cannot be
/// opened.
void reopen_device(Device device);

/// Says what the device is. Opens it if need be; throws as backend() does. Valid until reopen_device.
/// Thread-safe.
const DeviceInfo& device_info(Device device);
/// Says whether the device computes with the type. Opens it if need be; throws as backend() does.
/// Thread-safe.
bool supports(Device device, DType type);

/// Counts what the device has done since it was opened. Opens it if need be; throws as backend() does.
/// Thread-safe.
DeviceCounters device_counters(Device device);

/// Lists the devices: the CPU, then Vulkan devices, best first.
std::vector<DeviceInfo> list_devices();

/// Whether list_devices() names a Vulkan device. Asked once.
bool is_vulkan_available();

/// Counts what is kept of a kind, over all open devices: see CacheKind. The limit is of each device that has
/// one. Thread-safe.
CacheStats cache_stats(CacheKind kind);
/// Drops what was used longest ago beyond this many bytes, from now on, on devices opened later too; the
/// newest always stays. Initially 256 MiB of plans, 32 MiB of kernels, 64 MiB of pipelines a device, and
/// CALDERA_CACHE_LIMIT or 256 MiB of files. Plans and recordings keep the kernels and pipelines that they run
/// for as long as they live. Thread-safe.
void set_cache_limit(CacheKind kind, std::uint64_t bytes);

/// cache_stats and set_cache_limit of CacheKind::plans.
using PlanCacheStats = CacheStats;
PlanCacheStats plan_cache_stats();
void clear_plan_cache();
void set_plan_cache_limit(std::size_t bytes);

/// Gives the memory that the device, or every open device, holds but does not use back to the system or the
/// driver now: idle arenas, free blocks, cached ones, staging, and on the host what the C library has of
/// freed memory, of freed nodes that of the calling thread. Waits for work in flight. Values, plans and
/// kernels stay (clear_plan_cache, set_cache_limit); the histories of values that were evaluated are given
/// up, so differentiate before. What comes next takes memory again. A device that is not open is not opened.
/// Not needed in a loop: what 64 evaluations of a device did not need goes back by itself. Thread-safe.
/// Throws DeviceError when the device is lost.
void trim(Device device);
void trim();

/// Outputs that took the memory of an input instead of new memory, over all devices. An input whose value
/// nobody holds any longer (a parameter that the step replaces) is overwritten by the result that is computed
/// from it point by point. Monotonic. Thread-safe.
struct DonationStats {
  std::uint64_t buffers = 0;
  std::uint64_t bytes = 0;
};
DonationStats donation_stats();

/// The most bytes that the device may take from the system or its driver at a time, from now on; 0: no limit.
/// Backend::set_memory_limit says what counts. It is never exceeded by anything taken later: where there is
/// no room, the device waits for work in flight, gives back what is unused and drops what can be made again;
/// where that is not enough, the evaluation throws OutOfMemoryError, and the engine goes on. Devices start
/// with Settings::memory_limit. Thread-safe.
void set_memory_limit(Device device, std::uint64_t bytes);

/// Blocks until everything scheduled so far on all devices has finished. Errors stay in their events.
void synchronize();

}  // namespace caldera
