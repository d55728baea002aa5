#include "ops/spatial/windows.h"

#include <limits>

#include "ops/core/node_builder.h"
#include "ops/core/slicing.h"
#include "ops/spatial/spatial.h"

namespace caldera::windows {

Spatial each(const char* op, const char* what, const Spatial& given, int n, std::int64_t least) {
  if (given.size() != 1 && given.size() != static_cast<std::size_t>(n))
    throw ValueError(fmt::format("{}: {} has {} values for {} spatial axes", op, what, given.size(), n));
  for (const std::int64_t value : given) {
    if (value < least) throw ValueError(fmt::format("{}: {} is {}, want {} or more", op, what, value, least));
    if (value > std::numeric_limits<std::int32_t>::max())
      throw ValueError(fmt::format("{}: {} is {}, want less than 2^31", op, what, value));
  }
  return given.size() == 1 ? Spatial(static_cast<std::size_t>(n), given[0]) : given;
}

int spatial_axes(const char* op, const LazyTensor& x) {
  const int n = x.rank() - kLead;
  if (n < 1 || n > 3)
    throw ShapeError(
        fmt::format("{}: {} is not (examples, channels) and 1 to 3 spatial axes", op, x.shape().to_string()));
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  return n;
}

LazyTensor padded(const LazyTensor& x, const Spatial& low, const Spatial& high, FillValue value,
                  const Spatial& interior) {
  const auto whole = [](const Spatial& of) {
    Spatial all(kLead, 0);
    all.insert(all.end(), of.begin(), of.end());
    return all;
  };
  if (std::ranges::all_of(low, [](auto v) { return v == 0; }) &&
      std::ranges::all_of(high, [](auto v) { return v == 0; }) &&
      std::ranges::all_of(interior, [](auto v) { return v == 0; }))
    return x;
  return pad(x, whole(low), whole(high), value, interior.empty() ? Spatial{} : whole(interior));
}

}  // namespace caldera::windows
