#include "ops/shape/padding.h"

#include <fmt/core.h>

#include <limits>
#include <optional>

#include "ops/core/node_builder.h"
#include "ops/table/families.h"
#include "ops/table/samples.h"

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
      if (margin < 0)
        throw ShapeError(
            fmt::format("{}: margin {} of axis {} of shape {} is negative; use slice to remove elements", op,
                        margin, axis, x.shape().to_string()));
      if (margin > limit)
        throw ShapeError(fmt::format("{}: margin {} of axis {} of shape {} is more than {}", op, margin, axis,
                                     x.shape().to_string(), limit));
    }
    std::vector<LazyTensor> parts;
    if (before > 0) parts.push_back(part(y, axis, before, 0));
    parts.push_back(y);
    if (behind > 0) parts.push_back(part(y, axis, 0, behind));
    y = concatenate(parts, axis);
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

namespace ops {
namespace {

using Integers = Arguments::Integers;
using Results = std::vector<LazyTensor>;

Arguments margins(Integers low, Integers high) {
  return {{"low", std::move(low)}, {"high", std::move(high)}};
}

template <PadMode mode>
Results call_pad(Tensors x, const Arguments& a) {
  return {caldera::pad(x[0], a.integers("low"), a.integers("high"), mode)};
}

std::vector<Sample> pad_samples(const Operation&) {
  return {{{{{7}}}, margins({2}, {3})},
          {{{{7}}}, margins({6}, {6})},
          {{{{7}}}, margins({0}, {1})},
          {{{{2, 3}}}, margins({0, 2}, {0, 1})},
          {{{{0, 3}}}, margins({0, 1}, {0, 1})},
          {{{{}}}, margins({}, {})},
          {{{{2, 3, 2, 4}}}, margins({0, 0, 1, 2}, {0, 0, 1, 3})},
          {{{{3, 4}}}, margins({1, 2}, {2, 0})}};
}

std::vector<ErrorSample> common_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}}, margins({1}, {1}), "(2, 3)"},
          {Refusal::shape, {{{2, 3}}}, margins({0, -1}, {0, 0}), "-1"},
          {Refusal::shape, {{{0, 3}}}, margins({1, 0}, {0, 0}), "(0, 3)"}};
}
/// Of modes that repeat no element twice.
std::vector<ErrorSample> limited_errors(const Operation& operation) {
  std::vector<ErrorSample> out = common_errors(operation);
  out.push_back({Refusal::shape, {{{2, 3}}}, margins({0, 0}, {0, 4}), "margin 4"});
  return out;
}

constexpr EntriesOf entry{"manipulation", kAnyType};

}  // namespace

std::span<const Operation> padding_operations() {
  static const Operation kTable[] = {
      entry("pad_reflect", "pad_reflect(x, low, high) or pad(x, low, high, PadMode::reflect)",
            "Margins that mirror the tensor at its first and last elements: 3 2 (1 2 3) 2 1. They are "
            "smaller than the extent.",
            call_pad<PadMode::reflect>, pad_samples, limited_errors),
      entry("pad_replicate", "pad_replicate(x, low, high) or pad(x, low, high, PadMode::replicate)",
            "Margins that repeat the first and the last element: 1 1 (1 2 3) 3 3.",
            call_pad<PadMode::replicate>, pad_samples, common_errors),
      entry("pad_circular", "pad_circular(x, low, high) or pad(x, low, high, PadMode::circular)",
            "Margins from the other end: 2 3 (1 2 3) 1 2. They are no larger than the extent.",
            call_pad<PadMode::circular>, pad_samples, limited_errors),
  };
  return kTable;
}

}  // namespace ops
}  // namespace caldera
