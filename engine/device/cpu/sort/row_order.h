// The order of one row: keys that compare as whole numbers, and what is sorted by them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/cpu/sort/key_ops.h"

namespace caldera::cpu {

/// An element to be sorted: no two are equal, so any way of sorting gives the one order.
template <class Key>
struct SortCell {
  Key key;
  std::uint32_t place;
  friend bool operator<(const SortCell& a, const SortCell& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};

/// Says whether so few of the first elements in order are asked for that they are chosen, not sorted.
bool are_few_of(std::int64_t n, std::int64_t last);

/// Finds the order of rows, one after the other, with memory that it keeps. Key: SortKey of the elements.
template <class Key>
class RowOrder {
 public:
  using Cell = SortCell<Key>;

  /// Writes to out[0..count) the positions of the elements that come in places first to first + count of the
  /// n elements in ascending order, equal ones as they stand. count >= 1, first + count <= n.
  void find(const KeyRow& row, std::int64_t n, std::int64_t first, std::int64_t count, std::int32_t* out);

 private:
  /// Collects cells among which the `count` least of all are.
  void choose(const KeyRow& row, std::int64_t n, std::int64_t count);
  /// Collects the cells of all elements.
  void take_all(const KeyRow& row, std::int64_t n);
  /// Puts the cells that belong in places first to last there. `as_they_stand`: places ascend.
  void order(std::int64_t first, std::int64_t last, bool as_they_stand);

  std::vector<Cell> cells_, other_;
  std::vector<Key> keys_, least_;
  std::vector<std::uint32_t> places_;
};

extern template class RowOrder<std::uint32_t>;
extern template class RowOrder<std::uint64_t>;

}  // namespace caldera::cpu
