// The table that people read in a terminal.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "engine/base/byte_size.h"
#include "engine/explain/explained_plan.h"
#include "engine/explain/explanation.h"
#include "engine/plan/dependencies.h"

namespace caldera {

std::string to_text(const Explanation& e, std::size_t most_steps) {
  const Plan& plan = *e.plan;
  const std::vector<StepCost> costs = costs_of(plan);
  StepCost total;
  for (const StepCost& cost : costs) total += cost;
  std::string text;
  text += fmt::format("{} on {}: {} nodes -> {} dispatches, {} barriers (depth {})", e.title,
                      plan.device.to_string(), plan.node_count, plan.dispatch_count(), plan.barrier_count(),
                      depth_of(plan));
  if (e.executed) text += fmt::format(", {} submits, plan cache {}", e.submits, e.cache_hit ? "hit" : "miss");
  text += "\n";
  if (e.executed) text += fmt::format("{:.1f} us; ", e.seconds * 1e6);
  text += fmt::format("{:.2f} MFLOP, {} read and written; arena {}, peak {}\n\n",
                      static_cast<double>(total.flops) * 1e-6, format_bytes(total.bytes()),
                      format_bytes(plan.arena_bytes), format_bytes(plan.peak_bytes));

  std::vector<std::size_t> order(plan.steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool timed = !e.step_seconds.empty();
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return timed ? e.step_seconds[a] > e.step_seconds[b] : costs[a].bytes() > costs[b].bytes();
  });
  text += fmt::format("{:>5} {:>10} {:>5} {:>12} {:>12}  kernel, {} first\n", "step", "us", "ops", "flop",
                      "bytes", timed ? "slowest" : "widest");
  for (std::size_t k = 0; k < std::min(most_steps, order.size()); ++k) {
    const std::size_t i = order[k];
    text +=
        fmt::format("{:>5} {:>10} {:>5} {:>12} {:>12}  {} {}\n", i,
                    timed ? fmt::format("{:.1f}", e.step_seconds[i] * 1e6) : "-", costs[i].ops,
                    costs[i].flops, costs[i].bytes(), plan.steps[i].name(), plan.steps[i].dims.to_string());
  }
  if (order.size() > most_steps) text += fmt::format("and {} more\n", order.size() - most_steps);
  return text;
}

}  // namespace caldera
