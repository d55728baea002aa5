#include "ops/core/ranges.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"

namespace caldera {
namespace {

Device device_or_default(std::optional<Device> device) { return device ? *device : default_device(); }

void refuse_range(double start, double stop, double step, std::string_view why) {
  throw ValueError(fmt::format("arange: from {} to {} in steps of {}: {}", start, stop, step, why));
}

std::string beyond(DType dtype) {
  return fmt::format("{} is from {} to {}", name(dtype), facts(dtype).lowest, facts(dtype).highest);
}

constexpr const char* kTooMany = "more than 2^31 - 1 elements";  // kernels count in 32 bits

}  // namespace

LazyTensor arange(std::int64_t n, DType dtype, Device device) {
  ops::check_extents("arange", Shape{n}, dtype);
  ops::check_domain("arange", ScalarDomain::numeric, dtype);
  if (is_integral(dtype) && n - 1 > facts(dtype).highest)
    throw ValueError(fmt::format("arange: 0 to {} are beyond {}, whose highest number is {}", n - 1,
                                 name(dtype), facts(dtype).highest));
  return iota(Shape{n}, 0, dtype, device);
}
LazyTensor arange(std::int64_t n, DType dtype) { return arange(n, dtype, default_device()); }

LazyTensor detail::arange(std::int64_t start, std::int64_t stop, std::int64_t step, DType dtype,
                          std::optional<Device> device) {
  const auto refuse = [&](std::string_view why) {
    refuse_range(static_cast<double>(start), static_cast<double>(stop), static_cast<double>(step), why);
  };
  ops::check_domain("arange", ScalarDomain::numeric, dtype);
  if (step == 0) refuse("they lead nowhere");
  std::int64_t last = start, count = 0;
  if ((step > 0) == (start < stop) && start != stop) {
    // The distance of any two int64 fits an unsigned one, as does the size of any step.
    const auto size = [](std::int64_t from, std::int64_t to) {
      return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
    };
    const std::uint64_t whole = step > 0 ? size(start, stop) : size(stop, start);
    const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : size(step, 0);
    const std::uint64_t elements = whole / stride + (whole % stride != 0 ? 1 : 0);
    if (elements > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) refuse(kTooMany);
    count = static_cast<std::int64_t>(elements);
    last = static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                     (elements - 1) * static_cast<std::uint64_t>(step));
  }
  if (count > 0 && is_integral(dtype) &&
      (std::min(start, last) < facts(dtype).lowest || std::max(start, last) > facts(dtype).highest))
    refuse(beyond(dtype));
  constexpr std::int64_t kLow = std::numeric_limits<std::int32_t>::min(),
                         kHigh = std::numeric_limits<std::int32_t>::max();
  const auto narrow = [&](std::int64_t value) { return value >= kLow && value <= kHigh; };
  const bool fits = narrow(start) && narrow(step) && narrow(last) && narrow(last - start);
  const DType computed = fits ? DType::i32 : DType::i64;
  const LazyTensor places = iota(Shape{count}, 0, computed, device_or_default(device));
  return astype(places * step + start, dtype);
}

LazyTensor detail::arange(double start, double stop, double step, DType dtype, std::optional<Device> device) {
  ops::check_domain("arange", ScalarDomain::numeric, dtype);
  if (!std::isfinite(start) || !std::isfinite(stop) || !std::isfinite(step))
    refuse_range(start, stop, step, "not finite");
  if (step == 0) refuse_range(start, stop, step, "they lead nowhere");
  const double count = std::max(0.0, std::ceil((stop - start) / step));
  if (!(count <= std::numeric_limits<std::int32_t>::max())) refuse_range(start, stop, step, kTooMany);
  if (count > 0 && !(ops::holds(dtype, start) && ops::holds(dtype, start + (count - 1) * step)))
    refuse_range(start, stop, step, beyond(dtype));
  const DType computed = is_floating(dtype) ? compute_type(dtype) : DType::f64;
  const Shape shape{static_cast<std::int64_t>(count)};
  const LazyTensor places = iota(shape, 0, computed, device_or_default(device));
  return astype(places * step + start, dtype);
}

LazyTensor linspace(double start, double stop, std::int64_t num, DType dtype, bool endpoint,
                    std::optional<Device> device) {
  ops::check_domain("linspace", ScalarDomain::floating, dtype);
  if (num < 0) throw ValueError(fmt::format("linspace: num is {}, want 0 or more", num));
  if (!std::isfinite(start) || !std::isfinite(stop))
    throw ValueError(fmt::format("linspace: from {} to {}: not finite", start, stop));
  ops::check_extents("linspace", Shape{num}, dtype);
  const DType computed = compute_type(dtype);
  const LazyTensor place = iota(Shape{num}, 0, computed, device_or_default(device));
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, endpoint ? num - 1 : num));
  const double whole = stop - start;
  // The distance of two finite numbers may be infinite.
  const double step = std::isfinite(whole) ? whole / steps : stop / steps - start / steps;
  LazyTensor y = place * step + start;
  // From the end backwards in the second half, so that the last number is `stop` without rounding.
  if (endpoint && num > 1) {
    const double last = static_cast<double>(num - 1);
    y = where(less(place, std::ceil(static_cast<double>(num) / 2)), y, stop - (last - place) * step);
  }
  return astype(y, dtype);
}

LazyTensor eye(std::int64_t rows, std::optional<std::int64_t> columns, std::int64_t k, DType dtype,
               std::optional<Device> device) {
  const Shape shape{rows, columns.value_or(rows)};
  ops::check_extents("eye", shape, dtype);
  const Device where_to = device_or_default(device);
  const LazyTensor ahead = iota(shape, 1, DType::i32, where_to) - iota(shape, 0, DType::i32, where_to);
  // Beyond the matrix all diagonals are alike.
  const std::int64_t diagonal = std::clamp(k, -rows - 1, shape[1] + 1);
  return astype(equal(ahead, static_cast<std::int32_t>(diagonal)), dtype);
}

}  // namespace caldera
