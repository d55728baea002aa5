#include "engine/compile/in_place.h"

namespace caldera {
namespace {

/// Whether the points of the step read operand k in step with their writes.
bool is_pointwise(const Step& step, std::size_t k) {
  switch (step.kind) {
    case StepKind::region:
      return !step.kernel->reduce.has_value();
    case StepKind::contract:
      return k >= static_cast<std::size_t>(step.named_operands());
    default:
      return false;
  }
}

}  // namespace

bool may_write_over(const Plan& plan, const Step& step, std::size_t out, std::size_t in) {
  const Operand& to = step.operands[out];
  const Operand& from = step.operands[in];
  if (from.buffer < 0 || from.buffer == to.buffer || !is_pointwise(step, in)) return false;
  const PlanBuffer& written = plan.buffers[static_cast<std::size_t>(to.buffer)];
  const PlanBuffer& read = plan.buffers[static_cast<std::size_t>(from.buffer)];
  if (written.bytes != read.bytes || size_of(written.dtype) != size_of(read.dtype)) return false;
  if (from.offset != 0 || to.offset != 0 || from.strides != to.strides) return false;
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const std::int32_t other = step.operands[k].buffer;
    if ((k != in && other == from.buffer) || (k != out && other == to.buffer)) return false;
  }
  return true;
}

}  // namespace caldera
