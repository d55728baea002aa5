// Matrix routines: steps over a batch of matrices, which they read by strides.
#include "engine/compile/emit/emitter.h"

namespace caldera {

/// The matrices of an operand as (batch, rows, columns) with one stride each, copied if no such view exists.
Emitter::Placed Emitter::matrices(const Source& source, Shape& extents) {
  const Shape& shape = node(source.shape_of).shape;
  const int rank = shape.rank();
  extents = Shape{1, shape[rank - 2], shape[rank - 1]};
  for (int d = 0; d < rank - 2; ++d) extents[0] *= shape[d];
  if (has_own_memory(source)) {
    if (const auto view = reshape_view(*source.view, shape, extents)) return {memory(source.root), *view};
  }
  return {written_out(source).buffer, dense_view(extents)};
}

void Emitter::linalg(std::uint32_t i) {
  const Program::Node& n = node(i);
  const auto routine = static_cast<MatrixRoutine>(n.attributes[kRoutine]);
  Step step;
  step.dtype = n.dtype;
  const bool option = n.attributes[kOption] != 0;
  step.work = LinalgStep{.routine = routine, .option = option};
  if (has_tolerance(routine)) step.scalars = {node(placement_.operand(i, 1).root).slot};
  Shape left, right{0, 0, 0};
  const Placed a = matrices(placement_.operand(i, 0), left);
  step.operands = {
      {a.buffer, a.view.offset, {a.view.strides[0], a.view.strides[1], a.view.strides[2], 0, 0}}};
  if (has_right_side(routine)) {
    const Placed b = matrices(placement_.operand(i, 1), right);
    step.operands.push_back(
        {b.buffer, b.view.offset, {b.view.strides[0], b.view.strides[1], 0, b.view.strides[2], 0}});
  }
  const std::int64_t size = result_size(routine, option, left[1], left[2], right[2]);
  step.dims = Shape{left[0], left[1], left[2], right[2], size};
  step.operands.push_back({destination(i), 0, {size, 0, 0, 0, 1}});
  push(std::move(step));
}

}  // namespace caldera
