#include "engine/explain/debug_print.h"

#include <fmt/core.h>

#include <cstdio>
#include <string>

#include "engine/explain/explained_plan.h"

namespace caldera {
namespace {

/// Rates of one step, for a line of CALDERA_DEBUG=2.
std::string rates(const StepCost& cost, double seconds) {
  return fmt::format("{:10.1f} us {:8.2f} GB/s {:9.2f} GFLOP/s", seconds * 1e6,
                     static_cast<double>(cost.bytes()) / seconds * 1e-9,
                     static_cast<double>(cost.flops) / seconds * 1e-9);
}

}  // namespace

void print_run(const RunRecord& run) {
  const Plan& plan = *run.plan;
  std::string text;
  StepCost total;
  if (run.steps.empty()) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const StepCost cost = cost_of(plan, plan.steps[i]);
      total += cost;
      text += fmt::format("caldera:   {:4} {} B, {} FLOP  {} {}\n", i, cost.bytes(), cost.flops,
                          plan.steps[i].name(), plan.steps[i].dims.to_string());
    }
  }
  for (const KernelRun& kernel : kernel_runs(plan, run.steps)) {
    total += kernel.cost;
    text +=
        fmt::format("caldera:   {:4} {}  {} {}\n", kernel.first, rates(kernel.cost, seconds_of(kernel.time)),
                    kernel.name(plan), plan.steps[kernel.first].dims.to_string());
  }
  const double seconds = seconds_of({run.begin, run.done});
  fmt::print(stderr, "{}caldera: run on {}: {} in {} dispatches, plan cache {}\n", text,
             plan.device.to_string(), rates(total, seconds), plan.dispatch_count(),
             run.cache_hit ? "hit" : "miss");
}

void print_plan(const Plan& plan, int level, CodeWriter code) {
  if (level < 1) return;
  fmt::print(stderr, "caldera: plan on {}: {} nodes -> {} dispatches, {} barriers, arena {} bytes\n",
             plan.device.to_string(), plan.node_count, plan.dispatch_count(), plan.barrier_count(),
             plan.arena_bytes);
  if (level >= 3) fmt::print(stderr, "{}", plan.to_string());
  if (level < 4) return;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (const GeneratedCode& piece : generated_code(plan.steps[i], code))
      fmt::print(stderr, "step {} {}\n{}", i, piece.title, piece.text);
  }
}

}  // namespace caldera
