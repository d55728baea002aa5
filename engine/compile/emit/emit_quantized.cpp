// Quantised matrices: steps that read their parts as they are.
#include "engine/compile/emit/emitter.h"

namespace caldera {

/// An operand as elements of `extents`, by one stride each: as it is where that is possible (densely, if
/// `dense`), else copied.
Emitter::Placed Emitter::laid_out(const Source& source, const Shape& extents, bool dense) {
  const Shape& shape = node(source.shape_of).shape;
  if (has_own_memory(source)) {
    if (const auto view = reshape_view(*source.view, shape, extents)) {
      const Dims row_major = extents.strides();
      bool fits = true;
      for (int d = 0; dense && d < extents.rank(); ++d)
        fits = fits && (extents[d] <= 1 || view->strides[d] == row_major[d]);
      if (fits) return {memory(source.root), *view};
    }
  }
  return {written_out(source).buffer, dense_view(extents)};
}

void Emitter::quantized(std::uint32_t i) {
  const Program::Node& n = node(i);
  const QuantizedNode what = QuantizedNode::of(n.attributes);
  const QuantizedStep kind{what};
  Step step;
  step.dtype = n.dtype;
  step.work = kind;
  const bool takes = what.work == QuantizedWork::take_rows;
  const bool across = what.work == QuantizedWork::transposed_product;
  step.dims = Shape{n.shape[0], takes ? 1 : what.rows, what.columns};
  std::size_t input = 0;
  if (kind.has_x()) {
    const Placed x =
        laid_out(placement_.operand(i, input++), Shape{n.shape[0], across ? what.rows : what.columns}, false);
    const Dims& s = x.view.strides;
    step.operands.push_back({x.buffer, x.view.offset, across ? Dims{s[0], s[1], 0} : Dims{s[0], 0, s[1]}});
  }
  if (kind.has_which()) {
    const Placed which = laid_out(placement_.operand(i, input++), Shape{n.shape[0]}, false);
    step.operands.push_back({which.buffer, which.view.offset, {which.view.strides[0], 0, 0}});
  }
  for (const QuantizedPart& part : parts_of(what.layout, what.rows, what.columns)) {
    const Placed placed =
        laid_out(placement_.operand(i, input++), Shape{what.matrices, part.rows, part.columns}, true);
    step.operands.push_back({placed.buffer, placed.view.offset, placed.view.strides});
  }
  const std::int64_t width = n.shape.back();
  switch (what.work) {
    case QuantizedWork::dequantize:
      step.operands.push_back({destination(i), 0, step.dims.strides()});
      break;
    case QuantizedWork::product:
      step.operands.push_back({destination(i), 0, {width, 1, 0}});
      break;
    case QuantizedWork::take_rows:
    case QuantizedWork::transposed_product:
      step.operands.push_back({destination(i), 0, {width, 0, 1}});
      break;
  }
  push(std::move(step));
}

}  // namespace caldera
