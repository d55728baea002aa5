// Ways in which an operand may lie in memory, and host arrays that see through them.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace caldera::testing {

/// How the elements of an operand lie in the leaf that holds them: as they are, with the axes in reverse
/// order, every second one behind an offset, backwards along each axis, or once for all of axis 0.
enum class Layout { plain, permuted, sliced, reversed, broadcast };
inline constexpr Layout kLayouts[] = {Layout::plain, Layout::permuted, Layout::sliced, Layout::reversed,
                                      Layout::broadcast};

inline std::string to_string(Layout layout) {
  constexpr const char* kNames[] = {"plain", "permuted", "sliced", "reversed", "broadcast"};
  return kNames[static_cast<int>(layout)];
}

/// Shape of the leaf behind an operand of `shape`.
inline Shape base_shape(const Shape& shape, Layout layout) {
  Shape base = shape;
  const int rank = shape.rank();
  for (int i = 0; i < rank; ++i) {
    if (layout == Layout::permuted) base[i] = shape[rank - 1 - i];
    if (layout == Layout::sliced) base[i] = 2 * shape[i] + 1;
    if (layout == Layout::broadcast && i == 0) base[i] = 1;
  }
  return base;
}

/// The operand, made from its leaf by movement operations.
inline LazyTensor view_of(const LazyTensor& base, const Shape& shape, Layout layout) {
  LazyTensor view = base;
  const int rank = shape.rank();
  std::vector<int> backwards;
  for (int i = 0; i < rank; ++i) {
    backwards.push_back(rank - 1 - i);
    if (layout == Layout::sliced) view = slice(view, i, 1, std::nullopt, 2);
    if (layout == Layout::reversed) view = slice(view, i, std::nullopt, std::nullopt, -1);
  }
  if (layout == Layout::permuted) view = permute_dims(view, backwards);
  if (layout == Layout::broadcast) view = broadcast_to(view, shape);
  return view;
}

using Index = std::vector<std::int64_t>;

inline Index unravel(std::int64_t linear, const Shape& shape) {
  Index at(static_cast<std::size_t>(shape.rank()));
  for (int i = shape.rank() - 1; i >= 0; --i) {
    at[static_cast<std::size_t>(i)] = linear % shape[i];
    linear /= shape[i];
  }
  return at;
}

inline std::size_t ravel(const Index& at, const Shape& shape) {
  std::int64_t linear = 0;
  for (int i = 0; i < shape.rank(); ++i) linear = linear * shape[i] + at[static_cast<std::size_t>(i)];
  return static_cast<std::size_t>(linear);
}

/// A dense array on the host, the material of oracles. Doubles hold every value that the tests use exactly.
struct Host {
  Shape shape;
  std::vector<double> values;

  explicit Host(const Shape& s) : shape(s), values(static_cast<std::size_t>(s.numel())) {}
  Host(const Shape& s, std::vector<double> v) : shape(s), values(std::move(v)) {}

  double& operator[](const Index& at) { return values[ravel(at, shape)]; }
  double operator[](const Index& at) const { return values[ravel(at, shape)]; }
  /// The element that broadcasting puts at `at`, an index of equal or higher rank.
  double stretched(const Index& at) const {
    Index mine(at.end() - shape.rank(), at.end());
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == 1) mine[static_cast<std::size_t>(i)] = 0;
    }
    return (*this)[mine];
  }
  /// Each element from body(index).
  template <class Body>
  static Host from(const Shape& shape, const Body& body) {
    Host out(shape);
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      out.values[i] = body(unravel(static_cast<std::int64_t>(i), shape));
    }
    return out;
  }
};

/// What view_of shows of a leaf: the same by plain loops.
inline Host seen_through(const Host& base, const Shape& shape, Layout layout) {
  return Host::from(shape, [&](const Index& at) {
    Index from = at;
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (layout == Layout::permuted) from[i] = at[at.size() - 1 - i];
      if (layout == Layout::sliced) from[i] = 2 * at[i] + 1;
      if (layout == Layout::reversed) from[i] = shape[static_cast<int>(i)] - 1 - at[i];
      if (layout == Layout::broadcast && i == 0) from[i] = 0;
    }
    return base[from];
  });
}

/// Uniform magnitudes in [low, high), half of them negative if `both_signs`. No zeros for low > 0: they hide
/// errors.
inline std::vector<double> random_values(std::int64_t count, double low, double high, bool both_signs,
                                         std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) {
    const std::uint64_t word = bits();
    value = low + (high - low) * static_cast<double>(word >> 11) * 0x1p-53;
    if (both_signs && (word & 1U) != 0) value = -value;
  }
  return values;
}

}  // namespace caldera::testing
