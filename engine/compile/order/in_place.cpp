#include "engine/compile/order/in_place.h"

#include <vector>

namespace caldera {
namespace {

/// When a buffer outside the arena is touched: numbers of dispatches, and how many of their steps.
struct Touches {
  std::int32_t first = -1;
  std::int32_t last = -1;
  std::int32_t before_last = -1;
  int in_first = 0;
  int in_last = 0;

  void touch(std::int32_t dispatch) {
    if (first < 0) first = dispatch;
    if (dispatch == first) ++in_first;
    if (dispatch != last) {
      before_last = last;
      in_last = 0;
    }
    last = dispatch;
    ++in_last;
  }
};

}  // namespace

bool may_write_over(const Plan& plan, const Step& step, std::size_t out, std::size_t in) {
  const Operand& to = step.operands[out];
  const Operand& from = step.operands[in];
  if (from.buffer < 0 || from.buffer == to.buffer || !step.reads_in_place(in)) return false;
  const PlanBuffer& written = plan.buffers[static_cast<std::size_t>(to.buffer)];
  const PlanBuffer& read = plan.buffers[static_cast<std::size_t>(from.buffer)];
  if (written.bytes != read.bytes || size_of(written.dtype) != size_of(read.dtype)) return false;
  if (from.offset != 0 || to.offset != 0 || from.strides != to.strides) return false;
  if (from.position >= 0 || to.position >= 0) return false;
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const std::int32_t other = step.operands[k].buffer;
    if ((k != in && other == from.buffer) || (k != out && other == to.buffer)) return false;
  }
  return true;
}

void find_donations(Plan& plan) {
  constexpr std::size_t kMostOfAStep = 16;  // small: an optimiser's step has a few tensors of one shape
  const std::int32_t bound = plan.input_count + plan.output_count;
  std::vector<Touches> touches(static_cast<std::size_t>(bound));
  std::vector<std::int32_t> touched_by(static_cast<std::size_t>(bound), -1);  // step
  std::vector<std::int32_t> barriers;                                         // before and at each dispatch
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (!step.joined || barriers.empty()) {
      barriers.push_back((barriers.empty() ? 0 : barriers.back()) + (step.barrier_before ? 1 : 0));
    }
    for (const Operand& operand : step.operands) {
      if (operand.buffer < 0 || operand.buffer >= bound) continue;
      const auto b = static_cast<std::size_t>(operand.buffer);
      if (touched_by[b] == static_cast<std::int32_t>(s)) continue;
      touched_by[b] = static_cast<std::int32_t>(s);
      touches[b].touch(static_cast<std::int32_t>(barriers.size()) - 1);
    }
  }

  // Nothing is taken from those that were asked for.
  const std::int32_t asked = bound - static_cast<std::int32_t>(plan.optional_outputs.size());
  plan.donations.clear();
  std::int32_t now = -1;
  for (const Step& step : plan.steps) {
    if (!step.joined || now < 0) ++now;
    const std::size_t outputs = step.first_output();
    std::size_t found = 0;
    for (std::size_t out = outputs; out < step.operands.size(); ++out) {
      const std::int32_t to = step.operands[out].buffer;
      if (to < plan.input_count || to >= asked) continue;
      const Touches& written = touches[static_cast<std::size_t>(to)];
      if (written.first != now || written.in_first != 1) continue;
      for (std::size_t in = 0; in < outputs && found < kMostOfAStep; ++in) {
        const std::int32_t from = step.operands[in].buffer;
        if (from < 0 || from >= plan.input_count) continue;
        const Touches& read = touches[static_cast<std::size_t>(from)];
        if (read.last != now || read.in_last != 1 || !may_write_over(plan, step, out, in)) continue;
        const bool apart = read.before_last < 0 || barriers[static_cast<std::size_t>(read.before_last)] <
                                                       barriers[static_cast<std::size_t>(now)];
        if (!apart) continue;
        plan.donations.push_back({to, from});
        ++found;
      }
    }
  }
}

}  // namespace caldera
