#include "engine/compile/order/shift_steps.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace caldera {
namespace {

using Order = std::vector<std::uint32_t>;
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// An order that grows at its front, and in its middle. Steps know which of them comes first.
class GrowingOrder {
 public:
  explicit GrowingOrder(std::size_t steps) : next_(steps, kNone), before_(steps, kNone), key_(steps, 0) {}

  bool is_before(std::uint32_t a, std::uint32_t b) const { return key_[a] < key_[b]; }
  std::uint32_t first() const { return first_; }

  /// Puts a step right before another one; kNone: at the end of an empty order.
  void insert(std::uint32_t s, std::uint32_t behind) {
    next_[s] = behind;
    if (behind == kNone) {
      key_[s] = kMiddle;
    } else {
      before_[s] = before_[behind];
      before_[behind] = s;
      if (before_[s] != kNone) next_[before_[s]] = s;
      const std::int64_t low = before_[s] == kNone ? key_[behind] - 2 * kGap : key_[before_[s]];
      key_[s] = low + (key_[behind] - low) / 2;
    }
    if (behind == first_) first_ = s;
    if (key_[s] == (before_[s] == kNone ? 0 : key_[before_[s]])) space_out();
  }
  Order steps() const {
    Order order;
    for (std::uint32_t s = first_; s != kNone; s = next_[s]) order.push_back(s);
    return order;
  }

 private:
  static constexpr std::int64_t kMiddle = std::int64_t{1} << 62;
  static constexpr std::int64_t kGap = std::int64_t{1} << 24;

  void space_out() {
    const Order order = steps();
    for (std::size_t i = 0; i < order.size(); ++i)
      key_[order[order.size() - 1 - i]] = kMiddle - static_cast<std::int64_t>(i) * kGap;
  }

  std::vector<std::uint32_t> next_, before_;
  std::vector<std::int64_t> key_;  // rising along the order
  std::uint32_t first_ = kNone;
};

/// Moves each step to right before the first one that it has an edge to, if it touches more bytes first than
/// it touches last.
Order shifted(const StepGraph& graph, const Rows<std::uint32_t>& edges, const Order& order) {
  GrowingOrder later(graph.size());
  std::vector<std::uint32_t> last(graph.bytes.size(), kNone);  // that touches each block
  std::vector<std::uint32_t> touches_left(graph.touch_count);  // before the growing order
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::uint32_t s = order[i];
    std::uint32_t reader = kNone;
    for (const std::uint32_t next : edges[s]) {
      if (reader == kNone || later.is_before(next, reader)) reader = next;
    }
    std::int64_t gain = 0;
    for (const std::int32_t block : graph.touches[s]) {
      const auto b = static_cast<std::size_t>(block);
      if (graph.touch_count[b] == 1) continue;
      const bool is_first = --touches_left[b] == 0;
      const bool stays = last[b] == kNone || (reader != kNone && later.is_before(last[b], reader));
      if (is_first && !stays) gain += graph.bytes[b];
      if (!is_first && stays) gain -= graph.bytes[b];
    }
    later.insert(s, reader != kNone && gain > 0 ? reader : later.first());
    for (const std::int32_t block : graph.touches[s]) {
      std::uint32_t& end = last[static_cast<std::size_t>(block)];
      if (end == kNone || later.is_before(end, s)) end = s;
    }
  }
  return later.steps();
}

}  // namespace

Order shift_steps(const StepGraph& graph, const Order& order) {
  Order late = shifted(graph, graph.successors, order);
  std::reverse(late.begin(), late.end());
  Order early = shifted(graph, reversed_edges(graph), late);
  std::reverse(early.begin(), early.end());
  return early;
}

}  // namespace caldera
