// Shapes that the compiler knows: extents that are numbers, names, or not known, and what operations make of
// them.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "engine/tensor/shape.h"

namespace caldera {

/// One extent of a type's shape: a number; a name, for one that is known when the program runs and is the
/// same wherever the name stands; or `dyn`, of which nothing is known. A structural type: an argument of
/// templates.
struct Extent {
  std::int64_t size = -1;        ///< -1: not known
  std::array<char, 16> label{};  ///< of a name

  constexpr Extent() = default;
  template <std::integral N>
  constexpr Extent(N n) : size(static_cast<std::int64_t>(n)) {
    if (n < 0) throw "an extent is negative";
  }
  /// Names it by up to 15 characters: `constexpr Extent Batch{"Batch"};`.
  template <std::size_t N>
  requires(N <= 16) constexpr Extent(const char (&name)[N]) {
    for (std::size_t i = 0; i < N; ++i) label[i] = name[i];
  }

  constexpr bool is_static() const { return size >= 0; }
  constexpr bool is_named() const { return label[0] != '\0'; }
  constexpr bool operator==(const Extent&) const = default;
};

inline constexpr Extent dyn{};
/// Names of extents, apart from other things with these names: `using caldera::extents::Batch;`.
namespace extents {
/// Names the extent that most programs have.
inline constexpr Extent Batch{"Batch"};
}  // namespace extents

/// The shape of a type. Without a known rank nothing is known of the extents either.
struct StaticShape {
  static constexpr int kMost = kMaxRank;
  bool known = false;
  int rank = 0;
  std::array<Extent, kMost> extents{};

  constexpr bool operator==(const StaticShape&) const = default;
  constexpr Extent operator[](int axis) const { return extents[static_cast<std::size_t>(axis)]; }
  /// Returns the number of elements, or -1 where an extent is not a number.
  constexpr std::int64_t numel() const {
    std::int64_t n = known ? 1 : -1;
    for (int i = 0; i < rank && n >= 0; ++i) n = (*this)[i].is_static() ? n * (*this)[i].size : -1;
    return n;
  }
  constexpr void push(Extent e) {
    if (rank == kMost) throw "a tensor has at most kMaxRank axes";
    extents[static_cast<std::size_t>(rank++)] = e;
  }
};

template <class... E>
constexpr StaticShape shape_of(E... extents) {
  StaticShape shape{.known = true};
  (shape.push(Extent(extents)), ...);
  return shape;
}

/// The shape of which nothing is known.
inline constexpr StaticShape kAnyShape{};
/// The shape of a number.
inline constexpr StaticShape kNoAxes{.known = true};

namespace detail {

/// Counts a negative axis from the end.
constexpr int counted_axis(const StaticShape& s, int axis) { return axis < 0 ? axis + s.rank : axis; }
constexpr bool has_axis(const StaticShape& s, int axis) {
  return !s.known || (counted_axis(s, axis) >= 0 && counted_axis(s, axis) < s.rank);
}

/// Whether two extents may be one: numbers are equal, names are equal, and what is not known may be anything.
constexpr bool may_equal(Extent a, Extent b) { return a == b || a == dyn || b == dyn; }
/// The one of two equal extents that says more.
constexpr Extent sharper(Extent a, Extent b) { return a == dyn ? b : a; }

constexpr bool may_broadcast(Extent a, Extent b) {
  return may_equal(a, b) || a == Extent(1) || b == Extent(1);
}
constexpr Extent broadcast(Extent a, Extent b) {
  if (a == Extent(1)) return b;
  if (b == Extent(1)) return a;
  return sharper(a, b);
}
/// Axis number `i` from the last of a shape, 1 where there is none.
constexpr Extent from_end(const StaticShape& s, int i) { return i < s.rank ? s[s.rank - 1 - i] : Extent(1); }

constexpr bool may_broadcast(const StaticShape& a, const StaticShape& b) {
  if (!a.known || !b.known) return true;
  for (int i = 0; i < (a.rank > b.rank ? a.rank : b.rank); ++i)
    if (!may_broadcast(from_end(a, i), from_end(b, i))) return false;
  return true;
}
constexpr StaticShape broadcast(const StaticShape& a, const StaticShape& b) {
  if (!a.known || !b.known) return kAnyShape;
  StaticShape result{.known = true};
  const int rank = a.rank > b.rank ? a.rank : b.rank;
  for (int i = rank - 1; i >= 0; --i) result.push(broadcast(from_end(a, i), from_end(b, i)));
  return result;
}

/// Whether matmul takes them: both have axes, and the inner extents may be one. Batches broadcast.
constexpr bool inner_extents_agree(const StaticShape& a, const StaticShape& b) {
  if (!a.known || !b.known) return true;
  if (a.rank == 0 || b.rank == 0) return false;
  return may_equal(a[a.rank - 1], b[b.rank == 1 ? 0 : b.rank - 2]);
}
constexpr StaticShape without_last(const StaticShape& s, int count) {
  StaticShape result{.known = true};
  for (int i = 0; i + count < s.rank; ++i) result.push(s[i]);
  return result;
}
constexpr bool batches_agree(const StaticShape& a, const StaticShape& b) {
  return !a.known || !b.known || may_broadcast(without_last(a, 2), without_last(b, 2));
}
constexpr StaticShape matmul(const StaticShape& a, const StaticShape& b) {
  if (!a.known || !b.known) return kAnyShape;
  StaticShape result = broadcast(without_last(a, 2), without_last(b, 2));
  if (a.rank > 1) result.push(a[a.rank - 2]);
  if (b.rank > 1) result.push(b[b.rank - 1]);
  return result;
}

constexpr StaticShape without_axis(const StaticShape& s, int axis, bool keep) {
  if (!s.known) return kAnyShape;
  StaticShape result{.known = true};
  for (int i = 0; i < s.rank; ++i) {
    if (i != counted_axis(s, axis))
      result.push(s[i]);
    else if (keep)
      result.push(1);
  }
  return result;
}
constexpr StaticShape with_axis(const StaticShape& s, int axis, Extent extent) {
  if (!s.known) return kAnyShape;
  StaticShape result = s;
  result.extents[static_cast<std::size_t>(counted_axis(s, axis))] = extent;
  return result;
}
/// With a new axis in front of number `axis`, which may be the rank; a negative one counts from the new end.
constexpr StaticShape with_new_axis(const StaticShape& s, int axis) {
  if (!s.known) return kAnyShape;
  const int at = axis < 0 ? axis + s.rank + 1 : axis;
  StaticShape result{.known = true};
  for (int i = 0; i <= s.rank; ++i) {
    if (i == at) result.push(1);
    if (i < s.rank) result.push(s[i]);
  }
  return result;
}
/// Whether an axis may be dropped.
constexpr bool is_single(const StaticShape& s, int axis) {
  return !s.known || (has_axis(s, axis) && may_equal(s[counted_axis(s, axis)], 1));
}

/// Whether a list has each axis once.
template <std::size_t N>
constexpr bool is_permutation_of(const StaticShape& s, const std::array<int, N>& axes) {
  if (!s.known) return true;
  if (s.rank != static_cast<int>(N)) return false;
  unsigned seen = 0;
  for (const int axis : axes) {
    if (!has_axis(s, axis)) return false;
    seen |= 1U << static_cast<unsigned>(counted_axis(s, axis));
  }
  return seen == (1U << N) - 1;
}
template <std::size_t N>
constexpr StaticShape permuted(const StaticShape& s, const std::array<int, N>& axes) {
  StaticShape result{.known = s.known};
  if (s.known)
    for (const int axis : axes) result.push(s[counted_axis(s, axis)]);
  return result;
}

/// Whether shapes may hold the same elements: numbers have one product, names are the same ones.
constexpr bool may_reshape(const StaticShape& a, const StaticShape& b) {
  if (!a.known || !b.known) return true;
  std::int64_t p = 1, q = 1;
  std::array<bool, StaticShape::kMost> used{};
  bool open = false;
  int named = 0;
  for (int i = 0; i < a.rank; ++i) {
    if (a[i].is_static()) p *= a[i].size;
    if (a[i] == dyn) open = true;
    if (!a[i].is_named()) continue;
    ++named;
    for (int k = 0; k < b.rank; ++k)
      if (!used[static_cast<std::size_t>(k)] && b[k] == a[i]) {
        used[static_cast<std::size_t>(k)] = true;
        --named;
        break;
      }
  }
  for (int k = 0; k < b.rank; ++k) {
    if (b[k].is_static()) q *= b[k].size;
    if (b[k] == dyn) open = true;
    if (b[k].is_named() && !used[static_cast<std::size_t>(k)]) ++named;
  }
  return open || (named == 0 && p == q);
}

/// Whether shapes may be joined along an axis.
constexpr bool may_join(const StaticShape& a, const StaticShape& b, int axis) {
  if (!a.known || !b.known) return true;
  if (a.rank != b.rank || !has_axis(a, axis)) return false;
  for (int i = 0; i < a.rank; ++i)
    if (i != counted_axis(a, axis) && !may_equal(a[i], b[i])) return false;
  return true;
}
constexpr StaticShape joined(const StaticShape& a, const StaticShape& b, int axis) {
  if (!a.known || !b.known) return kAnyShape;
  StaticShape result{.known = true};
  for (int i = 0; i < a.rank; ++i) {
    const bool both = a[i].is_static() && b[i].is_static();
    if (i == counted_axis(a, axis))
      result.push(both ? Extent(a[i].size + b[i].size) : dyn);
    else
      result.push(sharper(a[i], b[i]));
  }
  return result;
}

/// Whether a type of one shape may be a type of another: the ranks and what is known of the extents agree.
constexpr bool may_become(const StaticShape& from, const StaticShape& to) {
  if (!from.known || !to.known) return true;
  if (from.rank != to.rank) return false;
  for (int i = 0; i < from.rank; ++i)
    if (!may_equal(from[i], to[i])) return false;
  return true;
}

/// An extent after a window of `kernel` went over it: convolution and pooling.
constexpr Extent windowed(Extent e, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return e.is_static() ? Extent((e.size + 2 * padding - kernel) / stride + 1) : dyn;
}
constexpr bool window_fits(Extent e, std::int64_t kernel, std::int64_t padding) {
  return !e.is_static() || e.size + 2 * padding >= kernel;
}

}  // namespace detail
}  // namespace caldera
