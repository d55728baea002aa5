#include "engine/check/stepwise/left_out_parts.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "engine/check/reference/step_memory.h"

namespace caldera::check {
namespace {

using reference::floating;
using reference::Point;
using reference::StepMemory;

constexpr std::size_t kOwnDims = 4;  // queries, keys, head size, head size of the values

}  // namespace

void accept_left_out_parts(const Plan& plan, const Step& step, const std::vector<std::vector<std::byte>>& got,
                           reference::PlanMemory& expected) {
  const auto* attention = step.if_a<AttentionStep>();
  if (attention == nullptr || !attention->causal.in_parts || attention->causal.fill < 0) return;
  const StepMemory memory(plan, expected, step);
  const std::size_t o = step.first_output();
  const std::size_t highest = o + 1;
  const std::size_t total = o + 2;
  const double fill = memory.scalar(attention->causal.fill, DType::f32).f;
  const std::vector<std::byte>& highest_got = got[static_cast<std::size_t>(step.operands[highest].buffer)];
  const Point rows = memory.leading_dims(kOwnDims - 1);
  const std::int64_t values = memory.trailing_dims(1)[0];
  reference::for_each_point(rows, [&](const Point& row) {
    Point at = row;
    at.resize(row.size() + kOwnDims - 1);
    const double is = reference::read_number(highest_got, DType::f32, memory.element(highest, at)).f;
    if (!(std::isinf(is) && is < 0) || memory.read(highest, DType::f32, at).f > fill) return;
    memory.write(highest, DType::f32, at, floating(-std::numeric_limits<double>::infinity()));
    memory.write(total, DType::f32, at, floating(0));
    for (at.back() = 0; at.back() < values; ++at.back()) memory.write(o, memory.type(o), at, floating(0));
  });
}

}  // namespace caldera::check
