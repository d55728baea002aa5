#include "ops/core/views.h"

#include <fmt/core.h>

#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "ops/core/checked_shape.h"
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

const OpDef kReshape{.name = "reshape", .kind = OpClass::reshape, .vjp = reshape_vjp, .jvp = ops::linear_jvp};
const OpDef kPermute{
    .name = "permute_dims", .kind = OpClass::permute, .vjp = permute_vjp, .jvp = ops::linear_jvp};

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
  if (unknown < 0 && wanted == x.shape()) return x;
  ops::check_extents("reshape", wanted, x.dtype());
  const std::int64_t known = wanted.numel();
  if (unknown >= 0 && known > 0) wanted[unknown] = x.numel() / known;
  if (wanted.numel() != x.numel() || (unknown >= 0 && known == 0)) {
    throw ShapeError(fmt::format("reshape: {} elements of shape {} do not fit {}", x.numel(),
                                 x.shape().to_string(), shape.to_string()));
  }
  if (wanted == x.shape()) return x;
  return ops::make_checked(kReshape, wanted, x.dtype(), x);
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

LazyTensor swapaxes(const LazyTensor& x, AxisIndex a, AxisIndex b) {
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

LazyTensor expand_dims(const LazyTensor& x, AxisIndex axis) {
  const int rank = x.rank() + 1;
  if (axis < -rank || axis >= rank) {
    throw ShapeError(
        fmt::format("expand_dims: axis {} is out of range for shape {}", axis, x.shape().to_string()));
  }
  if (rank > kMaxRank)
    throw ShapeError(
        fmt::format("expand_dims: {} has {} axes, the most there are", x.shape().to_string(), kMaxRank));
  Shape out = x.shape();
  out.insert(axis < 0 ? axis + rank : static_cast<int>(axis), 1);
  return reshape(x, out);
}

}  // namespace caldera
