#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/check/reference/reference_steps.h"

namespace caldera::reference {
namespace {

/// Whether a comes before b in ascending order where NaN is the largest.
bool is_less(DType type, Number a, Number b) {
  if (!is_floating(type)) return a.i < b.i;
  return a.f < b.f || (std::isnan(b.f) && !std::isnan(a.f));
}

}  // namespace

void run_step(const StepMemory& memory, const SortStep& sort) {
  const Shape& dims = memory.step().dims;
  for (std::int64_t row = 0; row < dims[0]; ++row) {
    std::vector<Number> x(static_cast<std::size_t>(dims[1]));
    for (std::int64_t i = 0; i < dims[1]; ++i)
      x[static_cast<std::size_t>(i)] = memory.read(0, sort.of, {row, i});
    std::vector<std::size_t> order(x.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return sort.descending ? is_less(sort.of, x[b], x[a]) : is_less(sort.of, x[a], x[b]);
    });
    for (std::int64_t k = 0; k < dims[2]; ++k) {
      const std::size_t at = order[static_cast<std::size_t>(sort.first + k)];
      memory.write(1, DType::i32, {row, 0, k}, integer(static_cast<std::int64_t>(at)));
    }
  }
}

}  // namespace caldera::reference
