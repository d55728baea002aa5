#include "ops/shape/padding.h"

#include <fmt/core.h>

#include <limits>
#include <optional>

#include "ops/core/broadcast.h"
#include "ops/core/slicing.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

using Margins = std::vector<std::int64_t>;

/// x between margins, one axis after the other. `widest(extent)` is the largest margin that there may be, and
/// part(y, axis, low, high) the one of the two margins that is not 0.
template <class Widest, class Part>
LazyTensor continued(const char* op, const LazyTensor& x, const Margins& low, const Margins& high,
                     Widest widest, Part part) {
  const auto rank = static_cast<std::size_t>(x.rank());
  if (low.size() != rank || high.size() != rank)
    throw ShapeError(fmt::format("{}: shape {} needs {} margins on each side, got {} and {}", op,
                                 x.shape().to_string(), rank, low.size(), high.size()));
  LazyTensor y = x;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t before = low[static_cast<std::size_t>(axis)],
                       behind = high[static_cast<std::size_t>(axis)], limit = widest(x.shape(axis));
    for (const std::int64_t margin : {before, behind}) {
      if (margin > limit)
        throw ShapeError(fmt::format("{}: margin {} of axis {} of shape {} is more than {}", op, margin, axis,
                                     x.shape().to_string(), limit));
    }
    std::vector<LazyTensor> parts;
    if (before > 0) parts.push_back(part(y, axis, before, 0));
    parts.push_back(y);
    if (behind > 0) parts.push_back(part(y, axis, 0, behind));
    y = concatenate(parts, axis);
    const std::int64_t extent = y.shape(axis),
                       first = std::max<std::int64_t>(-std::max(before, -extent - 1), 0),
                       stop = extent + std::min<std::int64_t>(std::max(behind, -extent - 1), 0);
    if (stop < first)
      throw ShapeError(
          fmt::format("{}: margins {} and {} take more than the {} elements along axis {} of shape {}", op,
                      before, behind, extent, axis, x.shape().to_string()));
    if (before < 0 || behind < 0) y = slice(y, axis, first, stop);
  }
  return y;
}

}  // namespace

LazyTensor pad_reflect(const LazyTensor& x, const Margins& low, const Margins& high) {
  const auto widest = [](std::int64_t extent) { return extent > 0 ? extent - 1 : 0; };
  return continued("pad_reflect", x, low, high, widest,
                   [](const LazyTensor& y, int axis, std::int64_t before, std::int64_t behind) {
                     if (before > 0) return slice(y, axis, before, 0, -1);
                     const std::int64_t first = y.shape(axis) - 2, stop = first - behind;
                     // -1 would be the last element, not the place before the first.
                     return slice(y, axis, first, stop < 0 ? std::nullopt : std::optional(stop), -1);
                   });
}

LazyTensor pad_replicate(const LazyTensor& x, const Margins& low, const Margins& high) {
  const auto widest = [](std::int64_t extent) {
    return extent > 0 ? std::numeric_limits<std::int32_t>::max() : 0;
  };
  return continued("pad_replicate", x, low, high, widest,
                   [](const LazyTensor& y, int axis, std::int64_t before, std::int64_t behind) {
                     const std::int64_t last = y.shape(axis) - 1;
                     Shape shape = y.shape();
                     shape[axis] = before + behind;
                     const LazyTensor edge =
                         before > 0 ? slice(y, axis, 0, 1) : slice(y, axis, last, last + 1);
                     return broadcast_to(edge, shape);
                   });
}

LazyTensor pad_circular(const LazyTensor& x, const Margins& low, const Margins& high) {
  const auto widest = [](std::int64_t extent) { return extent; };
  return continued("pad_circular", x, low, high, widest,
                   [](const LazyTensor& y, int axis, std::int64_t before, std::int64_t behind) {
                     const std::int64_t extent = y.shape(axis);
                     return before > 0 ? slice(y, axis, extent - before, extent) : slice(y, axis, 0, behind);
                   });
}

LazyTensor pad(const LazyTensor& x, const Margins& low, const Margins& high, PadMode mode, FillValue value) {
  switch (mode) {
    case PadMode::reflect:
      return pad_reflect(x, low, high);
    case PadMode::replicate:
      return pad_replicate(x, low, high);
    case PadMode::circular:
      return pad_circular(x, low, high);
    case PadMode::constant:
      break;
  }
  return pad(x, low, high, value);
}

}  // namespace caldera
