// Views: reshape, permutation, slices, broadcasting. They cost nothing where the consumer can read by
// strides.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "ops/core/node_builder.h"

namespace caldera {
namespace {

void reshape_vjp(VjpContext& c) { c.grads[0] = reshape(c.cotangent, c.inputs[0].shape()); }

void permute_vjp(VjpContext& c) {
  const auto permutation = c.output.node().attributes().values();
  std::vector<int> inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    inverse[static_cast<std::size_t>(permutation[i])] = static_cast<int>(i);
  }
  c.grads[0] = permute_dims(c.cotangent, inverse);
}

void broadcast_vjp(VjpContext& c) {
  std::vector<int> stretched;
  const Shape& from = c.inputs[0].shape();
  for (int i = 0; i < from.rank(); ++i) {
    if (from[i] != c.output.shape()[i]) stretched.push_back(i);
  }
  c.grads[0] = sum(c.cotangent, stretched, true);
}

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

const OpDef kReshape{.name = "reshape", .kind = OpClass::reshape, .vjp = reshape_vjp, .jvp = ops::linear_jvp};
const OpDef kPermute{
    .name = "permute_dims", .kind = OpClass::permute, .vjp = permute_vjp, .jvp = ops::linear_jvp};
const OpDef kSlice{.name = "slice", .kind = OpClass::slice, .vjp = slice_vjp, .jvp = ops::linear_jvp};
const OpDef kBroadcast{
    .name = "broadcast_to", .kind = OpClass::broadcast, .vjp = broadcast_vjp, .jvp = ops::linear_jvp};

}  // namespace

LazyTensor reshape(const LazyTensor& x, const Shape& shape) {
  Shape wanted = shape;
  int unknown = -1;
  for (int i = 0; i < wanted.rank(); ++i) {
    if (wanted[i] == -1 && unknown < 0) unknown = i;
    if (wanted[i] < -1 || (wanted[i] == -1 && unknown != i)) {
      throw ShapeError(
          fmt::format("reshape: {} is no shape for {}", shape.to_string(), x.shape().to_string()));
    }
  }
  if (unknown >= 0) wanted[unknown] = 1;
  ops::check_extents("reshape", wanted, x.dtype());
  const std::int64_t known = wanted.numel();
  if (unknown >= 0 && known > 0) wanted[unknown] = x.numel() / known;
  if (wanted.numel() != x.numel() || (unknown >= 0 && known == 0)) {
    throw ShapeError(fmt::format("reshape: {} elements of shape {} do not fit {}", x.numel(),
                                 x.shape().to_string(), shape.to_string()));
  }
  if (wanted == x.shape()) return x;
  return ops::make(kReshape, wanted, x.dtype(), {x});
}

namespace {

LazyTensor permute(const LazyTensor& x, std::span<const int> axes) {
  std::array<std::int64_t, kMaxRank> permutation{};
  std::array<bool, kMaxRank> used{};
  bool sorted = true;
  bool fits = static_cast<int>(axes.size()) == x.rank();
  Shape out = x.shape();
  for (std::size_t i = 0; fits && i < axes.size(); ++i) {
    const int axis = x.shape().normalize_axis(axes[i], "permute_dims");
    fits = !used[static_cast<std::size_t>(axis)];
    used[static_cast<std::size_t>(axis)] = true;
    permutation[i] = axis;
    out[static_cast<int>(i)] = x.shape()[axis];
    sorted = sorted && axis == static_cast<int>(i);
  }
  if (!fits) {
    throw ShapeError(fmt::format("permute_dims: the {} axes given are no permutation of the axes of shape {}",
                                 axes.size(), x.shape().to_string()));
  }
  if (sorted) return x;
  return ops::make(kPermute, out, x.dtype(), {x},
                   std::span<const std::int64_t>(permutation.data(), axes.size()));
}

}  // namespace

LazyTensor permute_dims(const LazyTensor& x, const std::vector<int>& axes) { return permute(x, axes); }

LazyTensor swapaxes(const LazyTensor& x, int a, int b) {
  std::array<int, kMaxRank> axes{};
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<std::size_t>(x.shape().normalize_axis(a, "swapaxes"))],
            axes[static_cast<std::size_t>(x.shape().normalize_axis(b, "swapaxes"))]);
  return permute(x, {axes.data(), static_cast<std::size_t>(x.rank())});
}

LazyTensor transpose(const LazyTensor& x) {
  if (x.rank() < 2) {
    throw ShapeError(
        fmt::format("transpose: needs at least 2 dimensions, got shape {}", x.shape().to_string()));
  }
  return swapaxes(x, -2, -1);
}

LazyTensor squeeze(const LazyTensor& x, const Axes& axes) {
  Shape out = x.shape();
  const Dims which = ops::resolve_axes(axes, x.shape(), "squeeze");
  for (int i = which.rank(); i-- > 0;) {  // from the last on: those before keep their places
    const auto axis = static_cast<int>(which[i]);
    if (out[axis] == 1)
      out.erase(axis);
    else if (!axes.are_all())
      throw ShapeError(fmt::format("squeeze: axis {} of shape {} is not 1", axis, x.shape().to_string()));
  }
  return reshape(x, out);
}

LazyTensor expand_dims(const LazyTensor& x, int axis) {
  const int rank = x.rank() + 1;
  if (axis < -rank || axis >= rank) {
    throw ShapeError(
        fmt::format("expand_dims: axis {} is out of range for shape {}", axis, x.shape().to_string()));
  }
  if (rank > kMaxRank)
    throw ShapeError(
        fmt::format("expand_dims: {} has {} axes, the most there are", x.shape().to_string(), kMaxRank));
  Shape out = x.shape();
  out.insert(axis < 0 ? axis + rank : axis, 1);
  return reshape(x, out);
}

LazyTensor broadcast_to(const LazyTensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (x.rank() > shape.rank() || broadcast_shapes(x.shape(), shape, "broadcast_to") != shape) {
    throw ShapeError(fmt::format("broadcast_to: shape {} does not broadcast to {}", x.shape().to_string(),
                                 shape.to_string()));
  }
  Shape aligned = x.shape();
  while (aligned.rank() < shape.rank()) aligned.insert(0, 1);
  LazyTensor y = reshape(x, aligned);
  if (aligned == shape) return y;
  return ops::make(kBroadcast, shape, x.dtype(), {y});
}

LazyTensor slice(const LazyTensor& x, int axis, std::optional<std::int64_t> start,
                 std::optional<std::int64_t> stop, std::int64_t given_step) {
  const int at = x.shape().normalize_axis(axis, "slice");
  const std::int64_t extent = x.shape()[at];
  if (given_step == 0)
    throw ShapeError(fmt::format("slice: step 0 along axis {} of shape {}", axis, x.shape().to_string()));
  // Any step of the extent or more reaches the first element alone; sums with larger ones could overflow.
  const std::int64_t longest = std::max<std::int64_t>(extent, 1);
  const std::int64_t step = std::clamp(given_step, -longest, longest);
  const auto clamp = [&](std::int64_t bound) {
    if (bound < 0) bound += extent;
    return step > 0 ? std::clamp<std::int64_t>(bound, 0, extent)
                    : std::clamp<std::int64_t>(bound, -1, extent - 1);
  };
  const std::int64_t first = start ? clamp(*start) : (step > 0 ? 0 : extent - 1);
  const std::int64_t last = stop ? clamp(*stop) : (step > 0 ? extent : -1);
  const std::int64_t count = step > 0 ? std::max<std::int64_t>(0, (last - first + step - 1) / step)
                                      : std::max<std::int64_t>(0, (first - last - step - 1) / -step);
  if (count == extent && step == 1) return x;

  const auto rank = static_cast<std::size_t>(x.rank());
  std::array<std::int64_t, 2 * kMaxRank> attributes{};
  std::fill_n(attributes.begin() + static_cast<std::ptrdiff_t>(rank), rank, 1);
  attributes[static_cast<std::size_t>(at)] = count == 0 ? 0 : first;
  attributes[rank + static_cast<std::size_t>(at)] = step;
  Shape out = x.shape();
  out[at] = count;
  return ops::make(kSlice, out, x.dtype(), {x}, std::span<const std::int64_t>(attributes.data(), 2 * rank));
}

}  // namespace caldera
