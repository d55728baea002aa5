#include "engine/graph/scalar_op.h"

#include <array>
#include <cstddef>

namespace caldera {
namespace {

using D = ScalarDomain;

// In the order of ScalarOp.
constexpr std::array<ScalarOpInfo, kScalarOpCount> kTable{{
    {"load", 0, false, D::any},
    {"scalar", 0, false, D::any},
    {"index", 0, false, D::any},
    {"load_row", 0, false, D::any},
    {"row_sum", 1, false, D::numeric},
    {"row_max", 1, false, D::numeric},
    {"row_min", 1, false, D::numeric},
    {"row_prod", 1, false, D::numeric},
    {"neg", 1, false, D::numeric},
    {"abs", 1, false, D::numeric},
    {"sign", 1, false, D::numeric},
    {"floor", 1, false, D::numeric},
    {"ceil", 1, false, D::numeric},
    {"round", 1, false, D::numeric},
    {"trunc", 1, false, D::numeric},
    {"exp", 1, false, D::floating},
    {"expm1", 1, false, D::floating},
    {"log", 1, false, D::floating},
    {"log1p", 1, false, D::floating},
    {"sqrt", 1, false, D::floating},
    {"rsqrt", 1, false, D::floating},
    {"sin", 1, false, D::floating},
    {"cos", 1, false, D::floating},
    {"tan", 1, false, D::floating},
    {"tanh", 1, false, D::floating},
    {"sigmoid", 1, false, D::floating},
    {"erf", 1, false, D::floating},
    {"exp2", 1, false, D::floating},
    {"log2", 1, false, D::floating},
    {"log10", 1, false, D::floating},
    {"reciprocal", 1, false, D::floating},
    {"logical_not", 1, false, D::boolean},
    {"bit_not", 1, false, D::integral},
    {"isnan", 1, true, D::numeric},
    {"cast", 1, false, D::any},
    {"round_f16", 1, false, D::floating},
    {"round_bf16", 1, false, D::floating},
    {"narrow_i8", 1, false, D::numeric},
    {"narrow_i16", 1, false, D::numeric},
    {"narrow_u32", 1, false, D::numeric},
    {"add", 2, false, D::numeric},
    {"sub", 2, false, D::numeric},
    {"mul", 2, false, D::numeric},
    {"div", 2, false, D::floating},
    {"floor_div", 2, false, D::numeric},
    {"remainder", 2, false, D::numeric},
    {"pow", 2, false, D::numeric},
    {"maximum", 2, false, D::numeric},
    {"minimum", 2, false, D::numeric},
    {"atan2", 2, false, D::floating},
    {"copysign", 2, false, D::floating},
    {"bit_and", 2, false, D::integral},
    {"bit_or", 2, false, D::integral},
    {"bit_xor", 2, false, D::integral},
    {"shift_left", 2, false, D::integral},
    {"shift_right", 2, false, D::integral},
    {"logical_and", 2, false, D::boolean},
    {"logical_or", 2, false, D::boolean},
    {"logical_xor", 2, false, D::boolean},
    {"equal", 2, true, D::any},
    {"not_equal", 2, true, D::any},
    {"less", 2, true, D::numeric},
    {"less_equal", 2, true, D::numeric},
    {"greater", 2, true, D::numeric},
    {"greater_equal", 2, true, D::numeric},
    {"select", 3, false, D::any},
    {"philox_uniform", 2, false, D::any},
    {"philox_normal", 2, false, D::any},
}};

}  // namespace

const ScalarOpInfo& info(ScalarOp op) { return kTable[static_cast<std::size_t>(op)]; }

bool may_leave_range(ScalarOp op) {
  if (info(op).gives_boolean || narrowed_to(op)) return false;
  // Those that give one of their operands, or a number between such and 0 or 1. A new function counts as one
  // that leaves the range until it is listed.
  switch (op) {
    case ScalarOp::load:
    case ScalarOp::load_row:
    case ScalarOp::scalar:
    case ScalarOp::row_maximum:
    case ScalarOp::row_minimum:
    case ScalarOp::sign:
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::round:
    case ScalarOp::trunc:
    case ScalarOp::remainder:
    case ScalarOp::maximum:
    case ScalarOp::minimum:
    case ScalarOp::select:
      return false;
    default:
      return true;
  }
}

}  // namespace caldera
