// Encoder: what turns the steps of a plan into dispatches.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/device/vulkan/record/recording.h"
#include "engine/device/vulkan/steps/context.h"

namespace caldera::vulkan {

/// Holds what the functions of single kinds of step work on. A step without work (an extent of 0) adds
/// nothing.
struct Encoder {
  const Plan& plan;
  Context& context;
  Recording& recording;
  TableWriter table;
  std::size_t step = 0;                    // of the plan: number of the one that is being encoded
  bool barrier_next = false;               // the next dispatch waits for those before it
  const ProductVariant* forced = nullptr;  // of matrix products, instead of the tuner's choice
  /// Regions that may run at the end of the dispatch (StepHeader::finishes). Whoever encodes them there
  /// clears the list.
  std::span<const Step> finishing;
  /// Measures like product_timing.h.
  std::function<std::optional<double>(const Step&, const ProductVariant&, double stop_at)> time_product;
  std::vector<std::size_t> dispatch_of;  // a joined step each, as far as `computes` says

  /// Workgroups for `work` invocations' worth of work at `per_group` each, within what is useful on the
  /// device.
  std::uint32_t groups(std::int64_t work, std::int64_t per_group) const;
  /// `iterations`: of all loops in the busiest invocation. Throws DeviceError where the device would cut them
  /// short. `instances`: argument blocks one after the other that the shader takes by gl_WorkGroupID.y.
  /// Returns what was recorded.
  Dispatch& dispatch(const Step& step, PipelinePtr pipeline, std::uint32_t block, std::uint32_t groups,
                     std::int64_t iterations, std::uint32_t instances = 1);
  /// The dispatch made last computes this one of the joined steps. Those of which nobody says so are computed
  /// by the first.
  void computes(std::size_t number);
};

}  // namespace caldera::vulkan
