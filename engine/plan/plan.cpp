#include "engine/plan/plan.h"

#include <fmt/core.h>

#include <algorithm>

namespace caldera {

namespace {

constexpr const char* kKindNames[] = {
    "region", "matmul", "gather", "scatter_add", "attention", "attention_grad_q", "attention_grad_kv",
    "linalg"};

}  // namespace

int Step::output_count() const {
  switch (kind) {
    case StepKind::region:
      return static_cast<int>(kernel->outputs.size());
    case StepKind::contract:
      return kernel ? static_cast<int>(kernel->outputs.size()) : 1;
    case StepKind::attention:
      return 3;
    case StepKind::attention_grad_kv:
      return 2;
    default:
      return 1;
  }
}

int Step::named_operands() const {
  switch (kind) {
    case StepKind::region:
      return 0;
    case StepKind::contract:
      return 2 * static_cast<int>(segments.size());
    case StepKind::attention:
      return 3;
    case StepKind::attention_grad_q:
    case StepKind::attention_grad_kv:
      return 7;
    default:
      return 2;
  }
}

Shape Step::operand_dims(std::size_t k) const {
  Shape extents = dims;
  if (kind == StepKind::contract && k < 2 * segments.size()) extents[dims.rank() - 1] = segments[k / 2].k;
  return extents;
}

std::string Step::name() const {
  const std::string own = kind == StepKind::region ? kernel->name : kKindNames[static_cast<int>(kind)];
  const std::string whole = kind == StepKind::contract && kernel ? own + "+" + kernel->name : own;
  return label.empty() || label == own ? whole : label + ": " + whole;
}

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
    for (const Operand& operand : step.operands)
      text += fmt::format(" b{}+{}", operand.buffer, operand.offset);
    text += '\n';
  }
  return text;
}

}  // namespace caldera
