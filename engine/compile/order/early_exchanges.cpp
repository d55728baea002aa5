#include "engine/compile/order/early_exchanges.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/compile/order/step_graph.h"
#include "engine/graph/host_exchange.h"

namespace caldera {
namespace {

bool is_exchange(const Step& step) {
  const auto* control = step.if_a<ControlStep>();
  return control != nullptr && control->layout.kind == ControlKind::exchange && control->exchange->is_early();
}

/// For each step, how many exchanges lie at most on a path to it.
std::vector<std::uint32_t> exchanges_before(const Plan& plan, const StepGraph& graph) {
  std::vector<std::uint32_t> before(plan.steps.size(), 0);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {  // their order is one of the graph
    const std::uint32_t here = before[s] + (is_exchange(plan.steps[s]) ? 1 : 0);
    for (const std::uint32_t next : graph.successors[s]) before[next] = std::max(before[next], here);
  }
  return before;
}

/// Which steps give nothing but what exchanges send: what puts several tensors into one, say.
std::vector<bool> feeders_of(const Plan& plan, const StepGraph& graph) {
  std::vector<bool> feeds(plan.steps.size(), false);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto next = graph.successors[s];
    feeds[s] = !is_exchange(plan.steps[s]) && !next.empty() &&
               std::ranges::all_of(next, [&](std::uint32_t to) { return is_exchange(plan.steps[to]); });
  }
  return feeds;
}

}  // namespace

void move_exchanges_up(Plan& plan) {
  if (std::ranges::none_of(plan.steps, is_exchange)) return;
  const StepGraph graph(plan);
  const std::vector<std::uint32_t> before = exchanges_before(plan, graph);
  const std::vector<bool> feeds = feeders_of(plan, graph);
  std::vector<std::size_t> order(plan.steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t s) { return before[s]; });
  const auto must_precede = [&](std::size_t first, std::size_t second) {
    return std::ranges::find(graph.successors[first], second) != graph.successors[first].end();
  };
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::size_t s = order[at];
    const bool exchanges = is_exchange(plan.steps[s]);
    if (!exchanges && !feeds[s]) continue;
    std::size_t to = at;
    while (to > 0 && !must_precede(order[to - 1], s) &&
           !(exchanges && is_exchange(plan.steps[order[to - 1]])))
      --to;
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(to),
                order.begin() + static_cast<std::ptrdiff_t>(at),
                order.begin() + static_cast<std::ptrdiff_t>(at + 1));
  }
  std::vector<Step> steps;
  steps.reserve(order.size());
  for (const std::size_t s : order) steps.push_back(std::move(plan.steps[s]));
  plan.steps = std::move(steps);
}

}  // namespace caldera
