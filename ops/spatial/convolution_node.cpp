#include "ops/spatial/convolution_node.h"

#include "ops/core/node_builder.h"

namespace caldera::ops {
namespace {

void convolution_vjp(VjpContext& c);
void convolution_jvp(JvpContext& c);

const OpDef kConvolution{
    .name = "conv", .kind = OpClass::convolution, .vjp = convolution_vjp, .jvp = convolution_jvp};

/// The sum of products that all three share, differentiated by one of its factors.
LazyTensor derivative(const ConvolutionNode& node, ConvolutionWork work, const LazyTensor& x,
                      const LazyTensor& w, const LazyTensor& y, const Shape& shape) {
  ConvolutionNode other = node;
  other.work = work;
  switch (work) {
    case ConvolutionWork::forward:
      return convolution_node(other, x, w, shape);
    case ConvolutionWork::input_gradient:
      return convolution_node(other, y, w, shape);
    case ConvolutionWork::weight_gradient:
      break;
  }
  return convolution_node(other, x, y, shape);
}

void convolution_vjp(VjpContext& c) {
  const ConvolutionNode node = ConvolutionNode::of(c.output.node().attributes().values());
  const LazyTensor &a = c.inputs[0], &b = c.inputs[1];
  // The cotangent stands for the factor that the output is a derivative by.
  const LazyTensor x = node.x(a, b, c.cotangent), w = node.w(a, b, c.cotangent),
                   y = node.y(a, b, c.cotangent);
  using enum ConvolutionWork;
  const ConvolutionWork by_a = node.work == input_gradient ? forward : input_gradient,
                        by_b = node.work == weight_gradient ? forward : weight_gradient;
  if (c.needed[0]) c.grads[0] = derivative(node, by_a, x, w, y, a.shape());
  if (c.needed[1]) c.grads[1] = derivative(node, by_b, x, w, y, b.shape());
}

/// Linear in each operand.
void convolution_jvp(JvpContext& c) {
  const ConvolutionNode node = ConvolutionNode::of(c.output.node().attributes().values());
  const Shape& shape = c.output.shape();
  LazyTensor tangent;
  if (c.tangents[0].defined()) tangent = convolution_node(node, c.tangents[0], c.inputs[1], shape);
  if (c.tangents[1].defined()) {
    const LazyTensor other = convolution_node(node, c.inputs[0], c.tangents[1], shape);
    tangent = tangent.defined() ? tangent + other : other;
  }
  c.tangent = tangent;
}

}  // namespace

bool has_convolution_kernel(const LazyTensor& x, const LazyTensor& weight) {
  return x.device() == Device::cpu() && x.dtype() == weight.dtype() &&
         (x.dtype() == DType::f32 || x.dtype() == DType::f64) && !is_scalar_leaf(x) &&
         !is_scalar_leaf(weight);
}

LazyTensor convolution_node(const ConvolutionNode& node, const LazyTensor& a, const LazyTensor& b,
                            const Shape& shape) {
  const ConvolutionNode::Attributes attributes = node.attributes();
  return make(kConvolution, shape, a.dtype(), {a, b}, attributes);
}

}  // namespace caldera::ops
