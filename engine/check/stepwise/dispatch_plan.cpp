#include "engine/check/stepwise/dispatch_plan.h"

#include <algorithm>
#include <map>

namespace caldera::check {

DispatchPlan cut_dispatch(const Plan& whole, std::size_t first) {
  DispatchPlan dispatch{.plan = {}, .buffers = {}, .first = first};
  Plan plan;
  plan.device = whole.device;
  plan.scalars = whole.scalars;
  plan.constants = whole.constants;
  plan.positions = whole.positions;
  plan.arena_segment = whole.arena_segment;
  const auto goes_on = [](const Step& step) { return step.joined || step.finishes; };
  const auto begin = whole.steps.begin() + static_cast<std::ptrdiff_t>(first);
  plan.steps.assign(begin,
                    std::find_if(begin + 1, whole.steps.end(), [&](const Step& s) { return !goes_on(s); }));
  plan.steps.front().barrier_before = false;
  plan.steps.front().finishes = false;

  std::map<std::size_t, bool> is_written;  // by number in the whole plan
  for (const Step& step : plan.steps) {
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      if (step.operands[k].buffer < 0) continue;
      bool& written = is_written[static_cast<std::size_t>(step.operands[k].buffer)];
      written = written || k >= step.first_output();
    }
    plan.node_count += static_cast<std::int64_t>(step.nodes.size());
  }
  std::map<std::size_t, std::int32_t> number;
  for (const bool output : {false, true}) {
    for (const auto& [buffer, written] : is_written) {
      if (written != output) continue;
      number[buffer] = static_cast<std::int32_t>(dispatch.buffers.size());
      dispatch.buffers.push_back(buffer);
      plan.buffers.push_back(whole.buffers[buffer]);
      plan.buffers.back().role = output ? BufferRole::output : BufferRole::input;
      plan.buffers.back().arena_offset = 0;
      (output ? plan.output_count : plan.input_count) += 1;
    }
  }
  for (Step& step : plan.steps)
    for (Operand& operand : step.operands)
      if (operand.buffer >= 0) operand.buffer = number.at(static_cast<std::size_t>(operand.buffer));
  dispatch.plan = std::make_shared<const Plan>(std::move(plan));
  return dispatch;
}

}  // namespace caldera::check
