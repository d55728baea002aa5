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

bool share_a_buffer(const Step& a, const Step& b) {
  return std::ranges::any_of(a.operands, [&](const Operand& of_a) {
    return of_a.buffer >= 0 &&
           std::ranges::any_of(b.operands, [&](const Operand& of_b) { return of_b.buffer == of_a.buffer; });
  });
}

/// For each step, how many exchanges lie at most on a path to it.
std::vector<std::uint32_t> exchanges_before(const Plan& plan) {
  const StepGraph graph(plan);
  std::vector<std::uint32_t> before(plan.steps.size(), 0);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {  // their order is one of the graph
    const std::uint32_t here = before[s] + (is_exchange(plan.steps[s]) ? 1 : 0);
    for (const std::uint32_t next : graph.successors[s]) before[next] = std::max(before[next], here);
  }
  return before;
}

}  // namespace

void move_exchanges_up(Plan& plan) {
  if (std::ranges::none_of(plan.steps, is_exchange)) return;
  const std::vector<std::uint32_t> before = exchanges_before(plan);
  std::vector<std::size_t> order(plan.steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t s) { return before[s]; });
  std::vector<Step> steps;
  steps.reserve(order.size());
  for (const std::size_t s : order) steps.push_back(std::move(plan.steps[s]));
  plan.steps = std::move(steps);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (!is_exchange(plan.steps[s])) continue;
    std::size_t to = s;
    while (to > 0 && !is_exchange(plan.steps[to - 1]) && !share_a_buffer(plan.steps[to - 1], plan.steps[s]))
      --to;
    const auto at = [&](std::size_t place) {
      return plan.steps.begin() + static_cast<std::ptrdiff_t>(place);
    };
    std::rotate(at(to), at(s), at(s + 1));
  }
}

}  // namespace caldera
