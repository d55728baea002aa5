#include "engine/plan/kernel/kernel_cost.h"

#include <algorithm>
#include <cstddef>

namespace caldera {
namespace {

bool is_arithmetic(const Instruction& i) {
  if (info(i.op).arity == 0 || info(i.op).gives_boolean) return false;
  switch (i.op) {
    case ScalarOp::cast:
    case ScalarOp::select:
    case ScalarOp::logical_not:
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
    case ScalarOp::logical_xor:
    case ScalarOp::philox_uniform:
    case ScalarOp::philox_normal:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::int64_t arithmetic_count(const Kernel& kernel) {
  return std::count_if(kernel.code.begin(), kernel.code.end(), is_arithmetic);
}

std::int64_t kernel_flops(const Kernel& kernel, std::int64_t points, std::int64_t rows) {
  const RowPhases phases = row_phases(kernel);
  std::int64_t flops = kernel.reduce && is_floating(kernel.outputs[0].type) ? points : 0;
  for (std::size_t v = 0; v < kernel.code.size(); ++v) {
    if (!is_arithmetic(kernel.code[v]) || !is_floating(kernel.code[v].type)) continue;
    const bool once_a_row = phases.per_row[v] && !is_row_reduction(kernel.code[v].op);
    flops += once_a_row ? rows : points;
  }
  return flops;
}

std::int64_t product_of(const Shape& dims, int count) {
  std::int64_t n = 1;
  for (int d = 0; d < count; ++d) n *= dims[d];
  return n;
}

}  // namespace caldera
