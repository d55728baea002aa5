#include "engine/graph/scalar_op.h"

#include <array>
#include <cstddef>

namespace caldera {
namespace {

constexpr std::array<ScalarOpInfo, kScalarOpCount> kTable{{
#define CALDERA_ROW(op, name, operands, gives_boolean, domain, math) \
  {name, operands, gives_boolean, ScalarDomain::domain, ScalarMath::math},
    CALDERA_SCALAR_OPS(CALDERA_ROW)
#undef CALDERA_ROW
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
