// Names what typed operations ask of their operands. A call that does not compile names the one that fails.
#pragma once

#include <array>
#include <concepts>
#include <type_traits>

#include "engine/typed/typed_tensor.h"

namespace caldera {

/// Both have one element type: convert one with cast<T>(x).
template <class A, class B>
concept SameElementType =
    AnyTyped<A> && AnyTyped<B> && std::same_as < typename std::remove_cvref_t<A>::Element,
typename std::remove_cvref_t<B>::Element > ;

namespace detail {
template <class A>
inline constexpr StaticShape kShapeOf = std::remove_cvref_t<A>::kShape;
}  // namespace detail

/// The shapes broadcast: from the last axis on, extents are equal or one of them is 1.
template <class A, class B>
concept ShapesBroadcast = detail::may_broadcast(detail::kShapeOf<A>, detail::kShapeOf<B>);

/// The last extent of the first is that of the second's rows.
template <class A, class B>
concept InnerExtentsAgree = detail::inner_extents_agree(detail::kShapeOf<A>, detail::kShapeOf<B>);

/// The axes in front of matrices broadcast.
template <class A, class B>
concept BatchesBroadcast = detail::batches_agree(detail::kShapeOf<A>, detail::kShapeOf<B>);

/// The tensor has this axis; a negative one counts from the end.
template <class A, int kAxis>
concept HasAxis = detail::has_axis(detail::kShapeOf<A>, kAxis);

/// The axis has one element.
template <class A, int kAxis>
concept AxisIsSingle = detail::is_single(detail::kShapeOf<A>, kAxis);

/// The axes are named once each.
template <class A, int... kAxes>
concept PermutesAxes = detail::is_permutation_of(detail::kShapeOf<A>,
                                                 std::array<int, sizeof...(kAxes)>{kAxes...});

/// Both shapes hold the same number of elements.
template <class A, Extent... E>
concept SameElementCount = detail::may_reshape(detail::kShapeOf<A>, shape_of(E...));

/// The extents are equal but along the axis.
template <class A, class B, int kAxis>
concept JoinsAlong = detail::may_join(detail::kShapeOf<A>, detail::kShapeOf<B>, kAxis);

/// The elements are floating.
template <class A>
concept HasFloats = AnyTyped<A> && is_floating(std::remove_cvref_t<A>::kType);
/// The elements are integers.
template <class A>
concept HasIntegers = AnyTyped<A> && is_integral(std::remove_cvref_t<A>::kType);
/// The elements are booleans.
template <class A>
concept HasBooleans = AnyTyped<A> && std::same_as < typename std::remove_cvref_t<A>::Element,
bool > ;

/// The tensor has this many axes, as far as its type says.
template <class A, int kRank>
concept HasRank = !detail::kShapeOf<A>.known || detail::kShapeOf<A>.rank == kRank;

/// A C++ number that a tensor of these elements takes without loss of kind: integers take no fractions.
template <class N, class A>
concept NumberFor = std::is_arithmetic_v<N> && AnyTyped<A> &&(std::integral<N> || HasFloats<A>);

}  // namespace caldera
