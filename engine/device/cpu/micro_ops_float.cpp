// SIMD micro-operations of f32 and f64.
#include <cstdint>
#include <cstring>

#include "engine/device/cpu/micro_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/micro_ops_float.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/math_f32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Runs F over whole vectors, and over the rest through a padded copy.
template <class F, class T>
void unary(void* out, const void* a, const void*, const void*, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto* o = static_cast<T*>(out);
  const auto* x = static_cast<const T*>(a);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F::of(d, hn::LoadU(d, x + i)), d, o + i);
  if (i < n) {
    HWY_ALIGN T rest[hn::MaxLanes(hn::ScalableTag<T>())] = {};
    std::memcpy(rest, x + i, static_cast<std::size_t>(n - i) * sizeof(T));
    hn::Store(F::of(d, hn::Load(d, rest)), d, rest);
    std::memcpy(o + i, rest, static_cast<std::size_t>(n - i) * sizeof(T));
  }
}

template <class F, class T>
void binary(void* out, const void* a, const void* b, const void*, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto* o = static_cast<T*>(out);
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto low = F::of(d, hn::LoadU(d, x + i), hn::LoadU(d, y + i));
    const auto high = F::of(d, hn::LoadU(d, x + i + lanes), hn::LoadU(d, y + i + lanes));
    hn::StoreU(low, d, o + i);
    hn::StoreU(high, d, o + i + lanes);
  }
  for (; i + lanes <= n; i += lanes) hn::StoreU(F::of(d, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, o + i);
  if (i < n) {
    HWY_ALIGN T left[hn::MaxLanes(hn::ScalableTag<T>())] = {};
    HWY_ALIGN T right[hn::MaxLanes(hn::ScalableTag<T>())] = {};
    const auto bytes = static_cast<std::size_t>(n - i) * sizeof(T);
    std::memcpy(left, x + i, bytes);
    std::memcpy(right, y + i, bytes);
    hn::Store(F::of(d, hn::Load(d, left), hn::Load(d, right)), d, left);
    std::memcpy(o + i, left, bytes);
  }
}

#define CALDERA_UNARY(Name, expression) \
  struct Name {                         \
    template <class D, class V>         \
    static HWY_INLINE V of(D d, V x) {  \
      (void)d;                          \
      return expression;                \
    }                                   \
  };
#define CALDERA_BINARY(Name, expression)    \
  struct Name {                             \
    template <class D, class V>             \
    static HWY_INLINE V of(D d, V x, V y) { \
      (void)d;                              \
      return expression;                    \
    }                                       \
  };

CALDERA_UNARY(Neg, hn::Neg(x))
CALDERA_UNARY(Abs, hn::Abs(x))
CALDERA_UNARY(Floor, hn::Floor(x))
CALDERA_UNARY(Ceil, hn::Ceil(x))
CALDERA_UNARY(Round, hn::Round(x))
CALDERA_UNARY(Trunc, hn::Trunc(x))
CALDERA_UNARY(Sqrt, hn::Sqrt(x))
CALDERA_UNARY(Reciprocal, hn::Div(hn::Set(d, 1), x))
CALDERA_UNARY(Rsqrt, hn::Div(hn::Set(d, 1), hn::Sqrt(x)))
CALDERA_BINARY(Add, hn::Add(x, y))
CALDERA_BINARY(Sub, hn::Sub(x, y))
CALDERA_BINARY(Mul, hn::Mul(x, y))
CALDERA_BINARY(Div, hn::Div(x, y))
// A NaN on the left is kept by the second condition, one on the right by the failing comparison.
CALDERA_BINARY(Maximum, hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(x)), x, y))
CALDERA_BINARY(Minimum, hn::IfThenElse(hn::Or(hn::Lt(x, y), hn::IsNaN(x)), x, y))

CALDERA_UNARY(Exp, exp_f32(x))
CALDERA_UNARY(Expm1, expm1_f32(x))
CALDERA_UNARY(Log, log_f32(x))
CALDERA_UNARY(Log1p, log1p_f32(x))
CALDERA_UNARY(Sin, sin_f32(x))
CALDERA_UNARY(Cos, cos_f32(x))
CALDERA_UNARY(Tanh, tanh_f32(x))
CALDERA_UNARY(Sigmoid, sigmoid_f32(x))
CALDERA_UNARY(Erf, erf_f32(x))

template <class T>
MicroFn arithmetic(ScalarOp op) {
  switch (op) {
    case ScalarOp::neg:
      return unary<Neg, T>;
    case ScalarOp::abs:
      return unary<Abs, T>;
    case ScalarOp::floor:
      return unary<Floor, T>;
    case ScalarOp::ceil:
      return unary<Ceil, T>;
    case ScalarOp::round:
      return unary<Round, T>;
    case ScalarOp::trunc:
      return unary<Trunc, T>;
    case ScalarOp::sqrt:
      return unary<Sqrt, T>;
    case ScalarOp::rsqrt:
      return unary<Rsqrt, T>;
    case ScalarOp::reciprocal:
      return unary<Reciprocal, T>;
    case ScalarOp::add:
      return binary<Add, T>;
    case ScalarOp::sub:
      return binary<Sub, T>;
    case ScalarOp::mul:
      return binary<Mul, T>;
    case ScalarOp::div:
      return binary<Div, T>;
    case ScalarOp::maximum:
      return binary<Maximum, T>;
    case ScalarOp::minimum:
      return binary<Minimum, T>;
    default:
      return nullptr;
  }
}

MicroFn elementary_f32(ScalarOp op) {
  switch (op) {
    case ScalarOp::exp:
      return unary<Exp, float>;
    case ScalarOp::expm1:
      return unary<Expm1, float>;
    case ScalarOp::log:
      return unary<Log, float>;
    case ScalarOp::log1p:
      return unary<Log1p, float>;
    case ScalarOp::sin:
      return unary<Sin, float>;
    case ScalarOp::cos:
      return unary<Cos, float>;
    case ScalarOp::tanh:
      return unary<Tanh, float>;
    case ScalarOp::sigmoid:
      return unary<Sigmoid, float>;
    case ScalarOp::erf:
      return unary<Erf, float>;
    default:
      return nullptr;
  }
}

MicroFn float_op(ScalarOp op, DType type) {
  if (type == DType::f64) return arithmetic<double>(op);
  const MicroFn fn = arithmetic<float>(op);
  return fn != nullptr ? fn : elementary_f32(op);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(float_op);
MicroFn find_float_op(ScalarOp op, DType type) { return HWY_DYNAMIC_DISPATCH(float_op)(op, type); }
}  // namespace caldera::cpu
#endif
