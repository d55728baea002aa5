#include "engine/device/cpu/sort/short_rows.h"

#include <algorithm>
#include <bit>

#include "engine/device/cpu/sort/row_order.h"
#include "engine/device/cpu/tiles/turned_copy.h"

namespace caldera::cpu {
namespace {

/// Longer rows are counted by digits: a network of n elements has about n log2(n)^2 / 4 exchanges.
constexpr std::int64_t kLongestForNetwork = 512;
/// Rows of which few elements are chosen are worth a network up to this length.
constexpr std::int64_t kLongestChosen = 128;

}  // namespace

std::vector<Exchange> merge_exchange(std::int64_t n) {
  std::vector<Exchange> network;
  if (n < 2) return network;
  const auto half = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)) / 2);
  for (std::int64_t p = half; p > 0; p /= 2) {
    std::int64_t rest = 0, distance = p;
    for (std::int64_t q = half;; q /= 2) {
      for (std::int64_t i = 0; i + distance < n; ++i)
        if ((i & p) == rest)
          network.push_back({static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(i + distance)});
      if (q == p) break;
      distance = q - p;
      rest = p;
    }
  }
  return network;
}

bool suits_network(DType of, std::int64_t length, std::int64_t last) {
  if (size_of(of) > 4 || length < 2) return false;
  return length <= (are_few_of(length, last) ? kLongestChosen : kLongestForNetwork);
}

void order_short_rows(const SortedRows& rows, const std::vector<Exchange>& network, std::int64_t begin,
                      std::int64_t end, Scratch& scratch) {
  const std::int64_t n = rows.length, count = rows.count;
  const auto size = static_cast<std::int64_t>(size_of(rows.row.of));
  const auto bytes_of = [](std::int64_t elements) {
    return static_cast<std::size_t>(elements * 4 + 63) / 64 * 64;
  };
  const std::size_t key_bytes = bytes_of(n * kRowsTogether), place_bytes = bytes_of(count * kRowsTogether);
  std::byte* memory = scratch.get(4 * key_bytes + place_bytes);
  auto* const cells = reinterpret_cast<std::uint64_t*>(memory);
  auto* const keys = reinterpret_cast<std::uint32_t*>(memory + 2 * key_bytes);
  auto* const columns = reinterpret_cast<std::uint32_t*>(memory + 3 * key_bytes);
  auto* const places = reinterpret_cast<std::uint32_t*>(memory + 4 * key_bytes);
  const bool adjoin = rows.row.stride == 1 && rows.row_stride == n;
  for (std::int64_t first = begin; first < end; first += kRowsTogether) {
    const std::int64_t together = std::min(kRowsTogether, end - first);
    if (together < kRowsTogether) std::fill_n(columns, n * kRowsTogether, 0U);
    const auto row_at = [&](std::int64_t r) {
      KeyRow row = rows.row;
      row.from += (first + r) * rows.row_stride * size;
      return row;
    };
    if (rows.row_stride == 1) {  // side by side already
      for (std::int64_t i = 0; i < n; ++i) {
        KeyRow across = row_at(0);
        across.from += i * rows.row.stride * size;
        across.stride = 1;
        write_keys(across, 0, together, columns + i * kRowsTogether);
      }
    } else {
      if (adjoin)
        write_keys(row_at(0), 0, together * n, keys);
      else
        for (std::int64_t r = 0; r < together; ++r) write_keys(row_at(r), 0, n, keys + r * n);
      turn_block(reinterpret_cast<const std::byte*>(keys), n, reinterpret_cast<std::byte*>(columns),
                 kRowsTogether, n, together, 4);
    }
    order_columns(columns, n, network, cells, rows.first, count, places);
    turn_block(reinterpret_cast<const std::byte*>(places), kRowsTogether,
               reinterpret_cast<std::byte*>(rows.out + first * rows.out_stride), rows.out_stride, together,
               count, 4);
  }
}

}  // namespace caldera::cpu
