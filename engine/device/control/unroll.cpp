#include "engine/device/control/unroll.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace caldera {
namespace {

using Is = UnrolledTurns::Is;

class Unroller {
 public:
  Unroller(const ControlStep& step, std::size_t part, std::int64_t turns)
      : layout_(step.layout), part_(step.parts[part]), body_(*part_.plan), turns_(turns) {}

  UnrolledTurns run() {
    for (std::int64_t turn = 0; turn < turns_; ++turn) {
      for (const Step& step : body_.steps) note(step, turn);
    }
    auto plan = std::make_shared<Plan>();
    plan->device = body_.device;
    plan->scalars = body_.scalars;
    plan->constants = body_.constants;
    plan->positions = body_.positions;
    plan->node_count = body_.node_count;
    UnrolledTurns unrolled;
    const auto take = [&](bool written, BufferRole role) {
      for (auto& [key, buffer] : buffers_) {
        if (buffer.is_written != written) continue;
        buffer.slot = static_cast<std::int32_t>(plan->buffers.size());
        plan->buffers.push_back({.role = role, .dtype = buffer.like->dtype, .bytes = buffer.like->bytes});
        unrolled.slots.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key)});
      }
      return static_cast<std::int32_t>(plan->buffers.size());
    };
    plan->input_count = take(false, BufferRole::input);
    plan->output_count = take(true, BufferRole::output) - plan->input_count;
    plan->steps.reserve(body_.steps.size() * static_cast<std::size_t>(turns_));
    for (std::int64_t turn = 0; turn < turns_; ++turn) {
      for (std::size_t s = 0; s < body_.steps.size(); ++s) {
        Step& step = plan->steps.emplace_back(body_.steps[s]);
        // A turn reads what the turn before wrote, and takes its arena.
        step.barrier_before = step.barrier_before || (s == 0 && turn > 0);
        for (Operand& operand : step.operands) {
          if (operand.buffer >= 0) operand.buffer = buffers_.at(key_of(operand.buffer, turn)).slot;
        }
      }
    }
    unrolled.plan = std::move(plan);
    return unrolled;
  }

 private:
  using Key = std::tuple<Is, std::uint32_t, std::int64_t>;
  struct Buffer {
    const PlanBuffer* like = nullptr;
    bool is_written = false;
    std::int32_t slot = -1;
  };

  /// Where the carries are behind a turn.
  Is carry_behind(std::int64_t turn) const {
    return (turns_ - 1 - turn) % 2 == 0 ? Is::last_carry : Is::middle_carry;
  }

  Key key_of(std::int32_t buffer, std::int64_t turn) const {
    const auto b = static_cast<std::uint32_t>(buffer);
    const auto inputs = static_cast<std::uint32_t>(body_.input_count);
    if (b < inputs) {
      const std::uint32_t parameter = part_.parameters[b];
      if (parameter < layout_.carries)
        return {turn == 0 ? Is::first_carry : carry_behind(turn - 1), parameter, 0};
      if (layout_.is_of_turn(parameter)) return {Is::slice, parameter, turn};
      return {Is::parameter, parameter, 0};
    }
    if (b < inputs + static_cast<std::uint32_t>(body_.output_count)) {
      const std::uint32_t k = b - inputs;
      if (k < layout_.carries) return {carry_behind(turn), k, 0};
      return {Is::result, k, turn};
    }
    return {Is::arena, b, 0};
  }

  void note(const Step& step, std::int64_t turn) {
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      const std::int32_t b = step.operands[k].buffer;
      if (b < 0) continue;
      Buffer& buffer = buffers_[key_of(b, turn)];
      buffer.like = &body_.buffers[static_cast<std::size_t>(b)];
      buffer.is_written = buffer.is_written || k >= step.first_output();
    }
  }

  const ControlLayout& layout_;
  const ControlPlan& part_;
  const Plan& body_;
  std::int64_t turns_;
  std::map<Key, Buffer> buffers_;
};

}  // namespace

UnrolledTurns unroll(const ControlStep& step, std::size_t part, std::int64_t turns) {
  return Unroller(step, part, turns).run();
}

}  // namespace caldera
