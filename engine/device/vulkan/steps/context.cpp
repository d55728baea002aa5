#include "engine/device/vulkan/steps/context.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "engine/device/environment.h"
#include "engine/device/vulkan/open/device_identity.h"
#include "engine/device/vulkan/steps/attention_variants.h"

namespace caldera::vulkan {
namespace {

/// Debugging: treats a device whose memory the host can reach like one whose memory it cannot.
bool staging_forced() { return environment_flag("CALDERA_VULKAN_STAGING"); }

/// Debugging: CALDERA_VULKAN_ATTENTION.
std::string_view pinned_attention() {
  const char* const name = std::getenv("CALDERA_VULKAN_ATTENTION");
  return name == nullptr ? std::string_view() : name;
}

/// Multiprocessors of a GPU are not told by the driver; 64 are between an integrated one's and the largest.
std::int32_t units_of(const Capabilities& can) {
  constexpr int kUnknown = 64, kMost = 4096;
  const int own = can.software ? static_cast<int>(std::thread::hardware_concurrency()) : kUnknown;
  return environment_number("CALDERA_VULKAN_UNITS", std::clamp(own, 1, kMost), 1, kMost);
}

GlslOptions glsl_options(const Capabilities& can) {
  GlslOptions options;
  if (can.subgroup_arithmetic) options.subgroup_size = can.subgroup_size;
  // Without size control a driver may run a workgroup as subgroups of other sizes; software devices have one
  // size.
  options.exact_subgroup_size = can.subgroup_arithmetic && (can.subgroup_size_control || can.software);
  options.preserve_nan_inf = can.preserve_nan_inf;
  options.bytes_in_words = !can.storage_8bit;
  options.halves_in_words = !can.storage_16bit;
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
      glsl(glsl_options(device->capabilities())),
      few_cores(physical.capabilities.software && !environment_flag("CALDERA_VULKAN_WIDE")),
      attention(&attention_variant(few_cores, physical.capabilities.cooperative_matrix, pinned_attention())),
      compute_units(units_of(physical.capabilities)),
      arena_(tensors) {}

void Context::count_replay() {
  if (++replays_ % kAge != 0) return;
  arena_.age(replays_ - kAge);
  tensors->age();
  tables->age();
}

bool Context::supports(DType type) const {
  const Capabilities& can = device->capabilities();
  const DType computed = compute_type(type);
  if (computed == DType::i64) return can.int64;
  if (computed == DType::f64) return can.float64;
  return true;
}

}  // namespace caldera::vulkan
