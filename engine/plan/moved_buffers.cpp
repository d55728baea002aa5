#include "engine/plan/moved_buffers.h"

#include <map>
#include <utility>

namespace caldera {

Plan with_moved_buffers(const Plan& plan, std::vector<MovedBuffer>& moved) {
  Plan fixed = plan;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> known;  // by buffer and position
  for (Step& step : fixed.steps) {
    for (Operand& operand : step.operands) {
      if (operand.position < 0) continue;
      const auto next = static_cast<std::int32_t>(fixed.buffers.size());
      const auto [found, is_new] = known.try_emplace({operand.buffer, operand.position}, next);
      if (is_new) {
        fixed.buffers.push_back(plan.buffers[static_cast<std::size_t>(operand.buffer)]);
        moved.push_back({operand.buffer, operand.position});
      }
      operand.buffer = found->second;
      operand.position = -1;
    }
  }
  return fixed;
}

}  // namespace caldera
