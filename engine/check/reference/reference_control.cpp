#include "engine/check/reference/reference_control.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/graph/host_exchange.h"

namespace caldera::reference {
namespace {

using Bytes = std::vector<std::byte>;

class Control {
 public:
  Control(const StepMemory& memory, const ControlStep& control, const RunPart& run_part)
      : memory_(memory), control_(control), layout_(control.layout), run_part_(run_part) {
    for (std::size_t i = 0; i < control.inputs.size(); ++i) inputs_.push_back(take(i, control.inputs[i]));
    for (const ControlValue& value : control.results)
      results_.emplace_back(static_cast<std::size_t>(value.bytes()));
  }

  void run() {
    switch (layout_.kind) {
      case ControlKind::branch:
        results_ = part(static_cast<std::size_t>(std::clamp<std::int64_t>(
                            selector(), 0, static_cast<std::int64_t>(control_.parts.size()) - 1)),
                        inputs_);
        break;
      case ControlKind::loop:
        loop();
        break;
      case ControlKind::reversal:
        reverse();
        break;
      case ControlKind::exchange:
        exchange();
        break;
    }
    for (std::size_t k = 0; k < results_.size(); ++k) give(control_.inputs.size() + k, results_[k]);
  }

 private:
  void exchange() {
    const HostExchange& exchange = *control_.exchange;
    const HostExchange::Begun begun = exchange.begin(inputs_[0].size(), results_[0].size());
    std::copy(inputs_[0].begin(), inputs_[0].end(), begun.input.begin());
    exchange.start(*begun.pending);
    const std::span<const std::byte> result = begun.pending->finish();
    results_[0].assign(result.begin(), result.end());
  }
  Bytes take(std::size_t k, const ControlValue& value) const {
    const auto begin = memory_.bytes(k).begin() + offset(k);
    return {begin, begin + value.bytes()};
  }
  void give(std::size_t k, const Bytes& value) const {
    std::copy(value.begin(), value.end(), memory_.bytes(k).begin() + offset(k));
  }
  std::ptrdiff_t offset(std::size_t k) const {
    return memory_.element(k, {}) * static_cast<std::int64_t>(size_of(memory_.type(k)));
  }
  /// The further input, an integer.
  std::int64_t selector() const {
    const Bytes& bits = inputs_.back();
    if (bits.size() == sizeof(std::int32_t)) {
      std::int32_t value = 0;
      std::memcpy(&value, bits.data(), sizeof value);
      return value;
    }
    std::int64_t value = 0;
    std::memcpy(&value, bits.data(), sizeof value);
    return value;
  }

  /// The results of part `p` for these values of all parameters.
  std::vector<Bytes> part(std::size_t p, const std::vector<Bytes>& parameters) const {
    const ControlPlan& bound = control_.parts[p];
    const Plan& plan = *bound.plan;
    PlanMemory inner;
    for (const PlanBuffer& buffer : plan.buffers)
      inner.buffers.emplace_back(static_cast<std::size_t>(buffer.bytes));
    for (std::size_t i = 0; i < bound.parameters.size(); ++i)
      inner.buffers[i] = parameters[bound.parameters[i]];
    for (const std::uint32_t number : bound.numbers)
      inner.scalars.push_back(memory_.scalar_bits(memory_.step().scalars[number]));
    inner.scalars.insert(inner.scalars.end(), plan.constants.begin(), plan.constants.end());
    run_part_(plan, inner);
    const auto first = inner.buffers.begin() + plan.input_count;
    return {first, first + plan.output_count};
  }

  std::int64_t place_of(std::int64_t turn, std::int64_t turns) const {
    return layout_.is_backwards ? turns - 1 - turn : turn;
  }
  /// The parameters of a turn: its carries, its slices, and all else as it came.
  std::vector<Bytes> of_turn(std::int64_t turn, std::int64_t turns, const std::vector<Bytes>& carries) const {
    std::vector<Bytes> all(inputs_.begin(), inputs_.begin() + layout_.first_list());
    std::copy_n(carries.begin(), layout_.carries, all.begin());
    for (std::uint32_t l = 0; l < layout_.lists; ++l)
      all.push_back(inputs_[layout_.list_begin(l) + static_cast<std::size_t>(place_of(turn, turns))]);
    for (std::size_t i = layout_.carries; i < layout_.carries + layout_.slices; ++i) {
      const auto size = static_cast<std::ptrdiff_t>(inputs_[i].size()) / turns;
      const auto begin = inputs_[i].begin() + place_of(turn, turns) * size;
      all[i] = {begin, begin + size};
    }
    return all;
  }
  /// Takes what a turn gave: the first `carried` of it go round.
  void settle(std::vector<Bytes> given, std::int64_t turn, std::int64_t turns, std::vector<Bytes>& round) {
    const std::uint32_t carried = layout_.carried(), first_listed = carried + layout_.stacked;
    for (std::uint32_t k = first_listed; k < given.size(); ++k)
      results_[layout_.listed_begin(k - first_listed) + static_cast<std::size_t>(place_of(turn, turns))] =
          given[k];
    for (std::size_t k = carried; k < std::min<std::size_t>(first_listed, given.size()); ++k) {
      std::copy(given[k].begin(), given[k].end(),
                results_[k].begin() + place_of(turn, turns) * static_cast<std::ptrdiff_t>(given[k].size()));
    }
    given.resize(carried);
    round = std::move(given);
  }

  void loop() {
    std::vector<Bytes> carries(inputs_.begin(), inputs_.begin() + layout_.carries);
    for (std::int64_t turn = 0; layout_.turns < 0 || turn < layout_.turns; ++turn) {
      const std::vector<Bytes> parameters = of_turn(turn, std::max<std::int64_t>(1, layout_.turns), carries);
      if (layout_.turns < 0 && part(1, parameters)[0][0] == std::byte{0}) break;
      settle(part(0, parameters), turn, layout_.turns, carries);
    }
    std::ranges::copy(carries, results_.begin());
  }

  void reverse() {
    const std::int64_t turns = layout_.turns < 0 ? selector() : layout_.turns;
    std::vector<std::vector<Bytes>> carries{{inputs_.begin(), inputs_.begin() + layout_.carries}};
    for (std::int64_t turn = 0; turn + 1 < turns; ++turn)
      carries.push_back(part(0, of_turn(turn, turns, carries.back())));
    const auto first = inputs_.begin() + layout_.carries + layout_.slices + layout_.constants;
    std::vector<Bytes> states(first, first + layout_.states);
    for (std::int64_t turn = turns; turn-- > 0;) {
      std::vector<Bytes> parameters = of_turn(turn, turns, carries[static_cast<std::size_t>(turn)]);
      std::ranges::copy(states, parameters.begin() + layout_.carries + layout_.slices + layout_.constants);
      settle(part(1, parameters), turn, turns, states);
    }
    std::ranges::copy(states, results_.begin());
  }

  const StepMemory& memory_;
  const ControlStep& control_;
  const ControlLayout& layout_;
  const RunPart& run_part_;
  std::vector<Bytes> inputs_;
  std::vector<Bytes> results_;
};

}  // namespace

void run_control(const StepMemory& memory, const ControlStep& control, const RunPart& run_part) {
  Control(memory, control, run_part).run();
}

}  // namespace caldera::reference
