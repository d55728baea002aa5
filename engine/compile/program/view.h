// View: how a tensor's elements are found in a buffer, and how movement operations compose.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/tensor/shape.h"

namespace caldera {

/// element(coordinates) = buffer[offset + sum(coordinates * strides)]. The extents stand with the tensor.
struct View {
  std::int64_t offset = 0;
  Dims strides;
  friend bool operator==(const View&, const View&) = default;
};

/// Row-major over all of a buffer.
View dense_view(const Shape& shape);
/// Whether the elements of `shape` are one after the other in row-major order from offset 0. Extents of 1 do
/// not matter.
bool is_dense(const View& view, const Shape& shape);

View permute_view(const View& view, std::span<const std::int64_t> permutation);
/// `attributes` as in OpClass::slice.
View slice_view(const View& view, std::span<const std::int64_t> attributes);
View broadcast_view(const View& view, const Shape& from, const Shape& to);
/// Nothing when the elements of `to` are no strided view of those of `from`.
std::optional<View> reshape_view(const View& view, const Shape& from, const Shape& to);
/// `outer` with extents `space` picks elements, by their row-major number, of a tensor with extents `middle`,
/// which `inner` finds in turn: both in one step. Nothing when no strides do that.
std::optional<View> compose_views(const View& inner, const Shape& middle, const View& outer,
                                  const Shape& space);

}  // namespace caldera
