// ScalarOp: the functions of one element that kernels are made of, and the table of what each one takes and
// gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/tensor/dtype.h"

namespace caldera {

enum class ScalarOp : std::uint8_t {
  // sources
  load,    // an element of an input operand
  scalar,  // a scalar argument of the kernel
  index,   // offset + sum(coordinate * stride): iota, linear index
  // in kernels only: a row is what the innermost dimensions of an iteration space walk through
  load_row,     // an element of an input operand that is the same all along the row
  row_sum,      // the operand's elements along the row, combined
  row_maximum,  // NaN if any is
  row_minimum,  // NaN if any is
  row_product,
  // unary
  neg,
  abs,
  sign,
  floor,
  ceil,
  round,  // half to even
  trunc,
  exp,
  expm1,
  log,
  log1p,
  sqrt,
  rsqrt,
  sin,
  cos,
  tan,
  tanh,
  sigmoid,
  erf,
  exp2,
  log2,
  log10,
  reciprocal,
  logical_not,
  bit_not,
  isnan,
  cast,  // to the type of the instruction
  // in kernels only: f32 rounded (to nearest even) to what the 16-bit type holds, as f32
  round_f16,
  round_bf16,
  // in kernels only: what the integer type of memory holds of the operand, in the type that it is computed
  // in.
  // Integers wrap; floating numbers are truncated, saturate, and NaN is 0, as in a cast.
  narrow_i8,
  narrow_i16,
  narrow_u32,
  // binary
  add,
  sub,
  mul,
  div,        // floating only
  floor_div,  // rounds towards minus infinity
  remainder,  // sign of the divisor, as the Array API
  pow,
  maximum,  // NaN if either is
  minimum,
  atan2,
  copysign,  // the magnitude of the first, the sign of the second, zeros and NaN included
  bit_and,
  bit_or,
  bit_xor,
  shift_left,   // by a negative count or by all bits and more: 0
  shift_right,  // keeps the sign; by a negative count or by all bits and more: 0 or -1
  logical_and,
  logical_or,
  logical_xor,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  // ternary
  select,  // a ? b : c
  // random: (seed: i64 scalar argument, linear index: i32)
  philox_uniform,  // [0, 1)
  philox_normal,   // mean 0, deviation 1
};

inline constexpr int kScalarOpCount = static_cast<int>(ScalarOp::philox_normal) + 1;

/// What types a ScalarOp accepts.
enum class ScalarDomain : std::uint8_t { any, numeric, floating, boolean, integral };

struct ScalarOpInfo {
  std::string_view name;
  std::uint8_t arity;   // operands that are values
  bool gives_boolean;   // comparisons and predicates
  ScalarDomain domain;  // of the operands (of the second and third for select)
};

const ScalarOpInfo& info(ScalarOp op);

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

inline bool is_row_reduction(ScalarOp op) { return op >= ScalarOp::row_sum && op <= ScalarOp::row_product; }

}  // namespace caldera
