#include "engine/device/control/control_run.h"

#include <algorithm>
#include <cstring>

#include "engine/base/error.h"
#include "engine/device/control/binomial.h"

namespace caldera {
namespace {

Bindings::Slot moved(Bindings::Slot slot, std::int64_t bytes) {
  return {slot.storage, slot.byte_offset + bytes};
}

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

}  // namespace

ControlRun::ControlRun(const ControlContext& context)
    : context_(context),
      backend_(context.backend),
      step_(context.step),
      control_(context.step.as<ControlStep>()),
      layout_(control_.layout),
      turns_(layout_.turns) {
  for (std::size_t p = 0; p < context.parts.size(); ++p) {
    const ControlPlan& part = control_.parts[p];
    std::vector<std::uint64_t>& scalars = context.parts[p]->scalars;
    scalars.clear();
    for (const std::uint32_t number : part.numbers)
      scalars.push_back(context.run.scalars[static_cast<std::size_t>(step_.scalars[number])]);
    scalars.insert(scalars.end(), part.plan->constants.begin(), part.plan->constants.end());
    if (part.arena_bytes > 0) context.parts[p]->set_arena(in_scratch(control_.scratch.arena));
    for (std::uint32_t k = 0; k < layout_.first_list(); ++k) bind(p, k, operand(k));
  }
}

Ticket ControlRun::run(Ticket before) {
  last_ = before;
  switch (layout_.kind) {
    case ControlKind::branch:
      branch();
      break;
    case ControlKind::loop:
      layout_.has_known_turns() ? loop_known() : loop_unknown();
      break;
    case ControlKind::reversal:
      reversal();
      break;
    case ControlKind::exchange:  // of the script (exchanges.h)
      break;
  }
  return last_;
}

// ---- where things are ----

ControlRun::Slot ControlRun::operand(std::size_t k) const {
  const Operand& o = step_.operands[k];
  const auto buffer = static_cast<std::size_t>(o.buffer);
  const auto size = static_cast<std::int64_t>(size_of(context_.plan.buffers[buffer].dtype));
  std::int64_t first = o.offset;
  if (o.position >= 0)
    first += shift_by(context_.plan.positions[static_cast<std::size_t>(o.position)], context_.run.scalars);
  return moved(context_.run.buffers[buffer], first * size);
}

ControlRun::Slot ControlRun::in_scratch(std::int64_t bytes) const {
  return moved(operand(step_.operands.size() - 1), bytes);
}

ControlRun::Set ControlRun::inputs(std::uint32_t first, std::uint32_t count) const {
  Set set;
  for (std::uint32_t k = first; k < first + count; ++k) set.push_back(operand(k));
  return set;
}

ControlRun::Set ControlRun::results(std::uint32_t count) const {
  Set set;
  for (std::uint32_t k = 0; k < count; ++k) set.push_back(operand(control_.inputs.size() + k));
  return set;
}

ControlRun::Set ControlRun::set_in_scratch(std::int64_t at, std::uint32_t first, std::uint32_t count) const {
  Set set;
  for (std::uint32_t k = first; k < first + count; ++k) {
    set.push_back(in_scratch(at));
    at += aligned(control_.inputs[k].bytes());
  }
  return set;
}

// ---- binding parts ----

void ControlRun::bind(std::size_t part, std::uint32_t parameter, Slot slot) {
  const std::vector<std::uint32_t>& parameters = control_.parts[part].parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] == parameter) context_.parts[part]->buffers[i] = slot;
  }
}

void ControlRun::bind_carries(std::size_t part, const Set& carries) {
  for (std::uint32_t k = 0; k < layout_.carries; ++k) bind(part, k, carries[k]);
}

ControlRun::Slot ControlRun::at(ControlStep::Place place) const {
  return moved(operand(place.operand), place.bytes);
}

ControlRun::Slot ControlRun::slice_at(std::uint32_t p, std::int64_t turn) const {
  return at(control_.parameter_at(p, place_of(turn)));
}

ControlRun::Slot ControlRun::result_at(std::size_t part, std::uint32_t k, std::int64_t turn) const {
  if (!layout_.has_known_turns() && part == 3) return in_scratch(control_.scratch.flag);
  return at(control_.result_at(k, place_of(turn)));
}

void ControlRun::bind_slices(std::size_t part, std::int64_t turn) {
  const std::vector<std::uint32_t>& parameters = control_.parts[part].parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (layout_.is_of_turn(parameters[i])) context_.parts[part]->buffers[i] = slice_at(parameters[i], turn);
  }
}

void ControlRun::bind_result(std::size_t part, std::size_t k, Slot slot) {
  context_.parts[part]->buffers[control_.parts[part].inputs.size() + k] = slot;
}

void ControlRun::bind_results(std::size_t part, const Set& set) {
  for (std::size_t k = 0; k < set.size(); ++k) bind_result(part, k, set[k]);
}

void ControlRun::run_part(std::size_t part) {
  const Ticket ticket = context_.parts[part]->run();
  if (ticket != 0) last_ = ticket;
}

// ---- turns ----

void ControlRun::check_cancelled() const {
  if (context_.is_cancelled == nullptr || !context_.is_cancelled->load(std::memory_order_relaxed)) return;
  throw CancelledError(std::string(control_.kind()) + ": ended before its next turns, as was asked for");
}

void ControlRun::run_turn(std::size_t part, std::int64_t turn, const Set& from, const Set& to) {
  check_cancelled();
  bind_carries(part, from);
  bind_slices(part, turn);
  bind_results(part, to);
  const auto results = static_cast<std::uint32_t>(control_.parts[part].results.size());
  for (std::uint32_t k = layout_.carries; k < results; ++k) bind_result(part, k, result_at(part, k, turn));
  run_part(part);
}

void ControlRun::run_unrolled(std::size_t part, std::int64_t first, std::int64_t count, const Set& from,
                              const Set& to, const Set& other) {
  using Is = UnrolledTurns::Is;
  check_cancelled();
  const TurnCache::Turns& turns = context_.turns.turns_of(part, count);
  const auto place = [&](const UnrolledTurns::Slot& slot) -> Slot {
    switch (slot.is) {
      case Is::first_carry:
        return from[slot.index];
      case Is::last_carry:
        return to[slot.index];
      case Is::middle_carry:
        return other[slot.index];
      case Is::parameter:
        return operand(slot.index);
      case Is::slice:
        return slice_at(slot.index, first + slot.turn);
      case Is::result:
        return result_at(part, slot.index, first + slot.turn);
      case Is::arena:
        break;
    }
    return context_.parts[part]->buffers[slot.index];
  };
  Bindings bindings;
  bindings.slots.reserve(turns.slots.size());
  for (const UnrolledTurns::Slot& slot : turns.slots) bindings.slots.push_back(place(slot));
  bindings.scalars = context_.parts[part]->scalars;
  const Ticket ticket = backend_.submit(*turns.executable, bindings);
  if (ticket != 0) last_ = ticket;
}

void ControlRun::run_turns(std::size_t part, std::int64_t first, std::int64_t count, const Set& from,
                           const Set& to, const Set& other) {
  const std::int64_t most = context_.turns.most_turns(part);
  const Set* at = &from;
  if (most == 1) {
    for (std::int64_t j = 0; j < count; ++j) {
      const Set& next = (count - 1 - j) % 2 == 0 ? to : other;
      run_turn(part, first + j, *at, next);
      at = &next;
    }
    return;
  }
  if (count % 2 != 0) {
    run_turn(part, first, *at, to);
    at = &to;
  }
  // An even number of turns may end where it began.
  for (std::int64_t j = count % 2; j < count;) {
    std::int64_t chunk = most;
    while (chunk > count - j) chunk /= 2;
    run_unrolled(part, first + j, chunk, *at, to, other);
    at = &to;
    j += chunk;
  }
}

// ---- branches ----

std::int64_t ControlRun::read_selector() {
  const std::size_t k = control_.inputs.size() - 1;
  const Slot slot = operand(k);
  const auto bytes = static_cast<std::size_t>(control_.inputs[k].bytes());
  backend_.wait(last_);
  if (bytes == sizeof(std::int32_t)) {
    std::int32_t value = 0;
    backend_.download(*slot.storage, static_cast<std::size_t>(slot.byte_offset), &value, sizeof value);
    return value;
  }
  std::int64_t value = 0;
  backend_.download(*slot.storage, static_cast<std::size_t>(slot.byte_offset), &value, sizeof value);
  return value;
}

void ControlRun::branch() {
  const auto count = static_cast<std::int64_t>(control_.parts.size());
  const auto part = static_cast<std::size_t>(std::clamp<std::int64_t>(read_selector(), 0, count - 1));
  bind_results(part, results(layout_.results()));
  run_part(part);
}

// ---- loops ----

void ControlRun::loop_known() {
  const bool has_spare = layout_.turns > 1;
  run_turns(0, 0, layout_.turns, inputs(0, layout_.carries), results(layout_.carries),
            has_spare ? set_in_scratch(control_.scratch.carry_sets[0], 0, layout_.carries) : Set());
}

bool ControlRun::test() {
  run_part(1);
  return read_flag();
}

bool ControlRun::read_flag() {
  backend_.wait(last_);
  const Slot flag = in_scratch(control_.scratch.flag);
  std::uint8_t value = 0;
  backend_.download(*flag.storage, static_cast<std::size_t>(flag.byte_offset), &value, sizeof value);
  return value != 0;
}

/// More and more turns at a time: what runs beyond the end changes nothing, and is no more than ran before
/// it.
void ControlRun::loop_masked() {
  constexpr std::int64_t kFirstTurns = 4;
  const std::int64_t most = context_.turns.most_turns(3);
  const Set out = results(layout_.carries);
  const Set spare = set_in_scratch(control_.scratch.carry_sets[0], 0, layout_.carries);
  const Set first = inputs(0, layout_.carries);
  const Set* at = &first;
  for (std::int64_t turns = std::min(kFirstTurns, most);; turns = std::min(2 * turns, most)) {
    run_unrolled(3, 0, turns, *at, out, spare);
    if (!read_flag()) return;
    at = &out;
  }
}

void ControlRun::loop_unknown() {
  if (control_.parts.size() > 3 && context_.turns.most_turns(3) > 1) return loop_masked();
  const Set out = results(layout_.carries);
  const Set spare = set_in_scratch(control_.scratch.carry_sets[0], 0, layout_.carries);
  bind_result(1, 0, in_scratch(control_.scratch.flag));
  Set at = inputs(0, layout_.carries);
  bool is_out = false;
  while (true) {
    check_cancelled();
    bind_carries(1, at);
    if (!test()) break;
    bind_carries(0, at);
    is_out = !is_out;
    at = is_out ? out : spare;
    bind_results(0, at);
    run_part(0);
  }
  if (is_out) return;
  bind_carries(2, at);
  bind_results(2, out);
  run_part(2);
}

// ---- reversals ----

void ControlRun::back(std::int64_t turn, const Set& at) {
  const std::uint32_t first = layout_.carries + layout_.slices + layout_.constants;
  const Set& to = turn % 2 == 0 ? out_ : spare_;  // turn 0, the last, writes to the results
  bind_carries(1, at);
  bind_slices(1, turn);
  for (std::uint32_t k = 0; k < layout_.states; ++k) bind(1, first + k, states_[k]);
  bind_results(1, to);
  for (std::uint32_t k = layout_.states; k < layout_.part_results(); ++k)
    bind_result(1, k, result_at(1, k, turn));
  run_part(1);
  states_ = to;
}

void ControlRun::reverse_without(std::int64_t begin, std::int64_t end, const Set& at) {
  for (std::int64_t turn = end; turn-- > begin;) {
    if (turn == begin) {
      back(turn, at);
    } else {
      advance(begin, turn - begin, at, sets_[0]);
      back(turn, sets_[0]);
    }
  }
}

void ControlRun::reverse(std::int64_t begin, std::int64_t end, const Set& at, std::int64_t snapshots) {
  while (end - begin > 1) {
    if (snapshots == 1) return reverse_without(begin, end, at);
    const std::int64_t leap = binomial_leap(end - begin, snapshots);
    const Set& kept = sets_[static_cast<std::size_t>(2 + layout_.snapshots - snapshots)];
    advance(begin, leap, at, kept);
    reverse(begin + leap, end, kept, snapshots - 1);
    end = begin + leap;
  }
  back(begin, at);
}

void ControlRun::reversal() {
  if (!layout_.has_known_turns()) turns_ = read_selector();
  const std::uint32_t first = layout_.carries + layout_.slices + layout_.constants;
  out_ = results(layout_.states);
  states_ = inputs(first, layout_.states);
  if (turns_ < 1) {
    for (std::uint32_t k = 0; k < layout_.states; ++k) bind(2, first + k, states_[k]);
    bind_results(2, out_);
    return run_part(2);
  }
  if (turns_ > 1) {
    spare_ = set_in_scratch(control_.scratch.state_sets[0], first, layout_.states);
    for (const std::int64_t set : control_.scratch.carry_sets)
      sets_.push_back(set_in_scratch(set, 0, layout_.carries));
  }
  const Set first_carries = inputs(0, layout_.carries);
  const auto is_carry = [&](std::uint32_t parameter) { return parameter < layout_.carries; };
  if (std::ranges::none_of(control_.parts[1].parameters, is_carry)) {
    // Nobody asks where the turns began.
    for (std::int64_t turn = turns_; turn-- > 0;) back(turn, first_carries);
    return;
  }
  reverse(0, turns_, first_carries, layout_.snapshots);
}

}  // namespace caldera
