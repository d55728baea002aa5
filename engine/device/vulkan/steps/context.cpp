#include "engine/device/vulkan/steps/context.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "engine/device/environment.h"
#include "engine/device/vulkan/attention/attention_families.h"
#include "engine/device/vulkan/open/device_identity.h"

namespace caldera::vulkan {
namespace {

/// Debugging: treats a device whose memory the host can reach like one whose memory it cannot.
bool staging_forced() { return environment_flag("CALDERA_VULKAN_STAGING"); }

/// A survey runs nothing, so it measures nothing.
TuneSetting tune_setting(const PhysicalDevice& physical, DeviceUse use) {
  TuneSetting setting = TuneSetting::from_environment(physical.profile.measured);
  if (use == DeviceUse::survey) setting.measure = false;
  return setting;
}

/// Debugging: CALDERA_VULKAN_ATTENTION.
std::string_view pinned_attention() {
  const char* const name = std::getenv("CALDERA_VULKAN_ATTENTION");
  return name == nullptr ? std::string_view() : name;
}

/// Debugging: CALDERA_VULKAN_UNITS.
std::int32_t units_of(const DeviceProfile& profile) {
  constexpr int kMost = 4096;
  return environment_number("CALDERA_VULKAN_UNITS",
                            std::clamp(static_cast<int>(profile.compute_units), 1, kMost), 1, kMost);
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

/// Two workgroups of 128 a compute unit are the least that hides what a GPU waits for.
ProductRates rates_of(const DeviceProfile& profile, const Capabilities& can, bool few_cores) {
  if (!few_cores) {
    ProductRates rates = kGpuRates;
    rates.busy_lanes = profile.few_cores ? kGpuRates.busy_lanes : 256.0 * units_of(profile);
    return rates;
  }
  ProductRates rates = kProcessorRates;
  rates.vector_loads = !can.scalar_loads;
  return rates;
}

}  // namespace

Context::Context(const PhysicalDevice& physical, DeviceUse use)
    : device(std::make_shared<LogicalDevice>(physical, use)),
      tensors(std::make_shared<MemoryPool>(device, MemoryUse::tensors, staging_forced())),
      tables(std::make_shared<MemoryPool>(device, MemoryUse::tables)),
      counters(tables),
      pipelines(device, DiskCache(DiskCache::default_directory())),
      measurements(device),
      pace(physical.profile),
      tuner(tune_setting(physical, use), device_identity(physical.handle), DiskCache::default_directory()),
      glsl(glsl_options(device->capabilities())),
      few_cores(physical.profile.few_cores && !environment_flag("CALDERA_VULKAN_WIDE")),
      product_rates(rates_of(physical.profile, device->capabilities(), few_cores)),
      attention(&attention_family(few_cores, device->capabilities(), pinned_attention())),
      compute_units(units_of(physical.profile)),
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
