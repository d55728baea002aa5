#include "engine/device/vulkan/steps/context.h"

#include <utility>

#include "engine/device/environment.h"
#include "engine/device/vulkan/open/device_identity.h"

namespace caldera::vulkan {
namespace {

/// Debugging: treats a device whose memory the host can reach like one whose memory it cannot.
bool staging_forced() { return environment_flag("CALDERA_VULKAN_STAGING"); }

GlslOptions glsl_options(const Capabilities& can) {
  GlslOptions options;
  if (can.subgroup_arithmetic) options.subgroup_size = can.subgroup_size;
  // Without size control a driver may run a workgroup as subgroups of other sizes; software devices have one
  // size.
  options.exact_subgroup_size = can.subgroup_arithmetic && (can.subgroup_size_control || can.software);
  options.preserve_nan_inf = can.preserve_nan_inf;
  return options;
}

}  // namespace

Context::Context(const PhysicalDevice& physical)
    : device(std::make_shared<LogicalDevice>(physical)),
      tensors(std::make_shared<MemoryPool>(device, MemoryUse::tensors, staging_forced())),
      tables(std::make_shared<MemoryPool>(device, MemoryUse::tables)),
      pipelines(device, DiskCache(DiskCache::default_directory())),
      measurements(device),
      pace(physical),
      tuner(TuneSetting::from_environment(physical.capabilities.software), device_identity(physical.handle),
            DiskCache::default_directory()),
      glsl(glsl_options(physical.capabilities)),
      few_cores(physical.capabilities.software && !environment_flag("CALDERA_VULKAN_WIDE")),
      reclaimer_(device->memory(), Pressure::heavy, [this] {
        const std::lock_guard lock(arena_mutex_);
        arena_.reset();
      }) {}

std::shared_ptr<VulkanStorage> Context::arena(std::uint64_t bytes) {
  {
    const std::lock_guard lock(arena_mutex_);
    if (arena_ != nullptr && bytes >= arena_->bytes() / 4) arena_needed_ = replays_;
    if (arena_ != nullptr && arena_->bytes() >= bytes) return arena_;
    arena_.reset();  // given back first: the two need not fit side by side unless the old one is still in use
  }
  auto made = std::make_shared<VulkanStorage>(tensors, bytes);
  const std::lock_guard lock(arena_mutex_);
  arena_ = made;
  arena_needed_ = replays_;
  return made;
}

void Context::count_replay() {
  if (++replays_ % kAge != 0) return;
  std::shared_ptr<VulkanStorage> old;
  {
    const std::lock_guard lock(arena_mutex_);
    if (arena_needed_ + kAge <= replays_) old = std::move(arena_);
  }
  old.reset();
  tensors->age();
  tables->age();
}

bool Context::supports(DType type) const {
  const Capabilities& can = device->capabilities();
  const DType computed = compute_type(type);
  if (size_of(type) == 1 && !can.storage_8bit) return false;
  if (size_of(type) == 2 && !can.storage_16bit) return false;
  if (computed == DType::i64) return can.int64;
  if (computed == DType::f64) return can.float64;
  return true;
}

}  // namespace caldera::vulkan
