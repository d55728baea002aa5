#include "engine/device/vulkan/spirv/requirements.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace caldera::vulkan::spirv {
namespace {

struct Requirement {
  std::uint32_t capability;
  bool Capabilities::*member;  // null: every device that Caldera opens has it
};

// The table of "Vulkan Environment for SPIR-V" in the Vulkan specification, for what Caldera enables.
constexpr Requirement kRequirements[] = {
    {CapabilityMatrix, nullptr},
    {CapabilityShader, nullptr},
    {CapabilityPhysicalStorageBufferAddresses, nullptr},
    {CapabilityGroupNonUniform, nullptr},  // VK_SUBGROUP_FEATURE_BASIC_BIT: all of Vulkan 1.1
    {CapabilityFloat16, &Capabilities::float16},
    {CapabilityFloat64, &Capabilities::float64},
    {CapabilityInt8, &Capabilities::int8},
    {CapabilityInt16, &Capabilities::int16},
    {CapabilityInt64, &Capabilities::int64},
    {CapabilityGroupNonUniformArithmetic, &Capabilities::subgroup_arithmetic},
    {CapabilityGroupNonUniformBallot, &Capabilities::subgroup_ballot},
    {CapabilityStorageBuffer8BitAccess, &Capabilities::storage_8bit},
    {CapabilityStorageBuffer16BitAccess, &Capabilities::storage_16bit},
    {CapabilitySignedZeroInfNanPreserve, &Capabilities::preserve_nan_inf},
    {CapabilityVulkanMemoryModel, &Capabilities::memory_model},
    {CapabilityVulkanMemoryModelDeviceScope, &Capabilities::memory_model},
    {CapabilityCooperativeMatrixKHR, &Capabilities::cooperative_matrix},
    {CapabilityBFloat16TypeKHR, &Capabilities::bfloat16_matrix},
    {CapabilityBFloat16CooperativeMatrixKHR, &Capabilities::bfloat16_matrix},
};

std::string feature_name(bool Capabilities::*member) {
  const auto features = optional_features();
  const auto found = std::ranges::find(features, member, &OptionalFeature::member);
  return found != features.end() ? found->name : "an unnamed feature";
}

}  // namespace

std::vector<std::string> missing_features(Words module, const Capabilities& can, std::string_view kernel) {
  std::vector<std::string> missing;
  for_each_instruction(module, kernel, [&](const Instruction& i) {
    if (i.op != OpCapability || i.words.size() < 2) return;
    const std::uint32_t number = i.words[1];
    const auto* const found = std::ranges::find(kRequirements, number, &Requirement::capability);
    if (found == std::end(kRequirements)) {
      missing.push_back(fmt::format("SPIR-V capability {}", number));
    } else if (found->member != nullptr && !(can.*found->member)) {
      missing.push_back(feature_name(found->member));
    }
  });
  return missing;
}

}  // namespace caldera::vulkan::spirv
