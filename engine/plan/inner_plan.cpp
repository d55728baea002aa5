#include "engine/plan/inner_plan.h"

#include <algorithm>
#include <utility>

namespace caldera {

ControlPlan inner_plan(std::shared_ptr<const Plan> plan, std::vector<std::uint32_t> parameters,
                       std::vector<std::uint32_t> numbers) {
  ControlPlan part{
      .plan = std::move(plan), .parameters = std::move(parameters), .numbers = std::move(numbers)};
  const Plan& p = *part.plan;
  const auto values = [&](std::int32_t first, std::int32_t count) {
    std::vector<ControlValue> all;
    for (std::int32_t b = first; b < first + count; ++b) {
      const PlanBuffer& buffer = p.buffers[static_cast<std::size_t>(b)];
      all.push_back({buffer.dtype, buffer.bytes / static_cast<std::int64_t>(size_of(buffer.dtype))});
    }
    return all;
  };
  part.inputs = values(0, p.input_count);
  part.results = values(p.input_count, p.output_count);
  part.scalars.assign(p.scalars.begin(), p.scalars.end() - static_cast<std::ptrdiff_t>(p.constants.size()));
  part.arena_bytes = p.arena_bytes;
  part.heap_bytes = sizeof(Plan) + p.buffers.size() * sizeof(PlanBuffer);
  for (const Step& step : p.steps) {
    part.flops += step.flops();
    part.heap_bytes += sizeof(Step) + step.heap_bytes();
  }
  return part;
}

bool may_fail(const Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const Step& step) {
    const auto* control = step.if_a<ControlStep>();
    // What an exchange could not do ends the group, and nothing is run again.
    return step.is<LinalgStep>() || (control != nullptr && control->layout.kind != ControlKind::exchange);
  });
}

bool has_control(const Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const Step& step) { return step.is<ControlStep>(); });
}

}  // namespace caldera
