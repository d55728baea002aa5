// Holds what the backend and its executables share. Shared ownership: an executable or a tensor may be the
// last to go.
#pragma once

#include <memory>
#include <span>

#include "engine/device/vulkan/glsl/variant.h"
#include "engine/device/vulkan/memory/arena.h"
#include "engine/device/vulkan/memory/counters.h"
#include "engine/device/vulkan/memory/memory_pool.h"
#include "engine/device/vulkan/open/device.h"
#include "engine/device/vulkan/pipelines/pipeline_cache.h"
#include "engine/device/vulkan/products/product_tuner.h"
#include "engine/device/vulkan/record/measurements.h"
#include "engine/device/vulkan/record/pace.h"

namespace caldera::vulkan {

class AttentionFamily;

/// One open device.
class Context {
 public:
  explicit Context(const PhysicalDevice& physical, DeviceUse use = DeviceUse::computing);

  const DevicePtr device;
  const std::shared_ptr<MemoryPool> tensors;
  const std::shared_ptr<MemoryPool> tables;
  Counters counters;
  PipelineCache pipelines;
  Measurements measurements;
  Pace pace;
  ProductTuner tuner;
  GlslOptions glsl;
  /// Whether kernels get workgroups that suit a few processor cores. Debugging: CALDERA_VULKAN_WIDE=1 gives a
  /// software device what a GPU gets.
  const bool few_cores;
  const ProductRates product_rates;
  /// Says how attention is computed. Debugging: CALDERA_VULKAN_ATTENTION names it.
  const AttentionFamily* const attention;
  /// DeviceTraits::compute_units. Debugging: CALDERA_VULKAN_UNITS.
  const std::int32_t compute_units;

  /// The memory of a plan's intermediates: see SharedArena::take. Called under the backend's order of
  /// submits.
  Arena arena(std::span<const ArenaSegment> segments) { return arena_.take(segments, replays_); }

  /// Counts a replay. Every kAge of them, what none of them needed goes back to the driver: segments of the
  /// arena of which a quarter would have done, and unused blocks. Called under the backend's order of
  /// submits.
  void count_replay();

  /// Whether kernels may use the type.
  bool supports(DType type) const;

 private:
  static constexpr std::uint64_t kAge = 64;

  std::uint64_t replays_ = 0;
  SharedArena arena_;
};

using ContextPtr = std::shared_ptr<Context>;

}  // namespace caldera::vulkan
