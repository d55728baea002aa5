#include "engine/plan/cost.h"

#include <algorithm>
#include <cstddef>

#include "engine/plan/kernel/kernel_cost.h"

namespace caldera {
namespace {

/// Elements of an operand that the step touches.
std::int64_t elements_touched(const Step& step, std::size_t k) {
  const Operand& operand = step.operands[k];
  const Shape dims = step.operand_dims(k);
  std::int64_t elements = 1;
  for (int d = 0; d < dims.rank(); ++d)
    elements *= operand.strides[d] == 0 ? std::min<std::int64_t>(dims[d], 1) : dims[d];
  elements = std::min(elements, step.most_elements(k));
  // At most one element of the axis for every index.
  const std::optional<IndexedAxis> axis = step.indexed_axis(k);
  const std::int64_t indices = step.dims[step.is<AttentionStep>() ? step.dims.rank() - 3 : 1];
  return axis ? elements * std::min(axis->extent, indices) : elements;
}

/// The copy of a tensor that is then written in part. Where nobody else holds the tensor, the result is given
/// its memory, and nothing is copied.
bool is_spared(const Plan& plan, const Step& step) {
  if (plan.positions.empty() || !is_copy(step)) return false;
  const std::int32_t from = step.operands[0].buffer;
  const std::int32_t to = step.operands[1].buffer;
  const auto gives = [&](const Donation& d) { return d.input == from && d.output == to; };
  if (std::none_of(plan.donations.begin(), plan.donations.end(), gives)) return false;
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& other) {
    const auto written = other.operands.begin() + static_cast<std::ptrdiff_t>(other.first_output());
    return std::any_of(written, other.operands.end(),
                       [&](const Operand& o) { return o.buffer == to && o.position >= 0; });
  });
}

}  // namespace

StepCost cost_of(const Plan& plan, const Step& step) {
  StepCost cost;
  cost.flops = step.flops();
  cost.ops = static_cast<std::int64_t>(step.nodes.size());
  if (step.nodes.empty()) {
    cost.ops = step.own_operations();
    for (const StepKernel& used : step.kernels()) cost.ops += arithmetic_count(*used.kernel);
  }

  if (is_spared(plan, step)) return cost;
  const std::size_t first_output = step.first_output();
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const Operand& operand = step.operands[k];
    if (operand.buffer < 0) continue;
    const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(operand.buffer)];
    const std::int64_t bytes =
        std::min(elements_touched(step, k) * static_cast<std::int64_t>(size_of(buffer.dtype)), buffer.bytes);
    const bool is_output = k >= first_output;
    if (is_output) {
      cost.written_bytes += bytes;
      if (buffer.role == BufferRole::arena) cost.scratch_bytes += bytes;
    }
    if (is_output && !step.accumulates()) continue;
    const auto same = [&](const Operand& other) {
      return other.buffer == operand.buffer && other.offset == operand.offset &&
             other.position == operand.position && other.strides == operand.strides;
    };
    const auto begin = step.operands.begin();
    if (std::none_of(begin, begin + static_cast<std::ptrdiff_t>(k), same)) cost.read_bytes += bytes;
  }
  return cost;
}

}  // namespace caldera
