#include "engine/device/vulkan/spirv/facts.h"

#include <unordered_map>
#include <vector>

namespace caldera::vulkan::spirv {
namespace {

/// The numbers that a module names, and what they are after specialisation.
struct Constants {
  std::unordered_map<std::uint32_t, std::uint32_t> spec_ids;  // of results: their SpecId
  std::unordered_map<std::uint32_t, std::int64_t> values;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> composites;
  std::span<const std::int32_t> given;

  std::int64_t value(std::uint32_t id) const {
    const auto found = values.find(id);
    return found != values.end() ? found->second : 0;
  }
  void note(const Instruction& i) {
    switch (i.op) {
      case OpDecorate:
        if (i.words.size() > 3 && i.words[2] == kDecorationSpecId) spec_ids[i.words[1]] = i.words[3];
        break;
      case OpConstant:
      case OpSpecConstant: {
        if (i.words.size() < 4) break;
        const auto spec = spec_ids.find(i.words[2]);
        const bool is_given = spec != spec_ids.end() && spec->second < given.size();
        values[i.words[2]] = is_given ? given[spec->second] : static_cast<std::int32_t>(i.words[3]);
        break;
      }
      case OpConstantComposite:
      case OpSpecConstantComposite:
        if (i.words.size() > 3) composites[i.words[2]].assign(i.words.begin() + 3, i.words.end());
        break;
      default:
        break;
    }
  }
};

}  // namespace

ModuleFacts facts_of(Words module, std::span<const std::int32_t> constants, std::string_view kernel) {
  ModuleFacts facts;
  Constants known{.spec_ids = {}, .values = {}, .composites = {}, .given = constants};
  std::uint32_t size_of_group = 0;      // the constant that is gl_WorkGroupSize, which goes before all else
  std::vector<std::uint32_t> size_ids;  // of LocalSizeId
  for_each_instruction(module, kernel, [&](const Instruction& i) {
    known.note(i);
    if (i.op == OpCapability && i.words.size() > 1 && i.words[1] == CapabilityCooperativeMatrixKHR)
      facts.uses_matrices = true;
    if (i.op == OpDecorate && i.words.size() > 3 && i.words[2] == kDecorationBuiltIn &&
        i.words[3] == kBuiltInWorkgroupSize)
      size_of_group = i.words[1];
    if (i.op == OpExecutionMode && i.words.size() > 5 && i.words[2] == kExecutionModeLocalSize)
      facts.workgroup_size = std::int64_t{i.words[3]} * i.words[4] * i.words[5];
    if (i.op == OpExecutionModeId && i.words.size() > 5 && i.words[2] == kExecutionModeLocalSizeId)
      size_ids.assign(i.words.begin() + 3, i.words.begin() + 6);
  });
  if (const auto found = known.composites.find(size_of_group); found != known.composites.end())
    size_ids = found->second;
  if (!size_ids.empty()) {
    facts.workgroup_size = 1;
    for (const std::uint32_t id : size_ids) facts.workgroup_size *= known.value(id);
  }
  return facts;
}

}  // namespace caldera::vulkan::spirv
