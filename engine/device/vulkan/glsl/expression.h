// One instruction of the kernel IR as a GLSL expression over registers.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "engine/plan/kernel/kernel.h"

namespace caldera {

/// A register: a GLSL expression without side effects, and the type it stands for.
struct GlslValue {
  std::string text;
  DType type = DType::f32;
};

/// Library functions that expressions call (see glsl_library.h).
using GlslCalls = std::set<std::string, std::less<>>;

/// The GLSL type of a register: bool for boolean, uint (0 to 255) for u8. Throws DTypeError for types of
/// memory.
std::string_view glsl_type(DType type);

/// `value` converted: floating to integral truncates and saturates with NaN as 0; to boolean is "!= 0".
std::string glsl_convert(const GlslValue& value, DType to, GlslCalls& calls);

/// `op` over values, computed in `type` (comparisons in their operands' type). Not for load, scalar, index,
/// philox.
std::string glsl_expression(ScalarOp op, DType type, const GlslValue& a, const GlslValue& b,
                            const GlslValue& c, GlslCalls& calls);

/// The element that `combine` starts from, and one step of it.
std::string glsl_identity(Combine combine, DType type, GlslCalls& calls);
std::string glsl_combine(Combine combine, DType type, const std::string& a, const std::string& b,
                         GlslCalls& calls);

}  // namespace caldera
