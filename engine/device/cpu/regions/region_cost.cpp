#include "engine/device/cpu/regions/region_cost.h"

#include <cstddef>

namespace caldera::cpu {
namespace {

/// Nanoseconds.
double cost_of(ScalarOp op, DType type) {
  double cost = 0.03;  // arithmetic that is bound by loads and stores in L1
  switch (op) {
    case ScalarOp::exp:
    case ScalarOp::exp2:
    case ScalarOp::expm1:
    case ScalarOp::sigmoid:
      cost = type == DType::f32 ? 0.13 : 6;
      break;
    case ScalarOp::atan2:
      cost = type == DType::f32 ? 0.4 : 10;
      break;
    case ScalarOp::pow:
      cost = 10;
      break;
    case ScalarOp::gamma_weight:
      cost = 20;
      break;
    case ScalarOp::gamma_series:
    case ScalarOp::gamma_fraction:
      cost = 100;
      break;
    case ScalarOp::floor_div:
    case ScalarOp::remainder:
      cost = is_floating(type) || type == DType::i32 ? 0.4 : 3;
      break;
    case ScalarOp::div:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt:
    case ScalarOp::reciprocal:
      cost = 0.12;
      break;
    case ScalarOp::philox_uniform:
      return 1;
    case ScalarOp::philox_normal:
      return 2.5;
    default:
      if (is_elementary(op)) cost = type == DType::f32 ? 0.3 : 6;
      break;
  }
  return size_of(type) == 8 ? 2 * cost : cost;
}

}  // namespace

double region_nanoseconds(const Kernel& kernel) {
  double cost = 0;
  const RowPhases phases = row_phases(kernel);
  for (std::size_t v = 0; v < kernel.code.size(); ++v) {
    const Instruction& i = kernel.code[v];
    if (info(i.op).arity == 0 || (phases.per_row[v] && !is_row_reduction(i.op))) continue;
    cost += cost_of(i.op, kernel.code[i.op == ScalarOp::select ? i.b : i.a].type);
  }
  // Every operand crosses the memory bus once, at some 40 GB/s: L2 more, DRAM less.
  std::size_t moved = 0;
  for (DType t : kernel.inputs) moved += size_of(t);
  for (const auto& o : kernel.outputs) moved += size_of(o.type);
  return cost + 0.025 * static_cast<double>(moved);
}

}  // namespace caldera::cpu
