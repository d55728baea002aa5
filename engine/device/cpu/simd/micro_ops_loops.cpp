// Micro-operations as plain loops, which the compiler vectorises once for every instruction set: integers,
// booleans, comparisons, select, and the floating functions that the C library computes.
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/device/cpu/simd/gamma_terms.h"
#include "engine/device/cpu/simd/micro_ops.h"
#include "engine/tensor/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/simd/micro_ops_loops.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/loops-inl.h"
#include "engine/device/cpu/simd/scalar_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class F, class A, class R>
void binary(void* out, const void* a, const void* b, const void*, std::int64_t n) {
  auto* o = static_cast<R*>(out);
  const auto* x = static_cast<const A*>(a);
  const auto* y = static_cast<const A*>(b);
  each(n, [=](std::int64_t i) HWY_ATTR { o[i] = static_cast<R>(F::of(x[i], y[i])); });
}

/// The second operand is one element.
template <class F, class A, class R>
void binary_single(void* out, const void* a, const void* b, const void*, std::int64_t n) {
  auto* o = static_cast<R*>(out);
  const auto* x = static_cast<const A*>(a);
  const A y = static_cast<const A*>(b)[0];
  each(n, [=](std::int64_t i) HWY_ATTR { o[i] = static_cast<R>(F::of(x[i], y)); });
}

/// Picks by size only: the bits of one operand or the other, each of which may be one element.
template <class Bits, bool kSingleB, bool kSingleC>
void select(void* out, const void* a, const void* b, const void* c, std::int64_t n) {
  auto* o = static_cast<Bits*>(out);
  const auto* condition = static_cast<const std::uint8_t*>(a);
  const auto* x = static_cast<const Bits*>(b);
  const auto* y = static_cast<const Bits*>(c);
  const Bits first_x = x[0];
  const Bits first_y = y[0];
  each(n, [=](std::int64_t i) HWY_ATTR {
    const Bits mask = condition[i] != 0 ? static_cast<Bits>(~Bits{0}) : Bits{0};
    const Bits xi = kSingleB ? first_x : x[i];
    const Bits yi = kSingleC ? first_y : y[i];
    o[i] = static_cast<Bits>((xi & mask) | (yi & static_cast<Bits>(~mask)));
  });
}

template <class Bits>
MicroFn find_select(unsigned single) {
  switch (single) {
    case 0:
      return select<Bits, false, false>;
    case 2:
      return select<Bits, true, false>;
    case 4:
      return select<Bits, false, true>;
    case 6:
      return select<Bits, true, true>;
    default:
      return nullptr;
  }
}

/// Comparisons, whose second operand may be one element: masks are made of them.
template <class F, class T>
MicroFn comparison(unsigned single) {
  if (single == 0) return binary<F, T, std::uint8_t>;
  if (single == 2) return binary_single<F, T, std::uint8_t>;
  return nullptr;
}

template <class T>
MicroFn compare_op(ScalarOp op, unsigned single) {
  switch (op) {
    case ScalarOp::equal:
      return comparison<Equal, T>(single);
    case ScalarOp::not_equal:
      return comparison<NotEqual, T>(single);
    case ScalarOp::less:
      return comparison<Less, T>(single);
    case ScalarOp::less_equal:
      return comparison<LessEqual, T>(single);
    case ScalarOp::greater:
      return comparison<Greater, T>(single);
    case ScalarOp::greater_equal:
      return comparison<GreaterEqual, T>(single);
    case ScalarOp::select:
      if constexpr (sizeof(T) == 1) return find_select<std::uint8_t>(single);
      if constexpr (sizeof(T) == 4) return find_select<std::uint32_t>(single);
      return find_select<std::uint64_t>(single);
    default:
      return nullptr;
  }
}

template <class T>
MicroFn integer_op(ScalarOp op) {
  using Byte = std::uint8_t;
  switch (op) {
    case ScalarOp::neg:
      return unary_loop<Neg, T, T>;
    case ScalarOp::abs:
      return unary_loop<Abs, T, T>;
    case ScalarOp::sign:
      return unary_loop<Sign, T, T>;
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::round:
    case ScalarOp::trunc:
      return unary_loop<Same, T, T>;
    case ScalarOp::isnan:
      return unary_loop<IsNan, T, Byte>;
    case ScalarOp::add:
      return binary<Add, T, T>;
    case ScalarOp::sub:
      return binary<Sub, T, T>;
    case ScalarOp::mul:
      return binary<Mul, T, T>;
    case ScalarOp::floor_div:
      return binary<FloorDiv, T, T>;
    case ScalarOp::remainder:
      return binary<Remainder, T, T>;
    case ScalarOp::bit_not:
      return unary_loop<BitNot, T, T>;
    case ScalarOp::bit_and:
      return binary<BitAnd, T, T>;
    case ScalarOp::bit_or:
      return binary<BitOr, T, T>;
    case ScalarOp::bit_xor:
      return binary<BitXor, T, T>;
    case ScalarOp::shift_left:
      return binary<ShiftLeft, T, T>;
    case ScalarOp::shift_right:
      return binary<ShiftRight, T, T>;
    default:
      return nullptr;
  }
}

struct GammaWeight {
  template <class T>
  static T of(T a, T x) {
    return static_cast<T>(gamma_weight(a, x));
  }
};
struct GammaSeries {
  template <class T>
  static T of(T a, T x) {
    return static_cast<T>(gamma_series(a, x, sizeof(T) == 8));
  }
};
struct GammaFraction {
  template <class T>
  static T of(T a, T x) {
    return static_cast<T>(gamma_fraction(a, x, sizeof(T) == 8));
  }
};

template <class T>
MicroFn library_op(ScalarOp op) {
  switch (op) {
#define CALDERA_CASE_other(op)
#define CALDERA_CASE_vector_math(op) \
  case ScalarOp::op:                 \
    return unary_loop<Elementary<ScalarOp::op>, T, T>;
#define CALDERA_CASE_library_math(op) CALDERA_CASE_vector_math(op)
#define CALDERA_CASE(op, name, operands, gives_boolean, domain, math) CALDERA_CASE_##math(op)
    CALDERA_SCALAR_OPS(CALDERA_CASE)
#undef CALDERA_CASE
    case ScalarOp::sign:
      return unary_loop<Sign, T, T>;
    case ScalarOp::isnan:
      return unary_loop<IsNan, T, std::uint8_t>;
    case ScalarOp::atan2:
      return binary<Atan2, T, T>;
    case ScalarOp::gamma_weight:
      return binary<GammaWeight, T, T>;
    case ScalarOp::gamma_series:
      return binary<GammaSeries, T, T>;
    case ScalarOp::gamma_fraction:
      return binary<GammaFraction, T, T>;
    default:
      return nullptr;
  }
}

/// What every numeric type has.
template <class T>
MicroFn common_op(ScalarOp op) {
  using Byte = std::uint8_t;
  switch (op) {
    case ScalarOp::logical_not:
      return unary_loop<LogicalNot, T, Byte>;
    case ScalarOp::logical_and:
      return binary<LogicalAnd, T, Byte>;
    case ScalarOp::logical_or:
      return binary<LogicalOr, T, Byte>;
    case ScalarOp::logical_xor:
      return binary<LogicalXor, T, Byte>;
    case ScalarOp::pow:
      return binary<Pow, T, T>;
    case ScalarOp::maximum:
      return std::is_integral_v<T> ? binary<Max, T, T> : nullptr;
    case ScalarOp::minimum:
      return std::is_integral_v<T> ? binary<Min, T, T> : nullptr;
    default:
      return nullptr;
  }
}

template <class T>
MicroFn typed_op(ScalarOp op, unsigned single) {
  if (MicroFn fn = compare_op<T>(op, single)) return fn;
  if (single != 0) return nullptr;
  if (MicroFn fn = common_op<T>(op)) return fn;
  if constexpr (std::is_integral_v<T>)
    return integer_op<T>(op);
  else
    return library_op<T>(op);
}

MicroFn boolean_op(ScalarOp op, unsigned single) {
  using Byte = std::uint8_t;
  if (single != 0) return typed_op<Byte>(op, single);
  switch (op) {
    // The numeric names on booleans: arithmetic modulo "not zero".
    case ScalarOp::add:
      return binary<LogicalOr, Byte, Byte>;
    case ScalarOp::mul:
      return binary<LogicalAnd, Byte, Byte>;
    case ScalarOp::neg:
    case ScalarOp::sub:
    case ScalarOp::floor_div:
    case ScalarOp::remainder:
    case ScalarOp::pow:
      return nullptr;
    default:
      return typed_op<Byte>(op, 0);
  }
}

/// To what a narrow integer holds, in the type that it is computed in.
template <class From>
MicroFn narrow_from(ScalarOp op) {
  switch (op) {
    case ScalarOp::narrow_i8:
      return unary_loop<Convert<From, std::int8_t>, From, std::int32_t>;
    case ScalarOp::narrow_i16:
      return unary_loop<Convert<From, std::int16_t>, From, std::int32_t>;
    case ScalarOp::narrow_u32:
      return unary_loop<Convert<From, std::uint32_t>, From, std::int64_t>;
    default:
      return nullptr;
  }
}

MicroFn narrow_op(ScalarOp op, DType operand) {
  if (is_memory_type(operand) || !accepts(op, operand)) return nullptr;
  return dispatch<is_compute_number>(operand, [&]<class T>() -> MicroFn {
    if constexpr (sizeof(T) < 4)
      return nullptr;
    else
      return narrow_from<T>(op);
  });
}

MicroFn loop_op(ScalarOp op, DType operand, unsigned single) {
  if (is_memory_type(operand)) return nullptr;  // no values have types of memory
  if (operand == DType::boolean) return boolean_op(op, single);
  return dispatch<is_compute_number>(operand, [&]<class T>() { return typed_op<T>(op, single); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {

HWY_EXPORT(loop_op);
HWY_EXPORT(narrow_op);

MicroFn find_loop_op(ScalarOp op, DType operand, unsigned single) {
  return HWY_DYNAMIC_DISPATCH(loop_op)(op, operand, single);
}
MicroFn find_micro_op(ScalarOp op, DType operand, DType result, unsigned single) {
  if (op == ScalarOp::philox_uniform || op == ScalarOp::philox_normal)
    return single <= 1 ? find_random_op(op, result) : nullptr;  // the seed is one element in any case
  if (op == ScalarOp::cast) return single == 0 ? find_cast(operand, result) : nullptr;
  if (op == ScalarOp::round_f16 || op == ScalarOp::round_bf16)
    return single == 0 && operand == DType::f32 ? find_half_rounding(op) : nullptr;
  if (narrowed_to(op)) return single == 0 ? HWY_DYNAMIC_DISPATCH(narrow_op)(op, operand) : nullptr;
  if (operand == DType::f32 || operand == DType::f64)
    if (MicroFn fn = find_float_op(op, operand, single)) return fn;
  return find_loop_op(op, operand, single);
}

}  // namespace caldera::cpu
#endif
