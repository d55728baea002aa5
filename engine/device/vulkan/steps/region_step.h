// Regions to dispatches, or to what another dispatch ends with.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "engine/base/hash.h"
#include "engine/device/vulkan/glsl/region_shader.h"
#include "engine/device/vulkan/steps/encoder.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// A region with the steps that are joined to it: all run `kernel`.
void encode_region(Encoder& encoder, const Kernel& kernel, std::span<const Step> joined);

/// Regions at the end of a dispatch, for its shader and its commands.
struct FinishingRegions {
  Hash128 key;  // of the text
  std::string name;
  std::function<GlslFinish()> text;  // while the plan is there
  std::int64_t iterations = 0;       // of all loops in the busiest invocation
  std::uint32_t block = 0;           // offset of their arguments in the table
};

/// Encodes what encoder.finishing becomes at the end of a dispatch whose workgroups have `lanes` invocations
/// and leave so many bytes of shared memory: writes the arguments and clears the list. Nothing where the
/// device computes none of it, where its loops take more than half of what the device allows, or where no
/// single text serves all of the regions.
std::optional<FinishingRegions> encode_finishing(Encoder& encoder, std::int64_t lanes,
                                                 std::int64_t shared_left);

}  // namespace caldera::vulkan
