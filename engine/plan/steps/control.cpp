#include "engine/plan/steps/control.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "engine/graph/host_exchange.h"
#include "engine/plan/kernel/fault.h"
#include "engine/plan/steps/step_form.h"

namespace caldera {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

/// Takes `bytes` of the scratch and says where.
std::int64_t take(ControlScratch& scratch, std::int64_t bytes) {
  const std::int64_t at = scratch.bytes;
  scratch.bytes += aligned(bytes);
  return at;
}

bool has_right_parts(const ControlStep& step) {
  const std::size_t count = step.parts.size();
  switch (step.layout.kind) {
    case ControlKind::branch:
      return count >= 1;
    case ControlKind::loop:
      return step.layout.has_known_turns() ? count == 1 : count == 3 || count == 4;
    case ControlKind::exchange:
      return count == 0 && step.exchange != nullptr;
    case ControlKind::reversal:
      break;
  }
  return count == (step.layout.has_known_turns() ? 2U : 3U);
}

/// The number of elements of a value that one turn takes or gives.
ControlValue slice_of(const ControlValue& whole, std::int64_t turns) {
  return {whole.dtype, whole.elements / turns};
}

std::vector<ControlValue> results_of(const ControlStep& step, std::size_t part) {
  const ControlLayout& layout = step.layout;
  const auto carried = [&](std::uint32_t first, std::uint32_t count) {
    return std::vector<ControlValue>(step.inputs.begin() + first, step.inputs.begin() + first + count);
  };
  const std::uint32_t states = layout.carries + layout.slices + layout.constants;
  std::vector<ControlValue> values;
  switch (layout.kind) {
    case ControlKind::branch:
    case ControlKind::exchange:
      return step.results;
    case ControlKind::loop:
      if (part == 1) return {{DType::boolean, 1}};
      values = carried(0, layout.carries);
      if (part == 3) values.push_back({DType::boolean, 1});
      break;
    case ControlKind::reversal:
      if (part == 0) return carried(0, layout.carries);
      values = carried(states, layout.states);
      break;
  }
  if (!layout.gives_results(static_cast<std::uint32_t>(part))) return values;
  for (std::uint32_t k = 0; k < layout.stacked; ++k)
    values.push_back(slice_of(step.results[layout.carried() + k], layout.turns));
  for (std::uint32_t k = 0; k < layout.listed; ++k) values.push_back(step.results[layout.listed_begin(k)]);
  return values;
}

void check_value(const ControlValue& own, const ControlValue& bound, const char* what, std::size_t k) {
  if (own.dtype == bound.dtype && own.elements == bound.elements) return;
  throw verify::Fault{fmt::format("a part whose {} {} is {} of {} bytes, bound to {} of {}", what, k,
                                  name(own.dtype), own.bytes(), name(bound.dtype), bound.bytes())};
}

void check_part(const ControlStep& step, std::size_t part) {
  using verify::Fault;
  const ControlPlan& bound = step.parts[part];
  if (bound.plan == nullptr) throw Fault{"a part without a plan"};
  if (bound.inputs.size() != bound.parameters.size()) throw Fault{"a part whose inputs are not all bound"};
  for (std::size_t i = 0; i < bound.parameters.size(); ++i) {
    const std::uint32_t p = bound.parameters[i];
    if (p >= step.layout.parameters()) throw Fault{"a part that reads a parameter that does not exist"};
    const bool is_slice = p >= step.layout.carries && p < step.layout.carries + step.layout.slices;
    const ControlValue& whole = step.inputs[step.parameter_at(p, 0).operand];
    check_value(bound.inputs[i], is_slice ? slice_of(whole, step.layout.turns) : whole, "input", i);
  }
  const std::vector<ControlValue> results = results_of(step, part);
  if (bound.results.size() != results.size())
    throw Fault{"a part with another number of results than the step takes"};
  for (std::size_t k = 0; k < results.size(); ++k) check_value(bound.results[k], results[k], "result", k);
  if (bound.numbers.size() != bound.scalars.size()) throw Fault{"a part whose numbers are not all bound"};
  for (std::size_t i = 0; i < bound.numbers.size(); ++i) {
    if (bound.numbers[i] >= step.numbers.size() || step.numbers[bound.numbers[i]] != bound.scalars[i])
      throw Fault{"a part that takes a number that does not exist, or of another type"};
  }
  if (bound.arena_bytes > step.scratch.bytes - step.scratch.arena)
    throw Fault{"a part whose intermediates do not fit into the scratch of its step"};
}

/// A list begins at `begin`, and is of one type.
void check_list(std::span<const ControlValue> values, std::uint32_t begin, std::uint32_t count,
                const char* what) {
  for (const ControlValue& value : values.subspan(begin, count)) {
    if (value.dtype != values[begin].dtype || value.elements != values[begin].elements)
      throw verify::Fault{fmt::format("a list of {} that are not of one type", what)};
  }
}

void check_layout(const ControlStep& step) {
  using verify::Fault;
  const ControlLayout& layout = step.layout;
  if (layout.kind > ControlKind::exchange) throw Fault{"a kind of control that does not exist"};
  if (step.inputs.size() != layout.tensors() || step.results.size() != layout.results())
    throw Fault{"inputs or results that are not those of the layout"};
  if (layout.has_known_turns() ? layout.turns < 1
                               : layout.slices + layout.lists + layout.listed > 0 || layout.turns != -1)
    throw Fault{"a count of turns that no loop has"};
  const bool is_exchange = layout.kind == ControlKind::exchange;
  if (is_exchange && (layout.constants != 1 || layout.tensors() != 1 || layout.results() != 1))
    throw Fault{"an exchange of another number of tensors than one"};
  if (layout.kind != ControlKind::branch && !is_exchange && !layout.has_known_turns() && layout.stacked > 0)
    throw Fault{"stacked results of a loop whose turns are not known"};
  if (layout.kind == ControlKind::reversal && layout.snapshots < 1)
    throw Fault{"a reversal without snapshots"};
  if (!has_right_parts(step)) throw Fault{"another number of parts than its kind has"};
  for (std::uint32_t k = 0; k < layout.slices; ++k) {
    if (step.inputs[layout.carries + k].elements % layout.turns != 0)
      throw Fault{"slices that are not of one size"};
  }
  for (std::uint32_t l = 0; l < layout.lists; ++l)
    check_list(step.inputs, layout.list_begin(l), layout.tensors_of_a_list(), "inputs");
  for (std::uint32_t l = 0; l < layout.listed; ++l)
    check_list(step.results, layout.listed_begin(l), layout.tensors_of_a_list(), "results");
}

}  // namespace

std::string_view ControlStep::kind() const {
  switch (layout.kind) {
    case ControlKind::loop:
      return layout.has_known_turns() ? "scan" : "while_loop";
    case ControlKind::branch:
      return "cond";
    case ControlKind::exchange:
      return exchange != nullptr ? exchange->name() : "exchange";
    case ControlKind::reversal:
      break;
  }
  return "reversal";
}

Shape ControlStep::operand_dims(const StepHeader&, std::size_t k) const {
  if (k < inputs.size()) return Shape{inputs[k].elements};
  if (k < inputs.size() + results.size()) return Shape{results[k - inputs.size()].elements};
  return Shape{scratch.bytes};
}

/// Of one turn where their count is not known; of a branch, of its dearest part.
std::int64_t ControlStep::flops(const StepHeader&) const {
  std::int64_t total = 0, most = 0;
  for (const ControlPlan& part : parts) {
    total += part.flops;
    most = std::max(most, part.flops);
  }
  return layout.kind == ControlKind::branch ? most : total * std::max<std::int64_t>(1, layout.turns);
}

std::size_t ControlStep::heap_bytes() const {
  std::size_t bytes = (inputs.size() + results.size()) * sizeof(ControlValue);
  for (const ControlPlan& part : parts) bytes += sizeof part + part.heap_bytes;
  return bytes;
}

ControlStep::Place ControlStep::parameter_at(std::uint32_t p, std::int64_t place) const {
  if (p >= layout.first_list())
    return {layout.list_begin(p - layout.first_list()) + static_cast<std::size_t>(place)};
  const bool is_slice = p >= layout.carries && p < layout.carries + layout.slices;
  return {p, is_slice ? place * (inputs[p].bytes() / layout.turns) : 0};
}

ControlStep::Place ControlStep::result_at(std::uint32_t k, std::int64_t place) const {
  const std::uint32_t first_listed = layout.carried() + layout.stacked;
  if (k >= first_listed)
    return {inputs.size() + layout.listed_begin(k - first_listed) + static_cast<std::size_t>(place)};
  return {inputs.size() + k, place * (results[k].bytes() / layout.turns)};
}

void ControlStep::plan_scratch() {
  scratch = {};
  const auto set_of = [&](std::uint32_t first, std::uint32_t count) {
    std::int64_t bytes = 0;
    for (std::uint32_t i = first; i < first + count; ++i) bytes += aligned(inputs[i].bytes());
    return bytes;
  };
  const std::int64_t carries = set_of(0, layout.carries);
  if (layout.kind == ControlKind::loop && layout.turns != 1)
    scratch.carry_sets.push_back(take(scratch, carries));
  if (layout.kind == ControlKind::loop && !layout.has_known_turns()) scratch.flag = take(scratch, 1);
  if (layout.kind == ControlKind::reversal && layout.turns != 1) {
    const std::uint32_t states = layout.carries + layout.slices + layout.constants;
    scratch.state_sets.push_back(take(scratch, set_of(states, layout.states)));
    for (std::int64_t i = 0; i < 2 + layout.snapshots - 1; ++i)
      scratch.carry_sets.push_back(take(scratch, carries));
  }
  scratch.arena = scratch.bytes;
  std::int64_t arena = 0;
  for (const ControlPlan& part : parts) arena = std::max(arena, part.arena_bytes);
  scratch.bytes += aligned(arena);
}

void ControlStep::check(verify::StepForm& form) const {
  check_layout(*this);
  const StepHeader& step = form.step();
  if (step.dims.rank() != 1 || step.dims[0] != 1) throw verify::Fault{"a control step with a space"};
  const auto add = [&](verify::OperandRole role, const ControlValue& value) {
    const std::size_t k = form.count();
    verify::OperandForm& operand = form.add(role, value.dtype, form.inner(1), form.inner(1));
    operand.extents = Shape{value.elements};
    if (k < step.operands.size() && step.operands[k].strides.rank() == 1 && step.operands[k].strides[0] != 1)
      throw verify::Fault{"a control step with an operand that is not dense"};
  };
  for (const ControlValue& value : inputs) add(verify::OperandRole::read, value);
  for (const ControlValue& value : results) add(verify::OperandRole::written, value);
  if (scratch.bytes > 0) add(verify::OperandRole::written, {DType::u8, scratch.bytes});
  for (const DType type : numbers) form.add_scalar(type);
  for (std::size_t part = 0; part < parts.size(); ++part) check_part(*this, part);
}

}  // namespace caldera
