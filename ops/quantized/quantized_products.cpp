#include "ops/quantized/quantized_products.h"

#include <fmt/core.h>

#include <vector>

#include "engine/graph/quantized_node.h"
#include "ops/core/cast.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

/// Nothing is known of `q`'s parts but what makes no derivative.
[[noreturn]] void refuse_parts(std::string_view op) {
  throw GradientError(
      fmt::format("{}: quantised weights are frozen; differentiate with respect to what is "
                  "multiplied with them, or to an adapter beside them",
                  op));
}

/// All inputs but x, which is the first of products.
void refuse_others(std::string_view op, std::span<const bool> needed, std::size_t first) {
  for (std::size_t i = first; i < needed.size(); ++i)
    if (needed[i]) refuse_parts(op);
}

extern const OpDef kProduct;

LazyTensor product_node(const QuantizedNode& node, const LazyTensor& x, std::span<const LazyTensor> others) {
  std::vector<LazyTensor> inputs{x};
  inputs.insert(inputs.end(), others.begin(), others.end());
  const std::int64_t across = node.work == QuantizedWork::product ? node.rows : node.columns;
  return ops::make(kProduct, Shape{x.shape(0), across}, DType::f32, inputs, node.attributes());
}

/// The product with the same matrices along their other axis.
void product_vjp(VjpContext& c) {
  refuse_others("quantized_matmul", c.needed, 1);
  if (!c.needed[0]) return;
  QuantizedNode node = QuantizedNode::of(c.output.node().attributes().values());
  node.work =
      node.work == QuantizedWork::product ? QuantizedWork::transposed_product : QuantizedWork::product;
  node.activations = Activations::exact;
  c.grads[0] = product_node(node, c.cotangent, c.inputs.subspan(1));
}

void refuse_tangents(std::string_view op, std::span<const LazyTensor> tangents, std::size_t first) {
  for (std::size_t i = first; i < tangents.size(); ++i)
    if (tangents[i].defined()) refuse_parts(op);
}

void product_jvp(JvpContext& c) {
  refuse_tangents("quantized_matmul", c.tangents, 1);
  ops::linear_jvp(c);
}

void frozen_vjp(VjpContext& c) { refuse_others(c.output.node().op().name, c.needed, 0); }
void frozen_jvp(JvpContext& c) { refuse_tangents(c.output.node().op().name, c.tangents, 0); }

const OpDef kProduct{
    .name = "quantized_matmul", .kind = OpClass::quantized, .vjp = product_vjp, .jvp = product_jvp};
const OpDef kDequantize{
    .name = "dequantize", .kind = OpClass::quantized, .vjp = frozen_vjp, .jvp = frozen_jvp};
const OpDef kTakeRows{
    .name = "quantized_embedding", .kind = OpClass::quantized, .vjp = frozen_vjp, .jvp = frozen_jvp};

QuantizedNode node_of(QuantizedWork work, const QuantizedTensor& q) {
  return {
      .work = work, .layout = q.layout, .matrices = q.matrices(), .rows = q.rows(), .columns = q.columns()};
}

void check_float(std::string_view op, DType dtype) {
  if (dtype != DType::f32 && !is_half(dtype))
    throw DTypeError(fmt::format("{}: {} is neither float32 nor float16 nor bfloat16", op, name(dtype)));
}

void check_defined(std::string_view op, const QuantizedTensor& q) {
  if (!q.defined()) throw ValueError(fmt::format("{}: the quantised matrix has no parts", op));
}

LazyTensor multiplied(std::string_view op, const LazyTensor& x, const QuantizedTensor& q,
                      const LazyTensor* which, bool transpose) {
  check_defined(op, q);
  check_float(op, x.dtype());
  const std::int64_t inner = transpose ? q.columns() : q.rows();
  if (x.rank() == 0 || x.shape(-1) != inner)
    throw ShapeError(fmt::format("{}: x {} times the {}matrix {}: the inner extents differ", op,
                                 x.shape().to_string(), transpose ? "transposed " : "", q.shape.to_string()));
  QuantizedNode node = node_of(transpose ? QuantizedWork::product : QuantizedWork::transposed_product, q);
  if (transpose && has_integer_codes(q.layout.format) && q.device().kind == DeviceKind::cpu)
    node.activations = q.activations;
  std::int64_t count = 1;
  for (int d = 0; d < x.rank() - 1; ++d) count *= x.shape()[d];
  std::vector<LazyTensor> others;
  if (which != nullptr) {
    Shape leading;
    for (int d = 0; d < x.rank() - 1; ++d) leading.push_back(x.shape()[d]);
    if (which->shape() != leading)
      throw ShapeError(fmt::format("{}: x {} needs the number of a matrix for each of its rows, got {}", op,
                                   x.shape().to_string(), which->shape().to_string()));
    node.is_indexed = true;
    const LazyTensor narrow = ops::narrow_indices(op, *which, q.matrices(), q.device());
    others.push_back(reshape(narrow, Shape{count}));
  }
  others.insert(others.end(), q.parts.begin(), q.parts.end());
  const LazyTensor rows = astype(reshape(x, Shape{count, inner}), DType::f32);
  Shape out = x.shape();
  out[out.rank() - 1] = transpose ? q.rows() : q.columns();
  return astype(reshape(product_node(node, rows, others), out), x.dtype());
}

}  // namespace

LazyTensor dequantize(const QuantizedTensor& q, DType dtype) {
  check_defined("dequantize", q);
  check_float("dequantize", dtype);
  const Shape all{q.matrices(), q.rows(), q.columns()};
  const QuantizedNode node = node_of(QuantizedWork::dequantize, q);
  return astype(reshape(ops::make(kDequantize, all, DType::f32, q.parts, node.attributes()), q.shape), dtype);
}

LazyTensor quantized_matmul(const LazyTensor& x, const QuantizedTensor& q, bool transpose) {
  if (q.matrices() != 1)
    throw ShapeError(
        fmt::format("quantized_matmul: {} are several matrices; quantized_matmul_by takes one "
                    "of them for each row of x",
                    q.shape.to_string()));
  return multiplied("quantized_matmul", x, q, nullptr, transpose);
}

LazyTensor quantized_matmul_by(const LazyTensor& x, const QuantizedTensor& q, const LazyTensor& which,
                               bool transpose) {
  return multiplied("quantized_matmul_by", x, q, &which, transpose);
}

LazyTensor quantized_embedding(const QuantizedTensor& q, const LazyTensor& indices, DType dtype) {
  check_defined("quantized_embedding", q);
  check_float("quantized_embedding", dtype);
  if (q.matrices() != 1)
    throw ShapeError(
        fmt::format("quantized_embedding: {} is no table (count, features)", q.shape.to_string()));
  const LazyTensor narrow = ops::narrow_indices("quantized_embedding", indices, q.rows(), q.device());
  std::vector<LazyTensor> inputs{reshape(narrow, Shape{narrow.shape().numel()})};
  inputs.insert(inputs.end(), q.parts.begin(), q.parts.end());
  const QuantizedNode node = node_of(QuantizedWork::take_rows, q);
  const LazyTensor rows =
      ops::make(kTakeRows, Shape{narrow.shape().numel(), q.columns()}, DType::f32, inputs, node.attributes());
  Shape out = narrow.shape();
  out.push_back(q.columns());
  return astype(reshape(rows, out), dtype);
}

}  // namespace caldera
