#include "training/data/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/base/error.h"

namespace caldera {

std::vector<std::vector<std::int64_t>> pack(std::span<const std::int64_t> lengths, std::int64_t capacity) {
  std::vector<std::int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length_of = [&](std::int64_t i) { return lengths[static_cast<std::size_t>(i)]; };
  std::ranges::stable_sort(order, std::greater<>(), length_of);
  std::vector<std::vector<std::int64_t>> rows;
  std::set<std::pair<std::int64_t, std::size_t>> room;  // what is left in each row, and the row
  for (const std::int64_t i : order) {
    const std::int64_t length = length_of(i);
    if (length < 1 || length > capacity)
      throw ValueError(fmt::format("pack: a sequence of {} in rows of {}", length, capacity));
    auto best = room.lower_bound({length, 0});
    if (best == room.end()) {
      best = room.emplace(capacity, rows.size()).first;
      rows.emplace_back();
    }
    const auto [left, row] = *best;
    rows[row].push_back(i);
    room.erase(best);
    if (left > length) room.emplace(left - length, row);
  }
  return rows;
}

}  // namespace caldera
