// Memory planning: intermediates at offsets of one arena, space reused as soon as its last reader is done.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "engine/compile/compile.h"

namespace caldera {
namespace {

/// Free space of an arena that may grow. Best fit; neighbours merge.
class FreeSpace {
 public:
  std::int64_t take(std::int64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit != by_size_.end()) {
      const auto [size, offset] = *fit;
      remove(offset, size);
      if (size > bytes) add(offset + bytes, size - bytes);
      return offset;
    }
    // Nothing fits: grow at the end, from the last free block if it touches the end.
    std::int64_t offset = end_;
    if (!by_offset_.empty()) {
      const auto [last, size] = *std::prev(by_offset_.end());
      if (last + size == end_) {
        remove(last, size);
        offset = last;
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  void give(std::int64_t offset, std::int64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && offset + bytes == next->first) {
      bytes += next->second;
      remove(next->first, next->second);
    }
    next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto [before, size] = *std::prev(next);
      if (before + size == offset) {
        remove(before, size);
        offset = before;
        bytes += size;
      }
    }
    add(offset, bytes);
  }

  std::int64_t end() const { return end_; }

 private:
  void add(std::int64_t offset, std::int64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::int64_t offset, std::int64_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // (size, offset)
  std::int64_t end_ = 0;
};

std::int64_t aligned(std::int64_t bytes) {
  return std::max<std::int64_t>(1, (bytes + kArenaAlignment - 1) / kArenaAlignment) * kArenaAlignment;
}

}  // namespace

void plan_memory(Plan& plan) {
  constexpr std::int64_t kNever = -1;
  const std::size_t count = plan.buffers.size();
  std::vector<std::int64_t> first(count, kNever);
  std::vector<std::int64_t> last(count, kNever);
  const auto is_arena = [&](std::int32_t b) {
    return b >= 0 && plan.buffers[static_cast<std::size_t>(b)].role == BufferRole::arena;
  };
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    for (const Operand& operand : plan.steps[s].operands) {
      if (!is_arena(operand.buffer)) continue;
      const auto b = static_cast<std::size_t>(operand.buffer);
      if (first[b] == kNever) first[b] = static_cast<std::int64_t>(s);
      last[b] = static_cast<std::int64_t>(s);
    }
  }

  FreeSpace space;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto now = static_cast<std::int64_t>(s);
    for (const Operand& operand : plan.steps[s].operands) {
      const auto b = static_cast<std::size_t>(operand.buffer);
      if (!is_arena(operand.buffer) || first[b] != now) continue;
      plan.buffers[b].arena_offset = space.take(aligned(plan.buffers[b].bytes));
      first[b] = kNever;  // placed: the same buffer may stand twice among the operands
    }
    for (const Operand& operand : plan.steps[s].operands) {
      const auto b = static_cast<std::size_t>(operand.buffer);
      if (!is_arena(operand.buffer) || last[b] != now) continue;
      space.give(plan.buffers[b].arena_offset, aligned(plan.buffers[b].bytes));
      last[b] = kNever;
    }
  }
  plan.arena_bytes = space.end();
  plan.peak_bytes = plan.arena_bytes;
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.role == BufferRole::output) plan.peak_bytes += buffer.bytes;
  }
}

}  // namespace caldera
