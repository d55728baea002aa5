// Functions over many keys at once, made for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/tensor/dtype.h"

namespace caldera::cpu {

/// Elements of one row, `stride` elements apart.
struct KeyRow {
  const std::byte* from = nullptr;
  std::int64_t stride = 1;
  DType of = DType::f32;
  bool descending = false;  // keys are complements: the greatest element has the least
};

/// Writes the keys of elements begin to end, as SortKey of their type, to keys[0 .. end - begin).
void write_keys(const KeyRow& row, std::int64_t begin, std::int64_t end, void* keys);

/// Appends the least keys of groups of `share` keys, of most of keys[0 .. n), to `least`, and returns how
/// many they are: at most n / share.
std::int64_t least_of_groups(const std::uint32_t* keys, std::int64_t n, std::int64_t share,
                             std::uint32_t* least);
std::int64_t least_of_groups(const std::uint64_t* keys, std::int64_t n, std::int64_t share,
                             std::uint64_t* least);

/// Writes where the keys of keys[0 .. n) are that are not above a bound, in order, and returns how many they
/// are. `places`: room for n.
std::int64_t find_up_to(const std::uint32_t* keys, std::int64_t n, std::uint32_t bound,
                        std::uint32_t* places);
std::int64_t find_up_to(const std::uint64_t* keys, std::int64_t n, std::uint64_t bound,
                        std::uint32_t* places);

/// Two places of a row, of which the lesser element goes to the first.
struct Exchange {
  std::uint16_t low, high;
};

/// Rows that are ordered side by side: columns of what order_columns() reads.
inline constexpr std::int64_t kRowsTogether = 16;

/// Orders n keys of each column, keys[i * kRowsTogether + column], by a network of exchanges that sorts n
/// cells, and writes where the elements of places first to first + count were, likewise by columns; equal
/// ones as they stood. `cells`: room for n * kRowsTogether.
void order_columns(const std::uint32_t* keys, std::int64_t n, std::span<const Exchange> network,
                   std::uint64_t* cells, std::int64_t first, std::int64_t count, std::uint32_t* places);

}  // namespace caldera::cpu
