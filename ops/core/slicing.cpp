#include "ops/core/slicing.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"

namespace caldera {
namespace {

void slice_vjp(VjpContext& c) {
  const auto attributes = c.output.node().attributes().values();
  const Shape& from = c.inputs[0].shape();
  const auto rank = static_cast<std::size_t>(from.rank());
  LazyTensor g = c.cotangent;
  std::vector<std::int64_t> low(rank), high(rank), interior(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<int>(i);
    std::int64_t start = attributes[i];
    std::int64_t step = attributes[rank + i];
    const std::int64_t count = g.shape()[axis];
    if (step < 0) {  // reading backwards: turn the cotangent round and place it forwards
      g = slice(g, axis, std::nullopt, std::nullopt, -1);
      start += (count - 1) * step;
      step = -step;
    }
    const std::int64_t covered = count == 0 ? 0 : (count - 1) * step + 1;
    low[i] = count == 0 ? 0 : start;
    interior[i] = step - 1;
    high[i] = from[axis] - low[i] - covered;
  }
  c.grads[0] = ops::pad_with_zeros(g, low, high, interior);
}

LazyTensor total(const LazyTensor& x) { return ops::sum_along(x, {}, false); }

void pad_vjp(VjpContext& c) {
  const auto attributes = c.output.node().attributes().values();
  const Shape& from = c.inputs[0].shape();
  const auto rank = static_cast<std::size_t>(from.rank());
  LazyTensor inner = c.cotangent;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<int>(i);
    inner = ops::window(inner, axis, attributes[i], from[axis], attributes[2 * rank + i] + 1);
  }
  if (c.needed[0]) c.grads[0] = inner;
  if (c.inputs.size() > 1 && c.needed[1]) c.grads[1] = subtract(total(c.cotangent), total(inner));
}

void pad_jvp(JvpContext& c) {
  const Node& node = c.output.node();
  // The fill is a number; padded with the tangent that it may have all the same, or with zeros.
  std::vector<LazyTensor> inputs{c.tangents[0].defined() ? c.tangents[0] : zeros_like(c.inputs[0])};
  if (c.tangents.size() > 1 && c.tangents[1].defined()) inputs.push_back(c.tangents[1]);
  c.tangent = ops::make(node.op(), node.shape(), node.dtype(), inputs, node.attributes().values());
}

const OpDef kSlice{.name = "slice", .kind = OpClass::slice, .vjp = slice_vjp, .jvp = ops::linear_jvp};
const OpDef kPad{.name = "pad", .kind = OpClass::pad, .vjp = pad_vjp, .jvp = pad_jvp};

}  // namespace

ops::SliceRange ops::range_of(std::string_view op, const Slice& slice, int axis, std::int64_t extent) {
  if (slice.step == 0)
    throw ValueError(
        fmt::format("{}: slice step cannot be zero, along axis {} with size {}", op, axis, extent));
  // Any step of the extent or more reaches the first element alone; sums with larger ones could overflow.
  const std::int64_t longest = std::max<std::int64_t>(extent, 1);
  const std::int64_t step = std::clamp(slice.step, -longest, longest);
  const auto clamp = [&](std::int64_t bound) {
    if (bound < 0) bound += extent;
    return step > 0 ? std::clamp<std::int64_t>(bound, 0, extent)
                    : std::clamp<std::int64_t>(bound, -1, extent - 1);
  };
  const std::int64_t first = slice.start ? clamp(*slice.start) : (step > 0 ? 0 : extent - 1);
  const std::int64_t last = slice.stop ? clamp(*slice.stop) : (step > 0 ? extent : -1);
  const std::int64_t distance = step > 0 ? last - first : first - last;
  const std::int64_t stride = step > 0 ? step : -step;
  const std::int64_t count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  return {count == 0 ? 0 : first, count, step};
}

LazyTensor ops::window(const LazyTensor& x, int axis, std::int64_t start, std::int64_t count,
                       std::int64_t step) {
  return slice(x, axis, start, start + (count == 0 ? 0 : (count - 1) * step + 1), step);
}

LazyTensor slice(const LazyTensor& x, AxisIndex axis, std::optional<std::int64_t> start,
                 std::optional<std::int64_t> stop, std::int64_t step) {
  return ops::slice_as("slice", x, x.shape().normalize_axis(axis, "slice"), {start, stop, step});
}

LazyTensor ops::slice_as(std::string_view op, const LazyTensor& x, int axis, const Slice& part) {
  const std::int64_t extent = x.shape()[axis];
  const auto [first, count, step] = range_of(op, part, axis, extent);
  if (count == extent && step == 1) return x;

  const auto rank = static_cast<std::size_t>(x.rank());
  std::array<std::int64_t, 2 * kMaxRank> attributes{};
  std::fill_n(attributes.begin() + static_cast<std::ptrdiff_t>(rank), rank, 1);
  attributes[static_cast<std::size_t>(axis)] = first;
  attributes[rank + static_cast<std::size_t>(axis)] = step;
  Shape out = x.shape();
  out[axis] = count;
  return ops::make(kSlice, out, x.dtype(), {x}, std::span<const std::int64_t>(attributes.data(), 2 * rank));
}

namespace {

bool is_negative(std::int64_t margin) { return margin < 0; }

LazyTensor padded(const LazyTensor& x, const std::vector<std::int64_t>& low,
                  const std::vector<std::int64_t>& high, const FillValue* fill,
                  const std::vector<std::int64_t>& interior);

/// With negative margins, which take elements away: of what the others have made.
LazyTensor cropped(const LazyTensor& x, const std::vector<std::int64_t>& low,
                   const std::vector<std::int64_t>& high, const FillValue* fill,
                   const std::vector<std::int64_t>& interior) {
  const auto added = [](std::vector<std::int64_t> margins) {
    for (std::int64_t& margin : margins) margin = std::max<std::int64_t>(margin, 0);
    return margins;
  };
  LazyTensor y = padded(x, added(low), added(high), fill, interior);
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t before = std::min<std::int64_t>(low[static_cast<std::size_t>(axis)], 0),
                       behind = std::min<std::int64_t>(high[static_cast<std::size_t>(axis)], 0);
    const std::int64_t extent = y.shape(axis);
    if (before < -extent || behind < -extent || before + behind < -extent)
      throw ShapeError(
          fmt::format("pad: margins {} and {} take more than the {} elements along axis {} of shape {}",
                      low[static_cast<std::size_t>(axis)], high[static_cast<std::size_t>(axis)], extent, axis,
                      x.shape().to_string()));
    if (before < 0 || behind < 0) y = slice(y, axis, -before, extent + behind);
  }
  return y;
}

/// Without `fill`, zeros: the compiler may rely on them.
LazyTensor padded(const LazyTensor& x, const std::vector<std::int64_t>& low,
                  const std::vector<std::int64_t>& high, const FillValue* fill,
                  const std::vector<std::int64_t>& interior) {
  const auto rank = static_cast<std::size_t>(x.rank());
  if (low.size() != rank || high.size() != rank || (!interior.empty() && interior.size() != rank)) {
    throw ShapeError(fmt::format("pad: shape {} needs {} margins on each side, got {} and {}",
                                 x.shape().to_string(), rank, low.size(), high.size()));
  }
  if (std::ranges::any_of(low, is_negative) || std::ranges::any_of(high, is_negative))
    return cropped(x, low, high, fill, interior);
  std::array<std::int64_t, 3 * kMaxRank> attributes{};
  Shape out = x.shape();
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t between = interior.empty() ? 0 : interior[i];
    if (between < 0)
      throw ShapeError(fmt::format("pad: {} elements between neighbours of axis {} of shape {}", between, i,
                                   x.shape().to_string()));
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
  const LazyTensor value = ops::held_scalar("pad", *fill, x.dtype());
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

}  // namespace caldera
