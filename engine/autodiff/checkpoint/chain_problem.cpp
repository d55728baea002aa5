#include "engine/autodiff/checkpoint/chain_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "engine/base/error.h"

namespace caldera {
namespace {

/// Pairs of bytes and seconds that a search may hold: some 200 MB.
constexpr std::size_t kMostStates = std::size_t{1} << 23;

void check_chain(std::span<const ChainValue> values, std::int64_t always) {
  const auto is_sound = [](const ChainValue& v) {
    return v.bytes >= 0 && v.forward_bytes >= 0 && v.backward_bytes >= 0 && v.seconds >= 0 &&
           std::isfinite(v.seconds);
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!is_sound(values[i]))
      throw ValueError(
          fmt::format("value {} of a chain has negative bytes, or seconds that are negative or not finite; "
                      "give what it takes",
                      i));
  }
  if (always < 0)
    throw ValueError("the bytes that live all the time beside a chain are negative; give what they are");
}

/// What a step of each pass takes at value `i` besides what is kept of those before it, and before the one
/// before it.
std::int64_t backward_need(std::span<const ChainValue> values, std::size_t i) {
  return values[i].bytes + values[i].backward_bytes;
}
std::int64_t forward_need(std::span<const ChainValue> values, std::size_t i) {
  return (i > 0 ? values[i - 1].bytes : 0) + values[i].bytes + values[i].forward_bytes;
}

/// How many bytes of the first i values may be kept where a peak of `left` is, for each i from 0 to all of
/// them: never falling.
std::vector<std::int64_t> rooms(std::span<const ChainValue> values, std::int64_t left) {
  const std::size_t count = values.size();
  std::vector<std::int64_t> room(count + 1, 0);
  for (const ChainValue& v : values) room[count] += v.bytes;
  std::fill(room.begin(), room.end(), room[count]);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t& forward = room[i > 0 ? i - 1 : 0];
    forward = std::min(forward, left - forward_need(values, i));
    room[i] = std::min(room[i], left - backward_need(values, i));
  }
  // What is kept of the first values is kept of more of them.
  for (std::size_t i = count; i-- > 0;) room[i] = std::min(room[i], room[i + 1]);
  return room;
}

/// A lower bound on what the values from i on cost, by what is kept of those before: base[i] + price[i] *
/// bytes. Any prices that never rise along the chain give one (weak duality); these are the optimum's of the
/// linear relaxation, in which values may be kept in part.
struct Bounds {
  std::vector<double> price, base;
  double seconds_of_whole = 0;  ///< of an answer: what the relaxation keeps whole
  double slack = 0;             ///< more than what rounding adds to a bound
};

/// The part of a value that the relaxation keeps, as far as it has come.
struct Part {
  double density = 0;  ///< seconds a byte
  std::size_t value = 0;
  double bytes = 0;
  bool operator>(const Part& other) const { return density > other.density; }
};

Bounds bounds_of(std::span<const ChainValue> values, const std::vector<std::int64_t>& room) {
  const std::size_t count = values.size();
  Bounds bounds{.price = std::vector<double>(count + 1, 0), .base = std::vector<double>(count + 1, 0)};
  // The relaxation keeps all of each value, and then as much less of what saves least a byte as has no room.
  std::priority_queue<Part, std::vector<Part>, std::greater<>> parts;
  std::vector<bool> is_whole(count, true);
  double kept = 0, all_seconds = 0;
  for (std::size_t i = 0; i < count; ++i) {
    all_seconds += values[i].seconds;
    if (values[i].bytes == 0) continue;
    const auto bytes = static_cast<double>(values[i].bytes);
    parts.push({.density = values[i].seconds / bytes, .value = i, .bytes = bytes});
    kept += bytes;
    while (!parts.empty() && kept > static_cast<double>(room[i + 1])) {
      Part least = parts.top();
      parts.pop();
      is_whole[least.value] = false;
      bounds.price[i] = least.density;
      const double less = std::min(least.bytes, kept - static_cast<double>(room[i + 1]));
      kept -= less;
      least.bytes -= less;
      if (least.bytes > 0) parts.push(least);
    }
  }
  for (std::size_t i = count; i-- > 0;) {
    bounds.price[i] = std::max(bounds.price[i], bounds.price[i + 1]);
    const double price = bounds.price[i], fall = price - bounds.price[i + 1];
    bounds.base[i] = bounds.base[i + 1] +
                     std::min(values[i].seconds, price * static_cast<double>(values[i].bytes)) -
                     fall * static_cast<double>(room[i + 1]);
    if (!is_whole[i]) bounds.seconds_of_whole += values[i].seconds;
  }
  bounds.slack = 1e-9 * all_seconds;
  return bounds;
}

/// What is decided on the values up to some point.
struct State {
  std::int64_t bytes = 0;  // kept
  double seconds = 0;      // of what is not
  std::uint32_t from = 0;  // the state before the last value
  bool keeps_last = false;
};

/// States of which none has both fewer bytes and fewer seconds than another, by bytes.
using Front = std::vector<State>;

/// Decides on one value after the other. Finds what costs least in the room that there is, provided that it
/// is no more than `most_seconds`.
class ChainSearch {
 public:
  ChainSearch(std::span<const ChainValue> values, std::int64_t left, double most_seconds)
      : values_(values), room_(rooms(values, left)), bounds_(bounds_of(values, room_)) {
    most_seconds_ = std::min(most_seconds, bounds_.seconds_of_whole) + bounds_.slack;
  }

  std::optional<std::vector<bool>> operator()() {
    fronts_.push_back({State{}});
    for (std::size_t i = 0; i < values_.size(); ++i) decide(i);
    if (fronts_.back().empty()) return std::nullopt;
    std::vector<bool> kept(values_.size());
    std::size_t at = fronts_.back().size() - 1;  // the cheapest
    for (std::size_t i = kept.size(); i-- > 0;) {
      const State& state = fronts_[i + 1][at];
      kept[i] = state.keeps_last;
      at = state.from;
    }
    return kept;
  }

 private:
  /// Merges the states that keep value `i` with those that do not.
  void decide(std::size_t i) {
    const ChainValue& value = values_[i];
    const Front& before = fronts_.back();
    Front front;
    const auto add = [&](const State& state) {
      const bool has_room = state.bytes <= room_[i + 1];
      if (!has_room || (!front.empty() && front.back().seconds <= state.seconds)) return;
      const double least =
          state.seconds + bounds_.base[i + 1] + bounds_.price[i + 1] * static_cast<double>(state.bytes);
      if (least <= most_seconds_) front.push_back(state);
    };
    std::uint32_t without = 0, with = 0;  // that are merged
    while (with < before.size()) {
      const State keeps{.bytes = before[with].bytes + value.bytes,
                        .seconds = before[with].seconds,
                        .from = with,
                        .keeps_last = true};
      if (without < before.size()) {
        const State leaves{.bytes = before[without].bytes,
                           .seconds = before[without].seconds + value.seconds,
                           .from = without,
                           .keeps_last = false};
        const auto order = [](const State& s) { return std::pair(s.bytes, s.seconds); };
        if (order(leaves) < order(keeps)) {
          add(leaves);
          ++without;
          continue;
        }
      }
      add(keeps);
      ++with;
    }
    states_ += front.size();
    if (states_ > kMostStates)
      throw ValueError(
          fmt::format("an exact answer for a chain of {} values takes more than {} cases; round the "
                      "bytes of its values up to multiples of a larger unit",
                      values_.size(), kMostStates));
    fronts_.push_back(std::move(front));
  }

  std::span<const ChainValue> values_;
  std::vector<std::int64_t> room_;
  Bounds bounds_;
  double most_seconds_;
  std::vector<Front> fronts_;  // after each value
  std::size_t states_ = 0;
};

}  // namespace

ChainAnswer chain_answer(std::span<const ChainValue> values, std::int64_t always, std::vector<bool> kept) {
  if (kept.size() != values.size())
    throw ValueError(
        fmt::format("{} words on a chain of {} values; give one for each", kept.size(), values.size()));
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
  check_chain(values, always);
  const std::int64_t least = chain_answer(values, always, std::vector<bool>(values.size(), false)).peak_bytes;
  if (limit < least)
    throw OutOfMemoryError(
        fmt::format("a chain of {} values does not fit into {} bytes, whatever is computed again: the least "
                    "limit is {} bytes",
                    values.size(), limit, least));
  const auto search = [&](std::int64_t peak, double most_seconds) {
    return ChainSearch(values, peak - always, most_seconds)();
  };
  // What the relaxation keeps whole is an answer, so that this finds one.
  ChainAnswer best = chain_answer(values, always, *search(limit, std::numeric_limits<double>::infinity()));
  // The lowest limit at which it costs no more.
  std::int64_t low = least;
  while (low < best.peak_bytes) {
    const std::int64_t middle = low + (best.peak_bytes - low) / 2;
    const std::optional<std::vector<bool>> kept = search(middle, best.seconds);
    ChainAnswer answer = kept ? chain_answer(values, always, *kept) : ChainAnswer{};
    if (kept && answer.seconds <= best.seconds)
      best = std::move(answer);
    else
      low = middle + 1;
  }
  return best;
}

}  // namespace caldera
