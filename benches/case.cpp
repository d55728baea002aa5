#include "benches/case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/device/cpu_threads.h"
#include "ops/random/uniform_normal.h"

namespace caldera::bench {

ThreadScope::ThreadScope(int threads) : before_(cpu_threads()) { set_cpu_threads(threads); }
ThreadScope::~ThreadScope() { set_cpu_threads(before_); }

LazyTensor random_input(const Shape& shape, std::uint64_t seed, Device device, double scale, DType dtype) {
  const LazyTensor values = random_normal(shape, seed, DType::f32, device);
  return (scale == 1 ? values : values * scale).astype(dtype).eval().detach();
}

std::string dims_text(const Shape& shape) { return fmt::format("{}", fmt::join(shape.span(), "x")); }

nlohmann::json dims_json(const Shape& shape) { return std::vector<std::int64_t>(shape.begin(), shape.end()); }

std::string type_suffix(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "";
    case DType::f16:
      return "/f16";
    case DType::bf16:
      return "/bf16";
    default:
      return fmt::format("/{}", name(dtype));
  }
}

}  // namespace caldera::bench
