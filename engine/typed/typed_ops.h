// Operations on typed tensors: those of LazyTensor by the same names, with element types that agree and
// shapes that fit, or the program does not compile. Each builds the node that the untyped one builds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "engine/typed/typed_concepts.h"
#include "engine/typed/typed_tensor.h"
#include "ops/ops.h"

namespace caldera {

namespace detail {

/// The type of an operation on both, element by element.
template <class T, class A, class B>
using Broadcast = Typed<T, broadcast(kShapeOf<A>, kShapeOf<B>)>;
template <class A>
using ElementOf = typename std::remove_cvref_t<A>::Element;

/// Finds the type of sums: types below 32 bits widen.
template <class T>
using SumElement = std::conditional_t<(sizeof(T) < 4) && !std::floating_point<T>, std::int32_t, T>;

}  // namespace detail

// ---- Element by element: shapes broadcast
// ------------------------------------------------------------------------

#define CALDERA_TYPED_OPERATOR(op)                                              \
  template <AnyTyped A, AnyTyped B>                                             \
  requires SameElementType<A, B> && ShapesBroadcast<A, B>                       \
  auto operator op(const A& a, const B& b) {                                    \
    return detail::Broadcast<detail::ElementOf<A>, A, B>(a.lazy() op b.lazy()); \
  }                                                                             \
  template <AnyTyped A, NumberFor<A> N>                                         \
  A operator op(const A& a, N b) {                                              \
    return A(a.lazy() op LazyTensor(b));                                        \
  }                                                                             \
  template <AnyTyped A, NumberFor<A> N>                                         \
  A operator op(N a, const A& b) {                                              \
    return A(LazyTensor(a) op b.lazy());                                        \
  }
CALDERA_TYPED_OPERATOR(+)
CALDERA_TYPED_OPERATOR(-)
CALDERA_TYPED_OPERATOR(*)
#undef CALDERA_TYPED_OPERATOR

/// Division is of floats: integers have no quotient of their own type.
template <HasFloats A, HasFloats B>
requires SameElementType<A, B> && ShapesBroadcast<A, B>
auto operator/(const A& a, const B& b) {
  return detail::Broadcast<detail::ElementOf<A>, A, B>(a.lazy() / b.lazy());
}
template <HasFloats A, NumberFor<A> N>
A operator/(const A& a, N b) {
  return A(a.lazy() / LazyTensor(b));
}
template <HasFloats A, NumberFor<A> N>
A operator/(N a, const A& b) {
  return A(LazyTensor(a) / b.lazy());
}
template <AnyTyped A>
A operator-(const A& a) {
  return A(-a.lazy());
}

#define CALDERA_TYPED_COMPARISON(op)                                                                       \
  template <AnyTyped A, AnyTyped B>                                                                        \
  requires SameElementType<A, B> && ShapesBroadcast<A, B>                                                  \
  auto operator op(const A& a, const B& b) { return detail::Broadcast<bool, A, B>(a.lazy() op b.lazy()); } \
  template <AnyTyped A, NumberFor<A> N>                                                                    \
  auto operator op(const A& a, N b) {                                                                      \
    return Typed<bool, A::kShape>(a.lazy() op LazyTensor(b));                                              \
  }
CALDERA_TYPED_COMPARISON(<)
CALDERA_TYPED_COMPARISON(>)
CALDERA_TYPED_COMPARISON(<=)
CALDERA_TYPED_COMPARISON(>=)
CALDERA_TYPED_COMPARISON(==)
CALDERA_TYPED_COMPARISON(!=)
#undef CALDERA_TYPED_COMPARISON

#define CALDERA_TYPED_PAIR(name)                                                    \
  template <AnyTyped A, AnyTyped B>                                                 \
  requires SameElementType<A, B> && ShapesBroadcast<A, B>                           \
  auto name(const A& a, const B& b) {                                               \
    return detail::Broadcast<detail::ElementOf<A>, A, B>(name(a.lazy(), b.lazy())); \
  }
CALDERA_TYPED_PAIR(maximum)
CALDERA_TYPED_PAIR(minimum)
CALDERA_TYPED_PAIR(pow)
#undef CALDERA_TYPED_PAIR

#define CALDERA_TYPED_FLOAT_FUNCTION(name) \
  template <HasFloats A>                   \
  A name(const A& x) {                     \
    return A(name(x.lazy()));              \
  }
CALDERA_TYPED_FLOAT_FUNCTION(exp)
CALDERA_TYPED_FLOAT_FUNCTION(log)
CALDERA_TYPED_FLOAT_FUNCTION(sqrt)
CALDERA_TYPED_FLOAT_FUNCTION(rsqrt)
CALDERA_TYPED_FLOAT_FUNCTION(sin)
CALDERA_TYPED_FLOAT_FUNCTION(cos)
CALDERA_TYPED_FLOAT_FUNCTION(tanh)
CALDERA_TYPED_FLOAT_FUNCTION(sigmoid)
CALDERA_TYPED_FLOAT_FUNCTION(gelu)
CALDERA_TYPED_FLOAT_FUNCTION(silu)
CALDERA_TYPED_FLOAT_FUNCTION(softplus)
CALDERA_TYPED_FLOAT_FUNCTION(floor)
#undef CALDERA_TYPED_FLOAT_FUNCTION

#define CALDERA_TYPED_FUNCTION(name) \
  template <AnyTyped A>              \
  A name(const A& x) {               \
    return A(name(x.lazy()));        \
  }
CALDERA_TYPED_FUNCTION(relu)
CALDERA_TYPED_FUNCTION(abs)
CALDERA_TYPED_FUNCTION(square)
CALDERA_TYPED_FUNCTION(sign)
CALDERA_TYPED_FUNCTION(stop_gradient)
#undef CALDERA_TYPED_FUNCTION

/// Converts elements: the only way from one type to another.
template <class T, AnyTyped A>
auto cast(const A& x) {
  return Typed<T, A::kShape>(astype(x.lazy(), dtype_of<T>()));
}
template <HasBooleans C, AnyTyped A, AnyTyped B>
requires SameElementType<A, B> && ShapesBroadcast<A, B> && ShapesBroadcast<C, detail::Broadcast<bool, A, B>>
auto where(const C& condition, const A& a, const B& b) {
  using Chosen = detail::Broadcast<detail::ElementOf<A>, A, B>;
  return detail::Broadcast<detail::ElementOf<A>, C, Chosen>(where(condition.lazy(), a.lazy(), b.lazy()));
}

// ---- Products
// ----------------------------------------------------------------------------------------------------

/// Multiplies matrices, or vectors and matrices; axes in front of them broadcast.
template <AnyTyped A, AnyTyped B>
requires SameElementType<A, B> && InnerExtentsAgree<A, B> && BatchesBroadcast<A, B>
auto matmul(const A& a, const B& b) {
  return Typed<detail::ElementOf<A>, detail::matmul(A::kShape, B::kShape)>(matmul(a.lazy(), b.lazy()));
}

// ---- Reductions: sum(x), sum<1>(x), sum<1, true>(x), which keeps the axis
// -----------------------------------------

#define CALDERA_TYPED_REDUCTION(name, asks, Result)                                                    \
  template <asks A>                                                                                    \
  auto name(const A& x) {                                                                              \
    using T = detail::ElementOf<A>;                                                                    \
    return TypedNumber<Result>(name(x.lazy()));                                                        \
  }                                                                                                    \
  template <int kAxis, bool kKeep = false, asks A>                                                     \
  requires HasAxis<A, kAxis>                                                                           \
  auto name(const A& x) {                                                                              \
    using T = detail::ElementOf<A>;                                                                    \
    return Typed<Result, detail::without_axis(A::kShape, kAxis, kKeep)>(name(x.lazy(), kAxis, kKeep)); \
  }
CALDERA_TYPED_REDUCTION(sum, AnyTyped, detail::SumElement<T>)
CALDERA_TYPED_REDUCTION(prod, AnyTyped, detail::SumElement<T>)
CALDERA_TYPED_REDUCTION(mean, HasFloats, T)
CALDERA_TYPED_REDUCTION(max, AnyTyped, T)
CALDERA_TYPED_REDUCTION(min, AnyTyped, T)
#undef CALDERA_TYPED_REDUCTION

#define CALDERA_TYPED_ALONG(name)        \
  template <int kAxis = -1, HasFloats A> \
  requires HasAxis<A, kAxis> A name(const A& x) { return A(name(x.lazy(), kAxis)); }
CALDERA_TYPED_ALONG(softmax)
CALDERA_TYPED_ALONG(log_softmax)
#undef CALDERA_TYPED_ALONG

// ---- Shapes
// ------------------------------------------------------------------------------------------------------

/// Reshapes to these extents; a name among them keeps the extent that the operand has by that name.
template <Extent... E, AnyTyped A>
requires SameElementCount<A, E...>
auto reshape(const A& x) {
  std::array<std::int64_t, sizeof...(E)> wanted{E.size...};  // -1: what is left
  constexpr StaticShape kTo = shape_of(E...);
  int open = 0;
  for (const std::int64_t e : wanted) open += e < 0 ? 1 : 0;
  for (int i = 0; open > 1 && i < kTo.rank; ++i)
    for (int k = 0; k < A::kShape.rank; ++k)
      if (kTo[i].is_named() && kTo[i] == A::kShape[k]) wanted[static_cast<std::size_t>(i)] = x.shape()[k];
  return TypedTensor<detail::ElementOf<A>, E...>(
      reshape(x.lazy(), Shape(std::span<const std::int64_t>(wanted))));
}

/// Swaps the last two axes.
template <AnyTyped A>
requires HasAxis<A, -2>
auto transpose(const A& x) {
  constexpr StaticShape s = A::kShape;
  if constexpr (!s.known)
    return A(x.lazy().transpose());
  else
    return Typed<detail::ElementOf<A>, detail::with_axis(detail::with_axis(s, -1, s[s.rank - 2]), -2,
                                                         s[s.rank - 1])>(x.lazy().transpose());
}
template <int... kAxes, AnyTyped A>
requires PermutesAxes<A, kAxes...>
auto permute(const A& x) {
  return Typed<detail::ElementOf<A>,
               detail::permuted(A::kShape, std::array<int, sizeof...(kAxes)>{kAxes...})>(
      x.lazy().permute({kAxes...}));
}
template <int kAxis, AnyTyped A>
requires HasAxis<A, (kAxis < 0 ? kAxis + 1 : kAxis - 1)> ||
    (A::kShape.rank == 0) auto expand_dims(const A& x) {
  return Typed<detail::ElementOf<A>, detail::with_new_axis(A::kShape, kAxis)>(x.lazy().unsqueeze(kAxis));
}
template <int kAxis, AnyTyped A>
requires HasAxis<A, kAxis> && AxisIsSingle<A, kAxis>
auto squeeze(const A& x) {
  return Typed<detail::ElementOf<A>, detail::without_axis(A::kShape, kAxis, false)>(x.lazy().squeeze(kAxis));
}
template <int kAxis, AnyTyped A, AnyTyped B>
requires SameElementType<A, B> && JoinsAlong<A, B, kAxis>
auto concatenate(const A& a, const B& b) {
  return Typed<detail::ElementOf<A>, detail::joined(A::kShape, B::kShape, kAxis)>(
      concatenate({a.lazy(), b.lazy()}, kAxis));
}
/// Slices from kFrom to kTo, without it, along an axis that is long enough.
template <int kAxis, std::int64_t kFrom, std::int64_t kTo, AnyTyped A>
requires HasAxis<A, kAxis> &&(kFrom >= 0 && kFrom <= kTo) &&
    (!A::kShape.known || !A::kShape[detail::counted_axis(A::kShape, kAxis)].is_static() ||
     kTo <= A::kShape[detail::counted_axis(A::kShape, kAxis)].size) auto slice(const A& x) {
  return Typed<detail::ElementOf<A>, detail::with_axis(A::kShape, kAxis, kTo - kFrom)>(
      slice(x.lazy(), kAxis, kFrom, kTo));
}
template <Extent... E, AnyTyped A>
requires(detail::may_broadcast(A::kShape, shape_of(E...)) &&
         (E.is_static() && ...)) auto broadcast_to(const A& x) {
  return TypedTensor<detail::ElementOf<A>, E...>(broadcast_to(x.lazy(), Shape{E.size...}));
}

}  // namespace caldera
