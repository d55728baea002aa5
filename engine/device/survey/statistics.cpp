#include "engine/device/survey/statistics.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace caldera {
namespace {

struct Known {
  std::string_view name;
  std::optional<double> KernelStatistics::*column;
};

constexpr Known kKnown[] = {
    {"VGPRs", &KernelStatistics::registers},
};

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
    column = column.value_or(0) + statistic.value;
  }
  return sorted;
}

}  // namespace caldera
