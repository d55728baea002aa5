#include "engine/plan/steps/gather.h"

#include "engine/plan/steps/step_form.h"

namespace caldera {

std::optional<IndexedAxis> GatherStep::indexed_axis(const StepHeader&, std::size_t k) const {
  return k == 0 ? std::optional(axis) : std::nullopt;
}

void GatherStep::check(verify::StepForm& form) const {
  form.check_indexed(axis);
  const verify::DimSet around = form.inner(1) | form.inner(3);
  form.add(verify::OperandRole::read, form.step().dtype, around, form.all()).indexed = axis;
  form.read(DType::i32, form.all(), form.all());
  form.write(form.step().dtype, form.all());
}

}  // namespace caldera
