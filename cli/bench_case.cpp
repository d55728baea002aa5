#include "cli/bench_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace caldera::cli {

LazyTensor bench_input(const Shape& shape, std::uint64_t seed, Device device, double scale) {
  const LazyTensor values = random_normal(shape, seed, DType::f32, device);
  return (scale == 1 ? values : values * scale).eval().detach();
}

std::string dims_text(const Shape& shape) { return fmt::format("{}", fmt::join(shape.span(), "x")); }

nlohmann::json dims_json(const Shape& shape) { return std::vector<std::int64_t>(shape.begin(), shape.end()); }

}  // namespace caldera::cli
