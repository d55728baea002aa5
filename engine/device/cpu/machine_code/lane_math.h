// Emits the elementary functions of f32, instruction by instruction as the interpreter computes them.
#pragma once

#include <optional>

#include "engine/device/cpu/machine_code/lanes.h"
#include "engine/graph/scalar_op.h"

namespace caldera::cpu {

/// The function of one operand, with the polynomials and the order of operations of simd/math_f32-inl.h: the
/// same bits, but for which NaN it is. Nothing where machine code has no such function.
std::optional<Lanes::Vec> elementary_lanes(const Lanes& l, ScalarOp op, const Lanes::Vec& x);

/// The angle of (x, y), likewise.
Lanes::Vec atan2_lanes(const Lanes& l, const Lanes::Vec& y, const Lanes::Vec& x);

}  // namespace caldera::cpu
