#include "engine/device/vulkan/spirv/reconverge.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

namespace caldera::vulkan::spirv {
namespace {

constexpr std::uint32_t kOfSubgroups[] = {CapabilityGroupNonUniformArithmetic,
                                          CapabilityGroupNonUniformBallot, CapabilityCooperativeMatrixKHR};

bool is_of_subgroups(const Instruction& i) {
  return i.op == OpCapability && i.words.size() > 1 &&
         std::ranges::find(kOfSubgroups, i.words[1]) != std::end(kOfSubgroups);
}

/// A string of SPIR-V: bytes from the lowest of each word, zeros behind them.
void append_extension(std::vector<std::uint32_t>& out) {
  constexpr std::string_view kName = "SPV_KHR_subgroup_uniform_control_flow";
  std::array<std::uint32_t, kName.size() / 4 + 1> text{};
  for (std::size_t c = 0; c < kName.size(); ++c)
    text.at(c / 4) |= static_cast<std::uint32_t>(static_cast<unsigned char>(kName[c])) << (8 * (c % 4));
  out.push_back(static_cast<std::uint32_t>(text.size() + 1) << 16 | OpExtension);
  out.insert(out.end(), text.begin(), text.end());
}

}  // namespace

std::vector<std::uint32_t> reconverging(Words module, std::string_view kernel) {
  bool subgroups = false;
  for_each_instruction(module, kernel, [&](const Instruction& i) { subgroups |= is_of_subgroups(i); });
  if (!subgroups) return {module.begin(), module.end()};

  // The order of a module: capabilities, extensions, ..., entry points, execution modes, the rest.
  std::vector<std::uint32_t> out(module.begin(), module.begin() + kHeaderWords);
  std::vector<std::uint32_t> entries;  // still without their mode
  bool extended = false;
  for_each_instruction(module, kernel, [&](const Instruction& i) {
    if (i.op != OpCapability && !extended) {
      append_extension(out);
      extended = true;
    }
    if (i.op != OpEntryPoint) {
      for (const std::uint32_t entry : entries)
        append(out, OpExecutionMode, {entry, kSubgroupUniformControlFlow});
      entries.clear();
    } else if (i.words.size() > 2) {
      entries.push_back(i.words[2]);
    }
    out.insert(out.end(), i.words.begin(), i.words.end());
  });
  return out;
}

}  // namespace caldera::vulkan::spirv
