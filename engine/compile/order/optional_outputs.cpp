#include "engine/compile/order/optional_outputs.h"

#include <utility>
#include <vector>

namespace caldera {

void add_optional_outputs(Plan& plan, std::span<const std::uint32_t> wanted) {
  if (wanted.empty()) return;
  const std::vector<StoredValue> found = plan.stored_among(wanted);
  if (found.empty()) return;

  // Inputs and outputs are numbered first, so the others move back.
  const auto bound = static_cast<std::size_t>(plan.input_count) + static_cast<std::size_t>(plan.output_count);
  std::vector<PlanBuffer> buffers(plan.buffers.begin(),
                                  plan.buffers.begin() + static_cast<std::ptrdiff_t>(bound));
  buffers.reserve(plan.buffers.size());
  constexpr std::int32_t kUnknown = -1;
  std::vector<std::int32_t> number(plan.buffers.size(), kUnknown);
  const auto append = [&](std::size_t old, BufferRole role) {
    number[old] = static_cast<std::int32_t>(buffers.size());
    buffers.push_back(plan.buffers[old]);
    buffers.back().role = role;
  };
  for (std::size_t b = 0; b < bound; ++b) number[b] = static_cast<std::int32_t>(b);
  for (const StoredValue& value : found) {
    append(value.value, BufferRole::output);
    plan.optional_outputs.push_back(value.node);
  }
  for (std::size_t b = bound; b < plan.buffers.size(); ++b) {
    if (number[b] == kUnknown) append(b, BufferRole::arena);
  }
  plan.buffers = std::move(buffers);
  plan.output_count += static_cast<std::int32_t>(found.size());
  for (Step& step : plan.steps) {
    for (Operand& operand : step.operands) {
      if (operand.buffer >= 0) operand.buffer = number[static_cast<std::size_t>(operand.buffer)];
    }
  }
}

}  // namespace caldera
