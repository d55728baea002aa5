#include "engine/autodiff/checkpoint/keep_within.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/autodiff/checkpoint/keep_problem.h"
#include "engine/base/error.h"
#include "engine/graph/node.h"

namespace caldera::keep {
namespace {

std::vector<bool> chosen(std::span<const InnerValue> values, double share) {
  std::vector<KeepCost> costs = keep_costs(values);
  std::int64_t total = 0;
  std::vector<bool> needed(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].tensor.node().kind() == OpClass::elementwise) costs[i].seconds = 0;
    needed[i] = costs[i].is_needed && costs[i].may_be_kept;
    if (needed[i]) total += costs[i].bytes;
  }
  if (share >= 1) return needed;
  // To the nearest byte, so that a share k/n of n equal values is k of them.
  const std::int64_t limit = std::llround(share * static_cast<double>(total));
  const auto open = static_cast<std::size_t>(std::ranges::count_if(costs, &KeepCost::may_be_kept));
  if (open <= kMostChosenOneByOne) return cheapest_within(costs, limit).kept;
  return convex_answer_within(costs, limit).kept;
}

}  // namespace

Keep within(double share) {
  if (!(share >= 0 && share <= 1))
    throw ValueError(fmt::format("keep::within: a share of {}; give 0 to 1", share));
  return Keep([share](std::span<const InnerValue> values) { return chosen(values, share); });
}

}  // namespace caldera::keep
