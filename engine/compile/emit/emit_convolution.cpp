// Convolutions: steps over images and weights that are dense.
#include "engine/compile/emit/emitter.h"

namespace caldera {

void Emitter::convolution(std::uint32_t i) {
  const Program::Node& n = node(i);
  Step step;
  step.dtype = n.dtype;
  step.dims = n.shape;
  ConvolutionStep kind{ConvolutionNode::of(n.attributes), {}, {}};
  for (const std::size_t input : {std::size_t{0}, std::size_t{1}}) {
    const Source& source = placement_.operand(i, input);
    const Shape extents = node(source.shape_of).shape;
    const Placed placed = laid_out(source, extents, true);
    step.operands.push_back({placed.buffer, placed.view.offset, placed.view.strides});
    (input == 0 ? kind.a : kind.b) = extents;
  }
  step.operands.push_back({destination(i), 0, step.dims.strides()});
  step.work = kind;
  push(std::move(step));
}

}  // namespace caldera
