#include "engine/plan/plan.h"

#include <fmt/core.h>

#include <algorithm>

namespace caldera {

int Plan::barrier_count() const {
  return static_cast<int>(
      std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.barrier_before; }));
}

int Plan::dispatch_count() const {
  return static_cast<int>(
      std::count_if(steps.begin(), steps.end(), [](const Step& step) { return !step.joined; }));
}

std::string Plan::to_string() const {
  std::string text = fmt::format("plan for {}: {} nodes, {} steps, {} barriers, {} bytes of arena\n",
                                 device.to_string(), node_count, steps.size(), barrier_count(), arena_bytes);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    text += fmt::format("  {}{}: {} {}",
                        step.barrier_before ? "| "
                        : step.joined       ? "+ "
                                            : "  ",
                        i, step.name(), step.dims.to_string());
    for (const Operand& operand : step.operands) {
      text += fmt::format(" b{}+{}", operand.buffer, operand.offset);
      if (operand.position >= 0) text += fmt::format("+p{}", operand.position);
    }
    text += '\n';
  }
  return text;
}

}  // namespace caldera
