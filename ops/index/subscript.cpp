#include "ops/index/subscript.h"

#include <fmt/core.h>

#include <algorithm>
#include <variant>

#include "ops/core/slicing.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

template <class T>
bool is(const Index& index) {
  return std::holds_alternative<T>(index.entry());
}

/// The index counted from the front.
std::int64_t index_along(const LazyTensor& x, int axis, std::int64_t index) {
  const std::int64_t extent = x.shape(axis);
  if (index < -extent || index >= extent)
    throw ValueError(
        fmt::format("[]: index {} is out of bounds for axis {} with size {}", index, axis, extent));
  return index < 0 ? index + extent : index;
}

}  // namespace

LazyTensor ops::subscript(const LazyTensor& x, std::span<const Index> entries) {
  const auto count = [&](auto predicate) {
    return static_cast<int>(std::ranges::count_if(entries, predicate));
  };
  if (count(is<Ellipsis>) > 1)
    throw ValueError("[]: more than one ellipsis: which axes each is for, is not known");
  const int named = count([](const Index& i) { return is<Slice>(i) || is<std::int64_t>(i); });
  if (named > x.rank())
    throw ShapeError(
        fmt::format("[]: {} indices for the {} axes of {}", named, x.rank(), x.shape().to_string()));
  LazyTensor y = x;
  Shape out;
  int axis = 0;
  const auto take_whole = [&](int axes) {
    for (; axes > 0; --axes) out.push_back(x.shape(axis++));
  };
  for (const Index& index : entries) {
    if (const auto* given = std::get_if<std::int64_t>(&index.entry())) {
      const std::int64_t at = index_along(x, axis, *given);
      y = slice(y, axis++, at, at + 1);
    } else if (const auto* part = std::get_if<Slice>(&index.entry())) {
      y = ops::slice_as("[]", y, axis, *part);
      out.push_back(y.shape(axis++));
    } else if (is<NewAxis>(index)) {
      out.push_back(1);
    } else {
      take_whole(x.rank() - named);
    }
  }
  take_whole(x.rank() - axis);
  return reshape(y, out);
}

}  // namespace caldera
