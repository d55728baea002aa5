// ScalarOp: the functions of one element that kernels are made of, and the table of what each one takes and
// gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/tensor/dtype.h"

namespace caldera {

/// One line for each function, F(op, name, operands, gives bool, domain, math). `operands` counts those that
/// are values; comparisons and predicates give bool; `domain` is a ScalarDomain, that of the operands (of the
/// second and third for select); `math` is a ScalarMath. What a new elementary function takes besides its
/// line: docs/internals/adding-operations.md.
// clang-format off
#define CALDERA_SCALAR_OPS(F) \
  /* sources */ \
  F(load, "load", 0, false, any, other) /* an element of an input operand */ \
  F(scalar, "scalar", 0, false, any, other) /* a scalar argument of the kernel */ \
  /* offset + sum(coordinate * stride): iota, linear index */ \
  F(index, "index", 0, false, any, other) \
  /* in kernels only: a row is what the innermost dimensions of an iteration space walk through */ \
  /* an element of an input operand that is the same all along the row */ \
  F(load_row, "load_row", 0, false, any, other) \
  /* the operand's elements along the row, combined */ \
  F(row_sum, "row_sum", 1, false, numeric, other) \
  F(row_maximum, "row_max", 1, false, numeric, other) /* NaN if any is */ \
  F(row_minimum, "row_min", 1, false, numeric, other) /* NaN if any is */ \
  F(row_product, "row_prod", 1, false, numeric, other) \
  /* unary */ \
  F(neg, "neg", 1, false, numeric, other) \
  F(abs, "abs", 1, false, numeric, other) \
  F(sign, "sign", 1, false, numeric, other) \
  F(floor, "floor", 1, false, numeric, other) \
  F(ceil, "ceil", 1, false, numeric, other) \
  F(round, "round", 1, false, numeric, other) /* half to even */ \
  F(trunc, "trunc", 1, false, numeric, other) \
  F(exp, "exp", 1, false, floating, vector_math) \
  F(expm1, "expm1", 1, false, floating, vector_math) \
  F(log, "log", 1, false, floating, vector_math) \
  F(log1p, "log1p", 1, false, floating, vector_math) \
  F(sqrt, "sqrt", 1, false, floating, other) \
  F(rsqrt, "rsqrt", 1, false, floating, other) \
  F(sin, "sin", 1, false, floating, vector_math) \
  F(cos, "cos", 1, false, floating, vector_math) \
  F(tan, "tan", 1, false, floating, vector_math) \
  F(asin, "asin", 1, false, floating, vector_math) \
  F(acos, "acos", 1, false, floating, vector_math) \
  F(atan, "atan", 1, false, floating, vector_math) \
  F(tanh, "tanh", 1, false, floating, vector_math) \
  F(sigmoid, "sigmoid", 1, false, floating, vector_math) \
  F(erf, "erf", 1, false, floating, vector_math) \
  F(exp2, "exp2", 1, false, floating, vector_math) \
  F(log2, "log2", 1, false, floating, vector_math) \
  F(log10, "log10", 1, false, floating, vector_math) \
  F(reciprocal, "reciprocal", 1, false, floating, other) \
  F(logical_not, "logical_not", 1, false, boolean, other) \
  F(bit_not, "bit_not", 1, false, integral, other) \
  F(isnan, "isnan", 1, true, numeric, other) \
  F(cast, "cast", 1, false, any, other) /* to the type of the instruction */ \
  /* in kernels only: f32 rounded (to nearest even) to what the 16-bit type holds, as f32 */ \
  F(round_f16, "round_f16", 1, false, floating, other) \
  F(round_bf16, "round_bf16", 1, false, floating, other) \
  /* in kernels only: what the integer type of memory holds of the operand, in the type that it */ \
  /* is computed in. Integers wrap; floating numbers are truncated, saturate, and NaN is 0, as */ \
  /* in a cast. */ \
  F(narrow_i8, "narrow_i8", 1, false, numeric, other) \
  F(narrow_i16, "narrow_i16", 1, false, numeric, other) \
  F(narrow_u32, "narrow_u32", 1, false, numeric, other) \
  /* binary */ \
  F(add, "add", 2, false, numeric, other) \
  F(sub, "sub", 2, false, numeric, other) \
  F(mul, "mul", 2, false, numeric, other) \
  F(div, "div", 2, false, floating, other) /* floating only */ \
  F(floor_div, "floor_div", 2, false, numeric, other) /* rounds towards minus infinity */ \
  /* sign of the divisor, as the Array API */ \
  F(remainder, "remainder", 2, false, numeric, other) \
  F(pow, "pow", 2, false, numeric, other) \
  F(maximum, "maximum", 2, false, numeric, other) /* NaN if either is */ \
  F(minimum, "minimum", 2, false, numeric, other) \
  F(atan2, "atan2", 2, false, floating, other) \
  /* the magnitude of the first, the sign of the second, zeros and NaN included */ \
  F(copysign, "copysign", 2, false, floating, other) \
  /* what incomplete gamma functions are made of, of (a, x), both above 0; NaN elsewhere: */ \
  /* (x / a)^a exp(a - x) */ \
  F(gamma_weight, "gamma_weight", 2, false, floating, other) \
  /* 1 + x / (a + 1) (1 + x / (a + 2) (1 + ...)), for x <= max(a, 1) */ \
  F(gamma_series, "gamma_series", 2, false, floating, other) \
  /* 1 / (x + 1 - a - (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))), for x >= max(a, 1) */ \
  F(gamma_fraction, "gamma_fraction", 2, false, floating, other) \
  F(bit_and, "bit_and", 2, false, integral, other) \
  F(bit_or, "bit_or", 2, false, integral, other) \
  F(bit_xor, "bit_xor", 2, false, integral, other) \
  /* by a negative count or by all bits and more: 0 */ \
  F(shift_left, "shift_left", 2, false, integral, other) \
  /* keeps the sign; by a negative count or by all bits and more: 0 or -1 */ \
  F(shift_right, "shift_right", 2, false, integral, other) \
  F(logical_and, "logical_and", 2, false, boolean, other) \
  F(logical_or, "logical_or", 2, false, boolean, other) \
  F(logical_xor, "logical_xor", 2, false, boolean, other) \
  F(equal, "equal", 2, true, any, other) \
  F(not_equal, "not_equal", 2, true, any, other) \
  F(less, "less", 2, true, numeric, other) \
  F(less_equal, "less_equal", 2, true, numeric, other) \
  F(greater, "greater", 2, true, numeric, other) \
  F(greater_equal, "greater_equal", 2, true, numeric, other) \
  /* ternary */ \
  F(select, "select", 3, false, any, other) /* a ? b : c */ \
  /* random: (seed: i64 scalar argument, linear index: i32) */ \
  F(philox_uniform, "philox_uniform", 2, false, any, other) /* [0, 1) */ \
  F(philox_normal, "philox_normal", 2, false, any, other) /* mean 0, deviation 1 */
// clang-format on

enum class ScalarOp : std::uint8_t {
#define CALDERA_ENUMERATOR(op, ...) op,
  CALDERA_SCALAR_OPS(CALDERA_ENUMERATOR)
#undef CALDERA_ENUMERATOR
};

inline constexpr int kScalarOpCount = static_cast<int>(ScalarOp::philox_normal) + 1;

/// Names the types that a ScalarOp accepts.
enum class ScalarDomain : std::uint8_t { any, numeric, floating, boolean, integral };

/// Whether it is an elementary function, one of a real number that formulas compute, and how the CPU device
/// does so: vector_math has polynomials for f32, name_f32() in math_f32-inl.h; library_math has the C library
/// in every type.
enum class ScalarMath : std::uint8_t { other, vector_math, library_math };

struct ScalarOpInfo {
  std::string_view name;
  std::uint8_t arity;   // operands that are values
  bool gives_boolean;   // comparisons and predicates
  ScalarDomain domain;  // of the operands (of the second and third for select)
  ScalarMath math;
};

const ScalarOpInfo& info(ScalarOp op);

inline bool is_elementary(ScalarOp op) { return info(op).math != ScalarMath::other; }

constexpr bool in_domain(ScalarDomain domain, DType type) {
  switch (domain) {
    case ScalarDomain::any:
      return true;
    case ScalarDomain::numeric:
      return type != DType::boolean;
    case ScalarDomain::floating:
      return is_floating(type);
    case ScalarDomain::boolean:
      return type == DType::boolean;
    case ScalarDomain::integral:
      return is_integral(type);
  }
  return false;
}
/// The type of memory to which the function rounds or wraps, if that is what it does.
constexpr std::optional<DType> narrowed_to(ScalarOp op) {
  switch (op) {
    case ScalarOp::round_f16:
      return DType::f16;
    case ScalarOp::round_bf16:
      return DType::bf16;
    case ScalarOp::narrow_i8:
      return DType::i8;
    case ScalarOp::narrow_i16:
      return DType::i16;
    case ScalarOp::narrow_u32:
      return DType::u32;
    default:
      return std::nullopt;
  }
}
/// The function that does so for a type of memory (see is_memory_type).
constexpr ScalarOp narrowing(DType memory) {
  for (const ScalarOp op : {ScalarOp::round_f16, ScalarOp::round_bf16, ScalarOp::narrow_i8,
                            ScalarOp::narrow_i16, ScalarOp::narrow_u32}) {
    if (narrowed_to(op) == memory) return op;
  }
  return ScalarOp::cast;  // nothing to narrow
}

/// Whether kernels compute the function on operands of the type (those that the domain is about). Types are
/// those of values: no type of memory is one (see is_memory_type).
inline bool accepts(ScalarOp op, DType type) {
  if (const std::optional<DType> memory = narrowed_to(op)) {
    return type == compute_type(*memory) || (is_integral(*memory) && is_floating(type));
  }
  return in_domain(info(op).domain, type);
}

/// The type of the function's value on operands of the type (for casts it is the instruction's).
inline DType value_type(ScalarOp op, DType operand) {
  if (info(op).gives_boolean) return DType::boolean;
  const std::optional<DType> memory = narrowed_to(op);
  return memory ? compute_type(*memory) : operand;
}

/// Whether the function of integers of a type may give one outside of the type's range where it is computed
/// in a wider one.
bool may_leave_range(ScalarOp op);

constexpr bool is_row_reduction(ScalarOp op) {
  return op >= ScalarOp::row_sum && op <= ScalarOp::row_product;
}

}  // namespace caldera
