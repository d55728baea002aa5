// Padding and concatenation: the operations that write parts of a larger result.
#include <fmt/core.h>

#include <array>

#include "ops/core/node_builder.h"

namespace caldera {
namespace {

/// x[..., start:start + count*step:step, ...] along one axis, without Python's conventions.
LazyTensor window(const LazyTensor& x, int axis, std::int64_t start, std::int64_t count, std::int64_t step) {
  return slice(x, axis, start, start + (count == 0 ? 0 : (count - 1) * step + 1), step);
}

void pad_vjp(VjpContext& c) {
  const auto attributes = c.output.node().attributes().values();
  const Shape& from = c.inputs[0].shape();
  const auto rank = static_cast<std::size_t>(from.rank());
  LazyTensor inner = c.cotangent;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<int>(i);
    inner = window(inner, axis, attributes[i], from[axis], attributes[2 * rank + i] + 1);
  }
  if (c.needed[0]) c.grads[0] = inner;
  if (c.inputs.size() > 1 && c.needed[1]) c.grads[1] = sum(c.cotangent) - sum(inner);
}

void pad_jvp(JvpContext& c) {
  const Node& node = c.output.node();
  // The fill is a number; padded with the tangent that it may have all the same, or with zeros.
  std::vector<LazyTensor> inputs{c.tangents[0].defined() ? c.tangents[0] : zeros_like(c.inputs[0])};
  if (c.tangents.size() > 1 && c.tangents[1].defined()) inputs.push_back(c.tangents[1]);
  c.tangent = ops::make(node.op(), node.shape(), node.dtype(), inputs, node.attributes().values());
}

void concatenate_vjp(VjpContext& c) {
  const auto axis = static_cast<int>(c.output.node().attributes()[0]);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const std::int64_t extent = c.inputs[i].shape()[axis];
    if (c.needed[i]) c.grads[i] = window(c.cotangent, axis, start, extent, 1);
    start += extent;
  }
}

const OpDef kPad{.name = "pad", .kind = OpClass::pad, .vjp = pad_vjp, .jvp = pad_jvp};
const OpDef kConcatenate{
    .name = "concatenate", .kind = OpClass::concatenate, .vjp = concatenate_vjp, .jvp = ops::linear_jvp};

}  // namespace

namespace {

/// Without `fill`, zeros: the compiler may rely on them.
LazyTensor padded(const LazyTensor& x, const std::vector<std::int64_t>& low,
                  const std::vector<std::int64_t>& high, const FillValue* fill,
                  const std::vector<std::int64_t>& interior) {
  const auto rank = static_cast<std::size_t>(x.rank());
  if (low.size() != rank || high.size() != rank || (!interior.empty() && interior.size() != rank)) {
    throw ShapeError(fmt::format("pad: shape {} needs {} margins on each side, got {} and {}",
                                 x.shape().to_string(), rank, low.size(), high.size()));
  }
  std::array<std::int64_t, 3 * kMaxRank> attributes{};
  Shape out = x.shape();
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t between = interior.empty() ? 0 : interior[i];
    if (low[i] < 0 || high[i] < 0 || between < 0) {
      throw ShapeError(
          fmt::format("pad: margins must not be negative for shape {}; use slice to remove elements",
                      x.shape().to_string()));
    }
    attributes[i] = low[i];
    attributes[rank + i] = high[i];
    attributes[2 * rank + i] = between;
    const std::int64_t extent = x.shape()[static_cast<int>(i)];
    std::int64_t gaps = 0;
    std::int64_t total = extent;
    const bool overflow = (extent > 1 && __builtin_mul_overflow(extent - 1, between, &gaps)) ||
                          __builtin_add_overflow(total, gaps, &total) ||
                          __builtin_add_overflow(total, low[i], &total) ||
                          __builtin_add_overflow(total, high[i], &total);
    if (overflow) {
      throw ShapeError(
          fmt::format("pad: the margins of axis {} of shape {} give more elements than can be counted", i,
                      x.shape().to_string()));
    }
    out[static_cast<int>(i)] = total;
  }
  if (out == x.shape()) return x;
  const std::span<const std::int64_t> margins(attributes.data(), 3 * rank);
  if (fill == nullptr) return ops::make(kPad, out, x.dtype(), {x}, margins);
  const LazyTensor value = ops::as_held_operand("pad", ops::scalar(*fill, x.dtype()), x.dtype());
  return ops::make(kPad, out, x.dtype(), {x, value}, margins);
}

}  // namespace

LazyTensor pad(const LazyTensor& x, const std::vector<std::int64_t>& low,
               const std::vector<std::int64_t>& high, FillValue value,
               const std::vector<std::int64_t>& interior) {
  return padded(x, low, high, &value, interior);
}

LazyTensor ops::pad_with_zeros(const LazyTensor& x, const std::vector<std::int64_t>& low,
                               const std::vector<std::int64_t>& high,
                               const std::vector<std::int64_t>& interior) {
  return padded(x, low, high, nullptr, interior);
}

namespace {

LazyTensor joined(const char* op, const std::vector<LazyTensor>& parts, int axis) {
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

LazyTensor concatenate(const std::vector<LazyTensor>& parts, int axis) {
  return joined("concatenate", parts, axis);
}

LazyTensor concat(const std::vector<LazyTensor>& parts, std::optional<int> axis) {
  if (axis) return joined("concat", parts, *axis);
  std::vector<LazyTensor> flat;
  flat.reserve(parts.size());
  for (const LazyTensor& part : ops::as_tensors("concat", parts))
    flat.push_back(reshape(part, Shape{part.numel()}));
  return joined("concat", flat, 0);
}

LazyTensor stack(const std::vector<LazyTensor>& parts, int axis) {
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
