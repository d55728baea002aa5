#include "engine/device/control/stretch.h"

#include <algorithm>

namespace caldera {

BoundStretch stretch_of(const Plan& plan, std::size_t first, std::size_t last) {
  enum Use : std::uint8_t { none, read, written };
  std::vector<Use> use(plan.buffers.size(), none);
  for (std::size_t s = first; s < last; ++s) {
    const Step& step = plan.steps[s];
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      if (step.operands[k].buffer < 0) continue;
      Use& known = use[static_cast<std::size_t>(step.operands[k].buffer)];
      known = std::max(known, k < step.first_output() ? read : written);
    }
  }
  BoundStretch stretch;
  auto own = std::make_shared<Plan>();
  std::vector<std::int32_t> slot_of(plan.buffers.size(), -1);
  const auto take = [&](Use wanted, BufferRole role) {
    for (std::size_t b = 0; b < use.size(); ++b) {
      if (use[b] != wanted) continue;
      slot_of[b] = static_cast<std::int32_t>(stretch.buffers.size());
      stretch.buffers.push_back(static_cast<std::int32_t>(b));
      own->buffers.push_back({.role = role, .dtype = plan.buffers[b].dtype, .bytes = plan.buffers[b].bytes});
    }
    return static_cast<std::int32_t>(stretch.buffers.size());
  };
  own->device = plan.device;
  own->input_count = take(read, BufferRole::input);
  own->output_count = take(written, BufferRole::output) - own->input_count;
  own->scalars = plan.scalars;
  own->constants = plan.constants;
  own->positions = plan.positions;
  own->steps.assign(plan.steps.begin() + static_cast<std::ptrdiff_t>(first),
                    plan.steps.begin() + static_cast<std::ptrdiff_t>(last));
  for (Step& step : own->steps) {
    for (Operand& operand : step.operands) {
      if (operand.buffer >= 0) operand.buffer = slot_of[static_cast<std::size_t>(operand.buffer)];
    }
  }
  own->node_count = plan.node_count;
  stretch.plan = std::move(own);
  return stretch;
}

}  // namespace caldera
