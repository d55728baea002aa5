// Steps of a plan to dispatches: chooses the shader and its variant, writes the argument block.
#pragma once

#include <span>

#include "engine/device/vulkan/record/recording.h"
#include "engine/device/vulkan/steps/context.h"

namespace caldera::vulkan {

/// The dispatches of a plan. Makes the pipelines that are missing. Throws Error naming the step.
Recording encode(const Plan& plan, Context& context);

/// What the functions of single steps work on.
struct Encoder {
  const Plan& plan;
  Context& context;
  Recording& recording;
  TableWriter table;
  std::size_t step = 0;                    // of the plan: number of the one that is being encoded
  bool barrier_next = false;               // the next dispatch waits for those before it
  const ProductVariant* forced = nullptr;  // of matrix products, instead of the tuner's choice

  /// Workgroups for `work` invocations' worth of work at `per_group` each, within what is useful on the
  /// device.
  std::uint32_t groups(std::int64_t work, std::int64_t per_group) const;
  /// `iterations`: of all loops in the busiest invocation. Throws DeviceError where the device would cut them
  /// short. `instances`: argument blocks one after the other that the shader takes by gl_WorkGroupID.y.
  void dispatch(const Step& step, VkPipeline pipeline, std::uint32_t block, std::uint32_t groups,
                std::int64_t iterations, std::uint32_t instances = 1);
};

// One function a kind, each in its own file. A step without work (an extent of 0) adds nothing. Regions come
// with the steps that are joined to them.
void encode_region(Encoder& encoder, std::span<const Step> joined);
void encode_contract(Encoder& encoder, const Step& step);
void encode_gather(Encoder& encoder, const Step& step);
void encode_scatter_add(Encoder& encoder, const Step& step);
void encode_attention(Encoder& encoder, const Step& step);  // the three attention kinds

}  // namespace caldera::vulkan
