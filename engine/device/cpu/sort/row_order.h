// The order of one row: keys that compare as whole numbers, and what is sorted by them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "engine/tensor/dispatch.h"

namespace caldera::cpu {

/// Keys of elements of at most 32 bits have 32, those of the others 64.
template <class T>
using SortKey = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;

/// An unsigned number that is as ascending as x. Zeros have one, NaN has the largest.
template <class T>
SortKey<T> sort_key(T x) {
  using Key = SortKey<T>;
  if constexpr (kIsHalf<T>) {
    constexpr Key kInfinity = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80, kZero = 0x8000;
    const Key magnitude = x.bits & 0x7fffU;
    if (magnitude > kInfinity) return ~Key{0};
    return (x.bits & kZero) != 0 ? kZero - magnitude : kZero + magnitude;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return ~Key{0};
    constexpr int kLast = 8 * sizeof(T) - 1;
    const Key bits = std::bit_cast<Key>(x + T(0));  // -0 becomes 0
    return bits ^ (bits >> kLast != 0 ? ~Key{0} : Key{1} << kLast);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(x) ^ (Key{1} << (8 * sizeof(Key) - 1));
  } else {
    return x;
  }
}

/// An element to be sorted: no two are equal, so any way of sorting gives the one order.
template <class Key>
struct SortCell {
  Key key;
  std::uint32_t place;
  friend bool operator<(const SortCell& a, const SortCell& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};

/// Finds the order of rows, one after the other, with memory that it keeps.
template <class Key>
class RowOrder {
 public:
  using Cell = SortCell<Key>;

  /// Writes to out[0..count) the positions of the elements that come in places first to first + count of the
  /// n keys in ascending order, equal ones as they stand. count >= 1, first + count <= n. `key(i)` gives key
  /// i.
  template <class KeyOf>
  void find(std::int64_t n, std::int64_t first, std::int64_t count, const KeyOf& key, std::int32_t* out) {
    cells_.clear();
    const std::int64_t last = first + count;
    const bool are_chosen = n >= kWorthChoosing && last <= n / kFew;
    if (are_chosen) {
      choose(n, last, key);
    } else {
      cells_.resize(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i)
        cells_[static_cast<std::size_t>(i)] = {key(i), static_cast<std::uint32_t>(i)};
    }
    order(first, last, !are_chosen);
    for (std::int64_t k = 0; k < count; ++k)
      out[k] = static_cast<std::int32_t>(cells_[static_cast<std::size_t>(first + k)].place);
  }

 private:
  static constexpr std::int64_t kWorthChoosing = 64;
  static constexpr std::int64_t kFew = 8;
  static constexpr std::int64_t kBlock = 16;

  /// Collects cells among which the `count` least of all are: what is not below the greatest of `count` that
  /// came before cannot be one of them.
  template <class KeyOf>
  void choose(std::int64_t n, std::int64_t count, const KeyOf& key) {
    const auto most = static_cast<std::size_t>(count + std::max<std::int64_t>(count, 64));
    Key bound = ~Key{0};
    bool is_bounded = false;
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      Key keys[kBlock];
      const std::int64_t size = std::min(kBlock, n - begin);
      Key least = ~Key{0};
      if (size == kBlock) {
        for (std::int64_t i = 0; i < kBlock; ++i) keys[i] = key(begin + i);
        for (std::int64_t i = 0; i < kBlock; ++i) least = std::min(least, keys[i]);
        if (is_bounded && least >= bound) continue;
      } else {
        for (std::int64_t i = 0; i < size; ++i) keys[i] = key(begin + i);
      }
      for (std::int64_t i = 0; i < size; ++i)
        if (!is_bounded || keys[i] < bound)
          cells_.push_back({keys[i], static_cast<std::uint32_t>(begin + i)});
      if (cells_.size() < most) continue;
      const auto end = cells_.begin() + count;
      std::nth_element(cells_.begin(), end - 1, cells_.end());
      cells_.erase(end, cells_.end());
      bound = cells_.back().key;
      is_bounded = true;
    }
  }

  /// Puts the cells that belong in places first to last there. `as_they_stand`: places ascend.
  void order(std::int64_t first, std::int64_t last, bool as_they_stand);

  std::vector<Cell> cells_, other_;
};

extern template class RowOrder<std::uint32_t>;
extern template class RowOrder<std::uint64_t>;

}  // namespace caldera::cpu
