// Steps of a plan to dispatches: chooses the shader and its variant, writes the argument block.
#pragma once

#include "engine/device/vulkan/context.h"
#include "engine/device/vulkan/recording.h"

namespace caldera::vulkan {

/// The dispatches of a plan. Makes the pipelines that are missing. Throws Error naming the step.
Recording encode(const Plan& plan, Context& context);

/// What the functions of single steps work on.
struct Encoder {
  const Plan& plan;
  Context& context;
  Recording& recording;
  TableWriter table;

  /// Workgroups for `work` invocations' worth of work at `per_group` each, within what is useful on the
  /// device.
  std::uint32_t groups(std::int64_t work, std::int64_t per_group) const;
  /// `iterations`: of all loops in the busiest invocation. Throws DeviceError where the device would cut them
  /// short.
  void dispatch(const Step& step, VkPipeline pipeline, std::uint32_t block, std::uint32_t groups,
                std::int64_t iterations);
};

// One function a kind, each in its own file. A step without work (an extent of 0) adds nothing.
void encode_region(Encoder& encoder, const Step& step);
void encode_contract(Encoder& encoder, const Step& step);
void encode_gather(Encoder& encoder, const Step& step);
void encode_scatter_add(Encoder& encoder, const Step& step);

}  // namespace caldera::vulkan
