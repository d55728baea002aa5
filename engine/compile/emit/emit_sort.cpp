// Sorts: steps over rows, which they read by strides.
#include "engine/compile/emit/emitter.h"

namespace caldera {

void Emitter::sort(std::uint32_t i) {
  const Program::Node& n = node(i);
  const Source source = placement_.operand(i, 0);
  const Program::Node& x = node(source.shape_of);
  Shape rows;
  const Placed placed = three_dimensional(source, x.shape.rank() - 1, rows);
  Step step;
  step.dtype = n.dtype;
  step.dims = Shape{rows[0], rows[1], n.shape.back()};
  step.work = SortStep{.of = x.dtype, .first = n.attributes[0], .descending = n.attributes[1] != 0};
  step.operands = {{placed.buffer, placed.view.offset, {placed.view.strides[0], placed.view.strides[1], 0}},
                   {destination(i), 0, {step.dims[2], 0, 1}}};
  push(std::move(step));
}

}  // namespace caldera
