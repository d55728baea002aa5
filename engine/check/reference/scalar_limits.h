// Says what the functions of one element are checked on, and how far a device may be from the reference.
#pragma once

#include "engine/check/reference/plan_case.h"
#include "engine/graph/scalar_op.h"

namespace caldera::reference {

/// Arguments inside of the function's domain and far from where its results overflow.
Range checked_range(ScalarOp op);

/// Returns what is allowed of a function on operands of the type, within its range; the reference is the f64
/// result rounded to the type.
Allowed scalar_allowed(ScalarOp op, DType type, Device device);

/// Returns what is allowed of results that a type of memory holds: a result near the middle of two of its
/// numbers may be rounded to the other one. What is exact stays so.
Allowed stored_as(DType memory, const Allowed& computed);

}  // namespace caldera::reference
