#include "engine/plan/steps/convolution.h"

#include "engine/plan/kernel/fault.h"
#include "engine/plan/steps/step_form.h"

namespace caldera {
namespace {

void check_extents(const ConvolutionNode& what, const Shape& a, const Shape& b, const Shape& out) {
  using verify::Fault;
  if (what.work > ConvolutionWork::weight_gradient) throw Fault{"a convolution that does not exist"};
  for (const Shape* shape : {&a, &b, &out}) {
    if (shape->rank() != 4) throw Fault{"a convolution of what are no images"};
  }
  const Shape &x = what.x(a, b, out), &w = what.w(a, b, out), &y = what.y(a, b, out);
  if (what.groups < 1 || w[0] % what.groups != 0 || x[1] != w[1] * what.groups || y[1] != w[0] ||
      x[0] != y[0])
    throw Fault{"channels of a convolution that do not fit"};
  for (std::size_t d = 0; d < 2; ++d) {
    if (what.stride[d] < 1 || what.dilation[d] < 1 || what.padding[d] < 0)
      throw Fault{"a stride, dilation or padding of a convolution that does not exist"};
  }
}

}  // namespace

std::string ConvolutionStep::name() const {
  switch (what.work) {
    case ConvolutionWork::forward:
      return "convolution";
    case ConvolutionWork::input_gradient:
      return "convolution, input gradient";
    case ConvolutionWork::weight_gradient:
      break;
  }
  return "convolution, weight gradient";
}

void ConvolutionStep::check(verify::StepForm& form) const {
  using verify::Fault;
  form.check_rank(4);
  if (form.rank() != 4) throw Fault{"not the dimensions of an image"};
  const StepHeader& step = form.step();
  if (step.dtype != DType::f32 && step.dtype != DType::f64)
    throw Fault{"a convolution of another type than float32 and float64"};
  check_extents(what, a, b, step.dims);
  for (const Shape& extents : {a, b}) {
    const std::size_t k = form.count();
    verify::OperandForm& operand = form.add(verify::OperandRole::read, step.dtype, form.all(), form.all());
    operand.extents = extents;
    if (k >= step.operands.size()) continue;
    const Dims &strides = step.operands[k].strides, dense = extents.strides();
    for (int d = 0; d < 4 && strides.rank() == 4; ++d) {
      if (extents[d] > 1 && strides[d] != dense[d])
        throw Fault{"an operand of a convolution that is not dense"};
    }
  }
  const std::size_t out = form.count();
  form.write(step.dtype, form.all());
  if (out >= step.operands.size()) return;
  const Dims &strides = step.operands[out].strides, dense = step.dims.strides();
  for (int d = 0; d < 4 && strides.rank() == 4; ++d) {
    if (step.dims[d] > 1 && strides[d] != dense[d])
      throw Fault{"a result of a convolution that is not dense"};
  }
}

}  // namespace caldera
