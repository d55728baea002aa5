#include <limits>
#include <optional>

#include "engine/check/reference/reference_steps.h"

namespace caldera::reference {
namespace {

Number scattered(DType type, Scatter combine, Number old, Number update) {
  const auto combined = [&](ScalarOp op) { return apply_scalar_op(op, type, type, old, update, {}); };
  switch (combine) {
    case Scatter::set:
      return update;
    case Scatter::maximum:
      return combined(ScalarOp::maximum);
    case Scatter::minimum:
      return combined(ScalarOp::minimum);
    case Scatter::multiply:
      return combined(ScalarOp::mul);
    case Scatter::add:
      break;
  }
  return combined(ScalarOp::add);
}

/// Elements from the first of the axis to the one that the index at a point names; nothing outside of it.
std::optional<std::int64_t> along_axis(const StepMemory& memory, const IndexedAxis& axis, const Point& at) {
  const std::int64_t index = memory.read(1, memory.type(1), at).i;
  if (index < 0 || index >= axis.extent) return std::nullopt;
  return index * axis.stride;
}

}  // namespace

void run_step(const StepMemory& memory, const GatherStep& gather) {
  const DType type = memory.step().dtype;
  for_each_point(memory.leading_dims(0), [&](const Point& at) {
    Number value{std::numeric_limits<double>::quiet_NaN(), 0};
    if (const auto along = along_axis(memory, gather.axis, at))
      value = read_number(memory.bytes(0), type, memory.element(0, at) + *along);
    memory.write(2, type, at, value);
  });
}

void run_step(const StepMemory& memory, const ScatterStep& scatter) {
  const DType type = memory.step().dtype;
  for_each_point(memory.leading_dims(0), [&](const Point& at) {
    const auto along = along_axis(memory, scatter.axis, at);
    if (!along) return;
    const std::int64_t element = memory.element(2, at) + *along;
    const Number old = read_number(memory.bytes(2), type, element);
    write_number(memory.bytes(2), type, element,
                 scattered(type, scatter.combine, old, memory.read(0, type, at)));
  });
}

}  // namespace caldera::reference
