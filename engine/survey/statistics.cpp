#include "engine/survey/statistics.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace caldera {
namespace {

struct Known {
  std::string_view name;
  std::optional<double> KernelStatistics::*column;
  double unit = 1;      // of the column, for each of the driver's
  double resident = 0;  // invocations of a compute unit for each, where the column is the occupancy
};

// A row a name. Where one name has two meanings, the code below says so.
constexpr Known kKnown[] = {
    // RADV (src/amd/vulkan). A compute unit has two SIMDs,
    // and subgroups are counted as if they had 32 invocations.
    {"VGPRs", &KernelStatistics::registers},
    {"SGPRs", &KernelStatistics::scalar_registers},
    {"Spilled VGPRs", &KernelStatistics::spills},
    {"Spilled SGPRs", &KernelStatistics::spills},
    {"LDS size", &KernelStatistics::shared_bytes},
    {"Scratch size", &KernelStatistics::scratch_bytes},
    {"Subgroups per SIMD", &KernelStatistics::occupancy, 1, 64},
    {"Code size", &KernelStatistics::code_bytes},  // NVK's, too
    {"Instructions", &KernelStatistics::instructions},
    // NVK (src/nouveau/vulkan/nvk_shader.c).
    {"Number of GPRs", &KernelStatistics::registers},
    {"Spills to memory", &KernelStatistics::spills},
    {"SLM size", &KernelStatistics::scratch_bytes},
    {"Max warps/SM", &KernelStatistics::occupancy, 1, 32},
    {"Instruction count", &KernelStatistics::instructions},
    // Turnip (src/freedreno/vulkan). Registers are vectors of four; a stack store is a spill.
    {"Registers used", &KernelStatistics::registers, 4},
    {"STP Count", &KernelStatistics::spills},
    {"Max Waves Per Core", &KernelStatistics::occupancy},
    // ANV (src/intel/vulkan/anv_pipeline.c) and Turnip.
    {"Instruction Count", &KernelStatistics::instructions},
    {"Spill Count", &KernelStatistics::spills},
    {"Scratch Memory Size", &KernelStatistics::scratch_bytes},
    {"Workgroup Memory Size", &KernelStatistics::shared_bytes},
    // NVIDIA's own driver.
    {"Register Count", &KernelStatistics::registers},
    {"Binary Size", &KernelStatistics::code_bytes},
    // AMD's own driver.
    {"numUsedVgprs", &KernelStatistics::registers},
    {"numUsedSgprs", &KernelStatistics::scalar_registers},
    {"ldsUsageSizeInBytes", &KernelStatistics::shared_bytes},
    {"scratchMemUsageInBytes", &KernelStatistics::scratch_bytes},
};

/// Turnip counts its code in words of 32 bits, and is the one that says how many no-operations are in it.
bool counts_words(std::span<const NamedStatistic> all) {
  return std::ranges::find(all, "NOPs Count", &NamedStatistic::name) != all.end();
}

}  // namespace

KernelStatistics sort_statistics(std::span<const NamedStatistic> all) {
  KernelStatistics sorted;
  for (const NamedStatistic& statistic : all) {
    const auto* const known = std::ranges::find(kKnown, statistic.name, &Known::name);
    if (known == std::end(kKnown)) {
      sorted.others.push_back(statistic);
      continue;
    }
    std::optional<double>& column = sorted.*known->column;
    column = column.value_or(0) + known->unit * statistic.value;
    if (known->resident > 0) sorted.resident_invocations = known->resident * statistic.value;
  }
  if (sorted.code_bytes && counts_words(all)) *sorted.code_bytes *= 4;
  return sorted;
}

}  // namespace caldera
