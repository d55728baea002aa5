// TypedTensor: a LazyTensor whose element type, and as much of its shape as one likes, is part of its type.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "engine/typed/static_shape.h"

namespace caldera {

namespace detail {
/// Throws DTypeError or ShapeError, naming both, unless the tensor has this type and shape; ValueError for an
/// empty one.
void check_typed(const LazyTensor& x, DType type, const StaticShape& shape);
}  // namespace detail

/// The type behind TypedTensor<T, ...>: T is the element's C++ type, S the shape. It holds one LazyTensor and
/// is as large. Operations (typed_ops.h) are those of LazyTensor; what they may be given, and the shape of
/// what they return, is known when the program is compiled. A value of this type is never empty.
template <class T, StaticShape S>
class Typed {
 public:
  using Element = T;
  static constexpr StaticShape kShape = S;
  static constexpr DType kType = dtype_of<T>();

  /// Takes the tensor's node: nothing is copied. Throws as check_typed().
  explicit Typed(LazyTensor lazy) : lazy_(std::move(lazy)) { detail::check_typed(lazy_, kType, S); }
  /// Takes one of which the type says less, or more. Throws ShapeError where the shape turns out to differ;
  /// does not compile where it must.
  template <StaticShape R>
  requires(R != S && detail::may_become(R, S)) explicit(!S.known ? false : true) Typed(Typed<T, R> other)
      : Typed(std::move(other).lazy()) {}

  /// Gives the same tensor without its type. Nothing is copied.
  const LazyTensor& lazy() const& { return lazy_; }
  LazyTensor lazy() && { return std::move(lazy_); }
  explicit operator LazyTensor() const { return lazy_; }

  const Shape& shape() const { return lazy_.shape(); }
  std::int64_t numel() const { return lazy_.numel(); }
  Device device() const { return lazy_.device(); }
  const Typed& eval() const {
    lazy_.eval();
    return *this;
  }
  /// Evaluates, and copies the elements to the host, row-major.
  std::vector<T> to_vector() const { return lazy_.to_vector<T>(); }
  /// Evaluates the only element; does not compile where there are more.
  T item() const requires(S.numel() == 1 || S.numel() == -1) { return lazy_.item<T>(); }

 private:
  LazyTensor lazy_;
};

/// A tensor of T with these extents: TypedTensor<float, Batch, 784>. Without extents nothing is known of the
/// shape.
template <class T, Extent... E>
using TypedTensor = Typed<T, sizeof...(E) == 0 ? kAnyShape : shape_of(E...)>;
/// A number of T, on a device.
template <class T>
using TypedNumber = Typed<T, kNoAxes>;

template <class X>
inline constexpr bool kIsTyped = false;
template <class T, StaticShape S>
inline constexpr bool kIsTyped<Typed<T, S>> = true;
template <class X>
concept AnyTyped = kIsTyped<std::remove_cvref_t<X>>;

/// Gives a tensor its type: typed<float, Batch, 784>(x). Throws DTypeError or ShapeError where it has
/// another.
template <class T, Extent... E>
TypedTensor<T, E...> typed(LazyTensor x) {
  return TypedTensor<T, E...>(std::move(x));
}
/// Copies host data into a tensor of static extents. Throws ShapeError for another number of elements.
template <class T, Extent... E>
requires(shape_of(E...).numel() >= 0) TypedTensor<T, E...> typed_from(std::span<const T> data) {
  return TypedTensor<T, E...>(LazyTensor::from_span(data, Shape{E.size...}));
}

/// The elements on the host, with the extents of the type: a loop over them is one over a pointer.
template <class T, StaticShape S>
class HostValues {
 public:
  explicit HostValues(const Typed<T, S>& x) : values_(x.to_vector()) {}

  const T* begin() const { return values_.data(); }
  const T* end() const {
    if constexpr (S.numel() >= 0)
      return values_.data() + S.numel();
    else
      return values_.data() + values_.size();
  }
  const T* data() const { return values_.data(); }
  std::int64_t size() const { return end() - begin(); }
  /// Reads an element by one index an axis, unchecked. Extents must be numbers, but for the first.
  template <std::integral... I>
  requires(S.known && sizeof...(I) == static_cast<std::size_t>(S.rank)) const T& operator()(
      I... index) const {
    std::int64_t at = 0;
    int axis = 0;
    ((at = at * (axis == 0 ? 1 : S[axis].size) + static_cast<std::int64_t>(index), ++axis), ...);
    return values_[static_cast<std::size_t>(at)];
  }

 private:
  std::vector<T> values_;
};

template <class T, StaticShape S>
HostValues<T, S> host_values(const Typed<T, S>& x) {
  return HostValues<T, S>(x);
}

}  // namespace caldera
