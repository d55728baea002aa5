#include "engine/device/cpu/sort/row_order.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace caldera::cpu {
namespace {

/// From so many cells on digits are counted; fewer are compared.
constexpr std::int64_t kWorthCounting = 512;
/// Bits of a digit: the counters of all digits stay in the first cache.
constexpr int kDigitBits = 8;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

/// Sorts by keys alone, the last digit first, with what has equal keys as it stands.
template <class Cell>
void sort_by_digits(std::vector<Cell>& cells, std::vector<Cell>& other) {
  constexpr int kCount = 8 * static_cast<int>(sizeof(Cell::key)) / kDigitBits;
  std::array<std::array<std::uint32_t, kDigits>, kCount> counts{};
  for (const Cell& cell : cells)
    for (int d = 0; d < kCount; ++d)
      ++counts[static_cast<std::size_t>(d)][cell.key >> (d * kDigitBits) & (kDigits - 1)];
  other.resize(cells.size());
  for (int d = 0; d < kCount; ++d) {
    auto& starts = counts[static_cast<std::size_t>(d)];
    const auto digit = [d](const Cell& cell) { return cell.key >> (d * kDigitBits) & (kDigits - 1); };
    if (starts[digit(cells[0])] == cells.size()) continue;  // all have the same
    std::uint32_t start = 0;
    for (std::uint32_t& count : starts) start += std::exchange(count, start);
    for (const Cell& cell : cells) other[starts[digit(cell)]++] = cell;
    cells.swap(other);
  }
}

}  // namespace

template <class Key>
void RowOrder<Key>::order(std::int64_t first, std::int64_t last, bool as_they_stand) {
  const auto n = static_cast<std::int64_t>(cells_.size());
  const auto begin = cells_.begin() + first;
  const auto end = cells_.begin() + last;
  if (as_they_stand && n >= kWorthCounting && last - first > n / kFew) return sort_by_digits(cells_, other_);
  if (first > 0) std::nth_element(cells_.begin(), begin, cells_.end());
  if (last < n && (first == 0 || last - first > 1)) std::nth_element(begin, end - 1, cells_.end());
  std::sort(begin, end);
}

template class RowOrder<std::uint32_t>;
template class RowOrder<std::uint64_t>;

}  // namespace caldera::cpu
