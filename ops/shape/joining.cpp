#include "ops/shape/joining.h"

#include <fmt/core.h>

#include <array>

#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

/// Parts without a tangent of their own have zeros.
void concatenate_jvp(JvpContext& c) {
  std::vector<LazyTensor> parts(c.tangents.begin(), c.tangents.end());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].defined())
      parts[i] = is_floating(c.inputs[i].dtype()) ? zeros_like(c.inputs[i]) : c.inputs[i];
  }
  const Node& node = c.output.node();
  c.tangent = ops::make(node.op(), node.shape(), node.dtype(), parts, node.attributes().values());
}

void concatenate_vjp(VjpContext& c) {
  const auto axis = static_cast<int>(c.output.node().attributes()[0]);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const std::int64_t extent = c.inputs[i].shape()[axis];
    if (c.needed[i]) c.grads[i] = ops::window(c.cotangent, axis, start, extent, 1);
    start += extent;
  }
}

const OpDef kConcatenate{
    .name = "concatenate", .kind = OpClass::concatenate, .vjp = concatenate_vjp, .jvp = concatenate_jvp};

LazyTensor joined_along(const char* op, const std::vector<LazyTensor>& parts, int axis) {
  if (parts.empty()) throw ShapeError(fmt::format("{}: no tensors were given", op));
  const Shape& first = parts[0].shape();
  const int at = first.normalize_axis(axis, op);
  DType dtype = parts[0].dtype();
  Shape out = first;
  out[at] = 0;
  for (const LazyTensor& part : parts) {
    Shape aligned = part.shape();
    if (aligned.rank() == first.rank()) aligned[at] = first[at];
    if (aligned != first) {
      throw ShapeError(fmt::format("{}: shapes {} and {} differ elsewhere than along axis {}", op,
                                   first.to_string(), part.shape().to_string(), axis));
    }
    if (__builtin_add_overflow(out[at], part.shape()[at], &out[at])) {
      throw ShapeError(fmt::format("{}: axis {} of shape {} and others has more elements than can be counted",
                                   op, axis, first.to_string()));
    }
    dtype = promote(dtype, part.dtype());
  }
  if (parts.size() == 1) return parts[0];
  std::vector<LazyTensor> operands;
  operands.reserve(parts.size());
  for (const LazyTensor& part : parts) operands.push_back(astype(part, dtype));
  const std::array<std::int64_t, 1> attributes{at};
  return ops::make(kConcatenate, out, dtype, operands, attributes);
}

}  // namespace

LazyTensor concatenate(const std::vector<LazyTensor>& parts, AxisIndex axis) {
  return joined_along("concatenate", parts, axis);
}

LazyTensor concat(const std::vector<LazyTensor>& parts, std::optional<AxisIndex> axis) {
  if (axis) return joined_along("concat", parts, *axis);
  std::vector<LazyTensor> flat;
  flat.reserve(parts.size());
  for (const LazyTensor& part : ops::as_tensors("concat", parts))
    flat.push_back(reshape(part, Shape{part.numel()}));
  return joined_along("concat", flat, 0);
}

LazyTensor stack(const std::vector<LazyTensor>& parts, AxisIndex axis) {
  if (parts.empty()) throw ShapeError("stack: no tensors were given");
  const Shape& shape = parts[0].shape();
  if (axis < -shape.rank() - 1 || axis > shape.rank())
    throw ShapeError(fmt::format("stack: axis {} is no place for a new axis in {}", axis, shape.to_string()));
  std::vector<LazyTensor> expanded;
  expanded.reserve(parts.size());
  for (const LazyTensor& part : ops::as_tensors("stack", parts)) {
    if (part.shape() != shape) {
      throw ShapeError(
          fmt::format("stack: shapes {} and {} differ", shape.to_string(), part.shape().to_string()));
    }
    expanded.push_back(expand_dims(part, axis));
  }
  return concatenate(expanded, axis);
}

}  // namespace caldera
