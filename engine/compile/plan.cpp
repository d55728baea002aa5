#include "engine/compile/plan.h"

#include <fmt/core.h>

#include <algorithm>

namespace caldera {

std::string Step::name() const {
  switch (kind) {
    case StepKind::region:
      return kernel->name;
    case StepKind::contract:
      return "matmul";
    case StepKind::gather:
      return "gather";
    case StepKind::scatter_add:
      return "scatter_add";
  }
  return {};
}

int Plan::barrier_count() const {
  return static_cast<int>(
      std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.barrier_before; }));
}

std::string Plan::to_string() const {
  std::string text = fmt::format("plan for {}: {} nodes, {} steps, {} barriers, {} bytes of arena\n",
                                 device.to_string(), node_count, steps.size(), barrier_count(), arena_bytes);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    text += fmt::format("  {}{}: {} {}", step.barrier_before ? "| " : "  ", i, step.name(),
                        step.dims.to_string());
    for (const Operand& operand : step.operands)
      text += fmt::format(" b{}+{}", operand.buffer, operand.offset);
    text += '\n';
  }
  return text;
}

}  // namespace caldera
