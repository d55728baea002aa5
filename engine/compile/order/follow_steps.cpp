#include "engine/compile/order/follow_steps.h"

#include <algorithm>
#include <cstddef>

#include "engine/compile/order/dispatch_class.h"

namespace caldera {
namespace {

/// Whether both operands have the same element at every point of the results.
bool is_same_element(const Step& step, const Operand& a, const Operand& b) {
  if (a.offset != b.offset || a.position >= 0 || b.position >= 0) return false;
  for (int d = 0; d + 1 < step.dims.rank(); ++d) {
    if (step.dims[d] != 1 && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

/// Whether what `step` touches of what `before` writes is the same element at every point, read by its
/// epilogue, and whether it writes nothing that the other touches.
bool meets_at_points(const Step& step, const Step& before) {
  const auto named = static_cast<std::size_t>(step.named_operands());
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const Operand& own = step.operands[k];
    if (own.buffer < 0) continue;
    for (std::size_t j = 0; j < before.operands.size(); ++j) {
      const bool writes = k >= step.first_output(), is_written = j >= before.first_output();
      if (before.operands[j].buffer != own.buffer || (!writes && !is_written)) continue;
      if (writes || k < named || !is_same_element(step, own, before.operands[j])) return false;
    }
  }
  return true;
}

bool reads_of(const Step& step, const Step& before) {
  return std::any_of(before.operands.begin() + static_cast<std::ptrdiff_t>(before.first_output()),
                     before.operands.end(), [&](const Operand& written) {
                       return std::any_of(step.operands.begin(), step.operands.end(),
                                          [&](const Operand& o) { return o.buffer == written.buffer; });
                     });
}

bool may_follow(const Plan& plan, const Step& step, const Step& before) {
  const auto* own = step.if_a<ContractStep>();
  const auto* other = before.if_a<ContractStep>();
  if (own == nullptr || other == nullptr || !own->epilogue || !other->epilogue) return false;
  if (step.dims.numel() == 0 || step.dims.rank() != before.dims.rank()) return false;
  for (int d = 0; d + 1 < step.dims.rank(); ++d) {
    if (step.dims[d] != before.dims[d]) return false;
  }
  return own->segments.size() == other->segments.size() &&
         product_class(plan, step) == product_class(plan, before) && reads_of(step, before) &&
         meets_at_points(step, before);
}

}  // namespace

void follow_steps(Plan& plan) {
  for (std::size_t s = 1; s < plan.steps.size(); ++s) {
    const bool alone = !plan.steps[s].joined && !plan.steps[s - 1].joined &&
                       (s + 1 == plan.steps.size() || !plan.steps[s + 1].joined);
    if (!alone || !may_follow(plan, plan.steps[s], plan.steps[s - 1])) continue;
    plan.steps[s].joined = plan.steps[s].follows = true;
  }
}

}  // namespace caldera
