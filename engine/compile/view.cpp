#include "engine/compile/view.h"

namespace caldera {

View dense_view(const Shape& shape) { return {0, shape.strides()}; }

bool is_dense(const View& view, const Shape& shape) {
  if (view.offset != 0) return false;
  const Dims dense = shape.strides();
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != 1 && view.strides[i] != dense[i]) return false;
  }
  return true;
}

View permute_view(const View& view, std::span<const std::int64_t> permutation) {
  View out{view.offset, view.strides};
  for (int i = 0; i < out.strides.rank(); ++i) {
    out.strides[i] = view.strides[static_cast<int>(permutation[static_cast<std::size_t>(i)])];
  }
  return out;
}

View slice_view(const View& view, std::span<const std::int64_t> attributes) {
  View out = view;
  const auto rank = static_cast<std::size_t>(view.strides.rank());
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<int>(i);
    out.offset += attributes[i] * view.strides[axis];
    out.strides[axis] = view.strides[axis] * attributes[rank + i];
  }
  return out;
}

View broadcast_view(const View& view, const Shape& from, const Shape& to) {
  View out = view;
  for (int i = 0; i < to.rank(); ++i) {
    if (from[i] != to[i]) out.strides[i] = 0;
  }
  return out;
}

std::optional<View> reshape_view(const View& view, const Shape& from, const Shape& to) {
  if (from.numel() == 0) return dense_view(to);
  View out{view.offset, Dims::filled(to.rank(), 0)};
  // Walk both shapes from the outside in. Each group of extents of `from` with the same product as a group of
  // `to` must be one run of equal spacing; then the group of `to` splits that run.
  int i = 0;
  int j = 0;
  while (true) {
    while (i < from.rank() && from[i] == 1) ++i;
    while (j < to.rank() && to[j] == 1) ++j;
    if (i == from.rank() || j == to.rank()) break;
    const int first = j;
    std::int64_t left = from[i];
    std::int64_t right = to[j];
    std::int64_t spacing = view.strides[i];
    while (left != right) {
      if (left < right) {
        ++i;
        while (from[i] == 1) ++i;
        if (spacing != view.strides[i] * from[i]) return std::nullopt;
        spacing = view.strides[i];
        left *= from[i];
      } else {
        right *= to[++j];
      }
    }
    for (int k = j; k >= first; --k) {
      out.strides[k] = spacing;
      spacing *= to[k];
    }
    ++i;
    ++j;
  }
  return out;
}

}  // namespace caldera
