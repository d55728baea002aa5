#include "engine/autodiff/checkpoint/chain_problem.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "engine/base/error.h"

namespace caldera {
namespace {

/// The first values decided on: what is kept of them takes `bytes` and costs `seconds`.
struct Partial {
  std::int64_t bytes = 0;         // kept
  std::int64_t bytes_before = 0;  // kept, without the last value
  double seconds = 0;
  std::int32_t from = -1;  // of the partial answers one value shorter
  bool kept = false;       // the last value
};

/// What a step of each pass takes at value `i` besides what is kept of those before it, and before the one
/// before it.
std::int64_t backward_need(std::span<const ChainValue> values, std::size_t i) {
  return values[i].bytes + values[i].backward_bytes;
}
std::int64_t forward_need(std::span<const ChainValue> values, std::size_t i) {
  return (i > 0 ? values[i - 1].bytes : 0) + values[i].bytes + values[i].forward_bytes;
}

/// Leaves those that no other beats. Of equals in both the one that kept less before is left: both counts
/// bound what may come.
void prune(std::vector<Partial>& partials) {
  std::ranges::sort(partials, [](const Partial& a, const Partial& b) {
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    if (a.seconds != b.seconds) return a.seconds < b.seconds;
    return a.bytes_before < b.bytes_before;
  });
  std::vector<Partial> left;
  for (const Partial& p : partials) {
    const bool is_beaten = std::ranges::any_of(left, [&](const Partial& other) {
      return other.seconds <= p.seconds && other.bytes_before <= p.bytes_before;
    });
    if (!is_beaten) left.push_back(p);
  }
  partials = std::move(left);
}

/// The cheapest within `limit`, if there is one.
std::optional<ChainAnswer> solve(std::span<const ChainValue> values, std::int64_t always,
                                 std::int64_t limit) {
  const std::int64_t room = limit - always;
  std::vector<std::vector<Partial>> all{{Partial{}}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<Partial> next;
    for (std::size_t p = 0; p < all.back().size(); ++p) {
      const Partial& before = all.back()[p];
      if (before.bytes_before + forward_need(values, i) > room ||
          before.bytes + backward_need(values, i) > room)
        continue;
      const auto from = static_cast<std::int32_t>(p);
      next.push_back({before.bytes + values[i].bytes, before.bytes, before.seconds, from, true});
      next.push_back({before.bytes, before.bytes, before.seconds + values[i].seconds, from, false});
    }
    prune(next);
    if (next.empty()) return std::nullopt;
    all.push_back(std::move(next));
  }
  const Partial* best = &*std::ranges::min_element(all.back(), {}, &Partial::seconds);
  std::vector<bool> kept(values.size());
  for (std::size_t i = values.size(); i-- > 0;) {
    kept[i] = best->kept;
    best = &all[i][static_cast<std::size_t>(best->from)];
  }
  return chain_answer(values, always, std::move(kept));
}

}  // namespace

ChainAnswer chain_answer(std::span<const ChainValue> values, std::int64_t always, std::vector<bool> kept) {
  ChainAnswer answer{.kept = std::move(kept), .peak_bytes = always};
  std::int64_t bytes = 0, bytes_before = 0;  // kept of the values before, and before the last of them
  for (std::size_t i = 0; i < values.size(); ++i) {
    answer.peak_bytes = std::max({answer.peak_bytes, always + bytes_before + forward_need(values, i),
                                  always + bytes + backward_need(values, i)});
    bytes_before = bytes;
    if (answer.kept[i])
      bytes += values[i].bytes;
    else
      answer.seconds += values[i].seconds;
  }
  return answer;
}

ChainAnswer cheapest_chain(std::span<const ChainValue> values, std::int64_t always, std::int64_t limit) {
  std::optional<ChainAnswer> best = solve(values, always, limit);
  if (!best) {
    const ChainAnswer least = chain_answer(values, always, std::vector<bool>(values.size(), false));
    throw OutOfMemoryError(
        fmt::format("a chain of {} values does not fit into {} bytes, whatever is computed again: the least "
                    "limit is {} bytes",
                    values.size(), limit, least.peak_bytes));
  }
  // As cheap with a lower peak?
  while (const std::optional<ChainAnswer> lower = solve(values, always, best->peak_bytes - 1)) {
    if (lower->seconds > best->seconds) break;
    best = lower;
  }
  return *best;
}

}  // namespace caldera
