#include "engine/compile/order/waiting_bytes.h"

namespace caldera {

WaitingBytes::WaitingBytes(const StepGraph& graph, std::span<const std::uint32_t> order, std::int64_t most)
    : graph_(graph), blocks_(graph.bytes.size()), has_run_(graph.size(), false), live_(graph), most_(most) {
  std::vector<std::uint32_t> next(blocks_.size() + 1, 0);
  for (std::uint32_t s : order) {
    for (std::int32_t b : graph.touches[s]) {
      Block& block = blocks_[static_cast<std::size_t>(b)];
      block.last = s;
      ++block.left;
    }
  }
  for (std::size_t b = 0; b < blocks_.size(); ++b) next[b + 1] = next[b] + blocks_[b].left;
  std::vector<std::uint32_t> sorted(next.back());
  std::vector<std::uint32_t> at(next.begin(), next.end() - 1);
  for (std::uint32_t s : order)
    for (std::int32_t b : graph.touches[s]) sorted[at[static_cast<std::size_t>(b)]++] = s;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    for (std::uint32_t i = next[b]; i < next[b + 1]; ++i) touched_by_.push(sorted[i]);
    touched_by_.end_row();
  }
}

std::optional<std::uint32_t> WaitingBytes::to_run_before(std::uint32_t step) {
  if (held_bytes_ == 0 || live_.during(step) + held_bytes_ <= most_) return {};
  while (!blocks_[static_cast<std::size_t>(held_[first_])].held) ++first_;
  const auto held = static_cast<std::size_t>(held_[first_]);
  const auto touching = touched_by_[held];
  std::uint32_t& next = blocks_[held].next;
  while (has_run_[touching[next]]) ++next;
  return touching[next];
}

void WaitingBytes::run(std::uint32_t step) {
  has_run_[step] = true;
  for (std::int32_t b : graph_.touches[step]) {
    Block& block = blocks_[static_cast<std::size_t>(b)];
    if (--block.left > 0 || !block.held) continue;
    block.held = false;
    held_bytes_ -= graph_.bytes[static_cast<std::size_t>(b)];
  }
}

void WaitingBytes::pass(std::uint32_t step) {
  live_.run(step, [](std::int32_t) {});
  for (std::int32_t b : graph_.touches[step]) {
    Block& block = blocks_[static_cast<std::size_t>(b)];
    if (block.last != step || block.left == 0) continue;
    block.held = true;
    held_bytes_ += graph_.bytes[static_cast<std::size_t>(b)];
    held_.push_back(b);
  }
}

}  // namespace caldera
