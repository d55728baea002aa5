#include "engine/plan/steps/scatter.h"

#include "engine/plan/kernel/fault.h"
#include "engine/plan/steps/step_form.h"

namespace caldera {

std::optional<IndexedAxis> ScatterStep::indexed_axis(const StepHeader& step, std::size_t k) const {
  return k + 1 == step.operands.size() ? std::optional(axis) : std::nullopt;
}

std::int64_t ScatterStep::flops(const StepHeader& step) {
  return is_floating(step.dtype) ? step.dims.numel() : 0;
}

void ScatterStep::check(verify::StepForm& form) const {
  form.check_indexed(axis);
  // What replaces is only moved; everything else is computed.
  if (is_memory_type(form.step().dtype) && combine != Scatter::set)
    throw verify::Fault{"sums of a type of memory"};
  const verify::DimSet around = form.inner(1) | form.inner(3);
  form.read(form.step().dtype, form.all(), form.all());
  form.read(DType::i32, form.all(), form.all());
  verify::OperandForm& out = form.add(verify::OperandRole::written, form.step().dtype, around, form.all());
  out.indexed = axis;
  out.accumulated = true;
}

}  // namespace caldera
