// Loops and branches: steps that run plans of their own.
#include <algorithm>

#include "engine/compile/emit/emitter.h"
#include "engine/compile/program/control_flow.h"
#include "engine/plan/inner_plan.h"

namespace caldera {
namespace {

/// A part that gives those of its results alone that are wanted.
ControlPlan planned(const ControlPart& part, const std::vector<bool>& wanted, const PartCompiler& compile) {
  Program program = part.program;
  std::size_t next = 0;
  for (std::size_t k = 0; k < part.program.outputs.size(); ++k) {
    if (k >= wanted.size() || wanted[k]) program.outputs[next++] = part.program.outputs[k];
  }
  program.outputs.resize(next);
  return inner_plan(compile(program), part.parameters, part.numbers);
}

}  // namespace

void Emitter::control(std::uint32_t i) {
  const Program::Node& n = node(i);
  const ControlFlow& flow = *n.control;
  ControlStep control{.layout = flow.layout};
  control.exchange = flow.exchange;
  Step step;
  step.dtype = n.dtype;
  step.dims = Shape{1};
  const auto add = [&](std::int32_t buffer, std::int64_t offset) {
    step.operands.push_back({buffer, offset, Dims{1}});
  };
  for (std::size_t k = 0; k < flow.inputs.size(); ++k) {
    const std::int64_t elements = flow.inputs[k].shape.get().numel();
    const Placed placed = laid_out(placement_.operand(i, k), Shape{elements}, true);
    add(placed.buffer, placed.view.offset);
    control.inputs.push_back({flow.inputs[k].dtype, elements});
  }
  // What goes round is needed; a stacked result only if somebody reads it, a listed one if that of any turn
  // is read.
  const ControlLayout& layout = flow.layout;
  const std::uint32_t carried = layout.carried();
  const auto is_read = [&](std::uint32_t k) { return k == 0 || other_.contains({i, k}); };
  const auto give = [&](std::uint32_t k) {
    const std::int64_t elements = flow.results[k].shape.get().numel();
    const auto other = other_.find({i, k});
    if (k == 0)
      add(destination(i), 0);
    else if (other != other_.end())
      add(destination(other->second), 0);
    else
      add(add_buffer(BufferRole::arena, flow.results[k].dtype, elements), 0);
    control.results.push_back({flow.results[k].dtype, elements});
  };
  std::vector<bool> wanted(layout.part_results(), true);
  for (std::uint32_t k = 0; k < carried + layout.stacked; ++k) {
    wanted[k] = k < carried || is_read(k);
    if (wanted[k])
      give(k);
    else
      --control.layout.stacked;
  }
  for (std::uint32_t l = 0; l < layout.listed; ++l) {
    bool is_any_read = false;
    for (std::uint32_t k = layout.listed_begin(l); k < layout.listed_begin(l + 1); ++k)
      is_any_read = is_any_read || is_read(k);
    wanted[carried + layout.stacked + l] = is_any_read;
    if (!is_any_read) --control.layout.listed;
    for (std::uint32_t k = layout.listed_begin(l); is_any_read && k < layout.listed_begin(l + 1); ++k)
      give(k);
  }
  for (std::uint32_t p = 0; p < flow.parts.size(); ++p)
    control.parts.push_back(
        planned(flow.parts[p], layout.gives_results(p) ? wanted : std::vector<bool>(), compile_part_));
  for (std::size_t k = 0; k < flow.numbers.size(); ++k) {
    step.scalars.push_back(node(placement_.operand(i, flow.inputs.size() + k).root).slot);
    control.numbers.push_back(flow.numbers[k]);
  }
  control.plan_scratch();
  if (control.scratch.bytes > 0) add(add_buffer(BufferRole::arena, DType::u8, control.scratch.bytes), 0);
  step.work = std::move(control);
  push(std::move(step));
}

}  // namespace caldera
