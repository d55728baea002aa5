// SIMD micro-operations of f32 and f64.
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/device/cpu/simd/micro_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/simd/micro_ops_float.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/math_f32-inl.h"
#include "engine/device/cpu/simd/quotients-inl.h"
#include "engine/device/cpu/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class F, class T>
void unary(void* out, const void* a, const void*, const void*, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto* o = static_cast<T*>(out);
  const auto* x = static_cast<const T*>(a);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto low = F::of(d, hn::LoadU(d, x + i));
    const auto high = F::of(d, hn::LoadU(d, x + i + lanes));
    hn::StoreU(low, d, o + i);
    hn::StoreU(high, d, o + i + lanes);
  }
  if (i + lanes <= n) {
    hn::StoreU(F::of(d, hn::LoadU(d, x + i)), d, o + i);
    i += lanes;
  }
  if (i < n) store_rest(d, F::of(d, load_rest(d, x + i, n - i)), o + i, n - i);
}

/// An operand of which every element is read, or one that stands for all.
template <class D, bool kSingle>
struct Source {
  using T = hn::TFromD<D>;
  HWY_INLINE Source(D, const void* memory) : p(static_cast<const T*>(memory)) {}
  HWY_INLINE hn::Vec<D> at(D d, std::int64_t i) const { return hn::LoadU(d, p + i); }
  HWY_INLINE hn::Vec<D> rest(D d, std::int64_t i, std::int64_t n) const { return load_rest(d, p + i, n); }
  const T* p;
};
template <class D>
struct Source<D, true> {
  using T = hn::TFromD<D>;
  HWY_INLINE Source(D d, const void* memory) : value(hn::Set(d, static_cast<const T*>(memory)[0])) {}
  HWY_INLINE hn::Vec<D> at(D, std::int64_t) const { return value; }
  HWY_INLINE hn::Vec<D> rest(D, std::int64_t, std::int64_t) const { return value; }
  const hn::Vec<D> value;
};

template <class F, class T, bool kSingleA, bool kSingleB>
void binary(void* out, const void* a, const void* b, const void*, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto* o = static_cast<T*>(out);
  const Source<decltype(d), kSingleA> x(d, a);
  const Source<decltype(d), kSingleB> y(d, b);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto low = F::of(d, x.at(d, i), y.at(d, i));
    const auto high = F::of(d, x.at(d, i + lanes), y.at(d, i + lanes));
    hn::StoreU(low, d, o + i);
    hn::StoreU(high, d, o + i + lanes);
  }
  if (i + lanes <= n) {
    hn::StoreU(F::of(d, x.at(d, i), y.at(d, i)), d, o + i);
    i += lanes;
  }
  if (i < n) store_rest(d, F::of(d, x.rest(d, i, n - i), y.rest(d, i, n - i)), o + i, n - i);
}

template <class F, class T>
MicroFn find_binary(unsigned single) {
  switch (single) {
    case 0:
      return binary<F, T, false, false>;
    case 1:
      return binary<F, T, true, false>;
    case 2:
      return binary<F, T, false, true>;
    default:
      return nullptr;
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
CALDERA_BINARY(CopySign, hn::CopySign(x, y))
CALDERA_BINARY(Atan2, atan2_f32(x, y))

// The elementary functions that have vectors: engine/device/cpu/simd/math_f32-inl.h.
template <ScalarOp Op>
struct Elementary;
#define CALDERA_STRUCT_other(op)
#define CALDERA_STRUCT_library_math(op)
#define CALDERA_STRUCT_vector_math(op) \
  template <>                          \
  struct Elementary<ScalarOp::op> {    \
    template <class D, class V>        \
    static HWY_INLINE V of(D, V x) {   \
      return op##_f32(x);              \
    }                                  \
  };
#define CALDERA_STRUCT(op, name, operands, gives_boolean, domain, math) CALDERA_STRUCT_##math(op)
CALDERA_SCALAR_OPS(CALDERA_STRUCT)
#undef CALDERA_STRUCT

template <class T>
MicroFn binary_op(ScalarOp op, unsigned single) {
  switch (op) {
    case ScalarOp::add:
      return find_binary<Add, T>(single);
    case ScalarOp::sub:
      return find_binary<Sub, T>(single);
    case ScalarOp::mul:
      return find_binary<Mul, T>(single);
    case ScalarOp::div:
      return find_binary<Div, T>(single);
    case ScalarOp::maximum:
      return find_binary<Maximum, T>(single);
    case ScalarOp::minimum:
      return find_binary<Minimum, T>(single);
    case ScalarOp::copysign:
      return find_binary<CopySign, T>(single);
    case ScalarOp::floor_div:
      return find_binary<ByQuotient<FloorQuotient>, T>(single);
    case ScalarOp::remainder:
      return find_binary<ByQuotient<FloorRest>, T>(single);
    case ScalarOp::atan2:
      if constexpr (std::is_same_v<T, float>) return find_binary<Atan2, T>(single);
      return nullptr;
    default:
      return nullptr;
  }
}

template <class T>
MicroFn unary_op(ScalarOp op) {
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
    default:
      return nullptr;
  }
}

MicroFn elementary_f32(ScalarOp op) {
  switch (op) {
#define CALDERA_CASE_other(op)
#define CALDERA_CASE_library_math(op)
#define CALDERA_CASE_vector_math(op) \
  case ScalarOp::op:                 \
    return unary<Elementary<ScalarOp::op>, float>;
#define CALDERA_CASE(op, name, operands, gives_boolean, domain, math) CALDERA_CASE_##math(op)
    CALDERA_SCALAR_OPS(CALDERA_CASE)
#undef CALDERA_CASE
    default:
      return nullptr;
  }
}

MicroFn float_op(ScalarOp op, DType type, unsigned single) {
  if (MicroFn fn = type == DType::f32 ? binary_op<float>(op, single) : binary_op<double>(op, single))
    return fn;
  if (single != 0) return nullptr;
  if (type == DType::f64) return unary_op<double>(op);
  const MicroFn fn = unary_op<float>(op);
  return fn != nullptr ? fn : elementary_f32(op);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(float_op);
MicroFn find_float_op(ScalarOp op, DType type, unsigned single) {
  return HWY_DYNAMIC_DISPATCH(float_op)(op, type, single);
}
}  // namespace caldera::cpu
#endif
