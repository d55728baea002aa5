#include "engine/device/cpu/sort/row_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <utility>

namespace caldera::cpu {
namespace {

/// Elements of which keys are made at a time: they stay in the first cache.
constexpr std::int64_t kChunk = 2048;
/// Of so many elements on a few are chosen, if they are at most this part of all.
constexpr std::int64_t kWorthChoosing = 64;
constexpr std::int64_t kFew = 8;
/// Groups for each element that is chosen, and their most elements: vectors of them are in a chunk.
constexpr std::int64_t kGroups = 4;
constexpr std::int64_t kLargestGroup = 64;
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

bool are_few_of(std::int64_t n, std::int64_t last) { return n >= kWorthChoosing && last <= n / kFew; }

template <class Key>
void RowOrder<Key>::find(const KeyRow& row, std::int64_t n, std::int64_t first, std::int64_t count,
                         std::int32_t* out) {
  const std::int64_t last = first + count;
  const bool are_chosen = are_few_of(n, last);
  keys_.resize(static_cast<std::size_t>(std::min(n, kChunk)));
  if (are_chosen)
    choose(row, n, last);
  else
    take_all(row, n);
  order(first, last, !are_chosen);
  for (std::int64_t k = 0; k < count; ++k)
    out[k] = static_cast<std::int32_t>(cells_[static_cast<std::size_t>(first + k)].place);
}

template <class Key>
void RowOrder<Key>::take_all(const KeyRow& row, std::int64_t n) {
  cells_.resize(static_cast<std::size_t>(n));
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const std::int64_t size = std::min(kChunk, n - begin);
    write_keys(row, begin, begin + size, keys_.data());
    Cell* __restrict const cells = cells_.data() + begin;
    const Key* __restrict const keys = keys_.data();
    for (std::int64_t i = 0; i < size; ++i) cells[i] = {keys[i], static_cast<std::uint32_t>(begin + i)};
  }
}

template <class Key>
void RowOrder<Key>::choose(const KeyRow& row, std::int64_t n, std::int64_t count) {
  const auto each_chunk = [&](const auto& visit) {
    for (std::int64_t begin = 0; begin < n; begin += kChunk) {
      const std::int64_t size = std::min(kChunk, n - begin);
      write_keys(row, begin, begin + size, keys_.data());
      visit(begin, size);
    }
  };
  // Groups whose least keys are more than those that are chosen: so many are not above the greatest of as
  // many.
  const auto share = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::min(n / (kGroups * count), kLargestGroup))));
  least_.resize(static_cast<std::size_t>(n / share));
  std::int64_t groups = 0;
  each_chunk([&](std::int64_t, std::int64_t size) {
    groups += least_of_groups(keys_.data(), size, share, least_.data() + groups);
  });
  Key bound = ~Key{0};
  if (groups >= count) {
    const auto last = least_.begin() + count - 1;
    std::nth_element(least_.begin(), last, least_.begin() + groups);
    bound = *last;
  }
  cells_.clear();
  places_.resize(static_cast<std::size_t>(std::min(n, kChunk)));
  each_chunk([&](std::int64_t begin, std::int64_t size) {
    const std::int64_t found = find_up_to(keys_.data(), size, bound, places_.data());
    for (std::int64_t i = 0; i < found; ++i) {
      const std::uint32_t place = places_[static_cast<std::size_t>(i)];
      cells_.push_back({keys_[place], static_cast<std::uint32_t>(begin) + place});
    }
  });
}

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
