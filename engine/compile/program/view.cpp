#include "engine/compile/program/view.h"

#include <algorithm>

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

std::optional<View> compose_views(const View& inner, const Shape& middle, const View& outer,
                                  const Shape& space) {
  if (middle.numel() == 0 || space.numel() == 0) return View{0, Dims::filled(space.rank(), 0)};
  const Dims dense = middle.strides();
  // The coordinates in `middle` of the first element, and how far each of them goes.
  Dims at = Dims::filled(middle.rank(), 0);
  Dims low = at, high = at;
  std::int64_t rest = outer.offset;
  if (rest < 0) return std::nullopt;
  for (int j = 0; j < middle.rank(); ++j) {
    if (middle[j] <= 1) continue;
    at[j] = rest / dense[j];
    rest -= at[j] * dense[j];
  }
  if (rest != 0) return std::nullopt;
  View out{inner.offset, Dims::filled(space.rank(), 0)};
  for (int j = 0; j < middle.rank(); ++j) {
    low[j] = high[j] = at[j];
    out.offset += at[j] * inner.strides[j];
  }
  for (int d = 0; d < space.rank(); ++d) {
    const std::int64_t stride = outer.strides[d];
    if (stride == 0 || space[d] <= 1) continue;
    bool found = false;
    for (int j = 0; j < middle.rank() && !found; ++j) {
      if (middle[j] <= 1 || stride % dense[j] != 0) continue;
      const std::int64_t reach = stride / dense[j] * (space[d] - 1);
      const std::int64_t new_low = low[j] + std::min<std::int64_t>(reach, 0);
      const std::int64_t new_high = high[j] + std::max<std::int64_t>(reach, 0);
      if (new_low < 0 || new_high >= middle[j]) continue;
      low[j] = new_low;
      high[j] = new_high;
      out.strides[d] = stride / dense[j] * inner.strides[j];
      found = true;
    }
    if (!found) return std::nullopt;
  }
  return out;
}

}  // namespace caldera
