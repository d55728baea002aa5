#include "engine/compile/arena/arena_layout.h"

#include <algorithm>
#include <utility>

#include "engine/compile/arena/arena_blocks.h"
#include "engine/compile/arena/arena_segments.h"
#include "engine/compile/arena/free_space.h"

namespace caldera {
namespace {

ArenaLayout in_order_of_time(const std::vector<ArenaBlock>& blocks) {
  ArenaLayout layout{std::vector<std::int64_t>(blocks.size()), 0, {}};
  FreeSpace space;
  walk(
      blocks, [&](std::uint32_t b) { layout.offsets[b] = space.take(blocks[b].bytes); },
      [&](std::uint32_t b) { space.give(layout.offsets[b], blocks[b].bytes); });
  layout.bytes = space.end();
  return layout;
}

/// Places one block after the other, each into the smallest gap that its lifetime leaves between those placed
/// before. Quadratic.
ArenaLayout in_given_order(const std::vector<ArenaBlock>& blocks, const std::vector<std::uint32_t>& order) {
  struct Placed {
    std::int64_t offset;
    ArenaBlock block;
  };
  std::vector<Placed> placed;  // by offset
  placed.reserve(blocks.size());
  ArenaLayout layout{std::vector<std::int64_t>(blocks.size()), 0, {}};
  for (std::uint32_t b : order) {
    std::int64_t covered = 0;  // everything below is taken or was looked at
    std::int64_t best = -1;
    std::int64_t best_gap = 0;
    for (const Placed& other : placed) {
      if (!live_together(other.block, blocks[b])) continue;
      const std::int64_t gap = other.offset - covered;
      if (gap >= blocks[b].bytes && (best < 0 || gap < best_gap)) {
        best = covered;
        best_gap = gap;
      }
      covered = std::max(covered, other.offset + other.block.bytes);
    }
    const std::int64_t offset = best < 0 ? covered : best;
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [](std::int64_t o, const Placed& p) { return o < p.offset; });
    placed.insert(at, {offset, blocks[b]});
    layout.offsets[b] = offset;
    layout.bytes = std::max(layout.bytes, offset + blocks[b].bytes);
  }
  return layout;
}

/// Looks for a layout of few blocks within `limit` bytes. Any layout can be pushed down until every block
/// is on the ground or on another; taken by rising offset, each block of such a layout rests on those
/// before it. So all are found by stacking blocks in every order, offsets never falling.
class StackingSearch {
 public:
  StackingSearch(const std::vector<ArenaBlock>& blocks, std::int64_t limit)
      : blocks_(blocks), limit_(limit), offsets_(blocks.size(), kUnplaced) {
    for (std::size_t a = 0; a < blocks.size(); ++a) {
      neighbours_.emplace_back();
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        if (a != b && live_together(blocks[a], blocks[b])) neighbours_[a].push_back(b);
      }
    }
    for (const ArenaBlock& block : blocks) times_.push_back(block.first);
    std::sort(times_.begin(), times_.end());
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
    // What is alive at each time beyond what is placed must fit above the highest block of that time.
    for (std::int64_t time : times_) {
      std::int64_t live = 0;
      for (const ArenaBlock& block : blocks) {
        if (block.first <= time && time <= block.last) live += block.bytes;
      }
      unplaced_.push_back(live);
    }
    top_.assign(times_.size(), 0);
  }

  /// Empty offsets if there is none, or it takes too long to find.
  ArenaLayout run() {
    ArenaLayout layout;
    if (place(0, 0)) {
      layout.offsets = offsets_;
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        layout.bytes = std::max(layout.bytes, offsets_[b] + blocks_[b].bytes);
      }
    }
    return layout;
  }

 private:
  static constexpr std::int64_t kUnplaced = -1;
  /// Blocks tried in a place. Nearly all layouts that more of them find are found with these, and small plans
  /// are not to cost more than large ones.
  static constexpr int kBudget = 60;

  std::int64_t resting_place(std::size_t b) const {
    std::int64_t height = 0;
    for (std::size_t other : neighbours_[b]) {
      if (offsets_[other] != kUnplaced) height = std::max(height, offsets_[other] + blocks_[other].bytes);
    }
    return height;
  }

  bool place(std::size_t count, std::int64_t floor) {
    if (count == blocks_.size()) return true;
    if (--budget_ < 0) return false;
    struct Choice {
      std::int64_t offset;
      std::size_t block;
    };
    std::vector<Choice> choices;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (offsets_[b] != kUnplaced) continue;
      const std::int64_t offset = resting_place(b);
      if (offset + blocks_[b].bytes > limit_) return false;  // and it can only get higher
      if (offset >= floor) choices.push_back({offset, b});
    }
    std::sort(choices.begin(), choices.end(), [&](const Choice& a, const Choice& b) {
      if (a.offset != b.offset) return a.offset < b.offset;
      const ArenaBlock& x = blocks_[a.block];
      const ArenaBlock& y = blocks_[b.block];
      const std::int64_t x_area = x.bytes * (x.last - x.first + 1);
      const std::int64_t y_area = y.bytes * (y.last - y.first + 1);
      return x_area != y_area ? x_area > y_area : a.block < b.block;
    });
    for (const Choice& choice : choices) {
      const std::vector<std::int64_t> tops = top_;
      offsets_[choice.block] = choice.offset;
      if (count_in(choice.block, choice.offset) && place(count + 1, choice.offset)) return true;
      count_out(choice.block);
      top_ = tops;
      offsets_[choice.block] = kUnplaced;
      if (budget_ < 0) return false;
    }
    return false;
  }

  /// False if something that lives beside the block has no room left.
  bool count_in(std::size_t b, std::int64_t offset) {
    bool fits = true;
    for (std::size_t t = 0; t < times_.size(); ++t) {
      if (times_[t] < blocks_[b].first || times_[t] > blocks_[b].last) continue;
      unplaced_[t] -= blocks_[b].bytes;
      top_[t] = std::max(top_[t], offset + blocks_[b].bytes);
      fits = fits && top_[t] + unplaced_[t] <= limit_;
    }
    return fits;
  }
  void count_out(std::size_t b) {
    for (std::size_t t = 0; t < times_.size(); ++t) {
      if (times_[t] >= blocks_[b].first && times_[t] <= blocks_[b].last) unplaced_[t] += blocks_[b].bytes;
    }
  }

  const std::vector<ArenaBlock>& blocks_;
  std::int64_t limit_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::vector<std::size_t>> neighbours_;
  std::vector<std::int64_t> times_;     // of births: something is alive at its most at one of them
  std::vector<std::int64_t> unplaced_;  // bytes alive at each time that have no place yet
  std::vector<std::int64_t> top_;       // of what has one
  int budget_ = kBudget;
};

}  // namespace

std::int64_t peak_of(const std::vector<ArenaBlock>& blocks) {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  walk(
      blocks,
      [&](std::uint32_t b) {
        live += blocks[b].bytes;
        peak = std::max(peak, live);
      },
      [&](std::uint32_t b) { live -= blocks[b].bytes; });
  return peak;
}

ArenaLayout lay_out(const std::vector<ArenaBlock>& blocks, std::int64_t segment) {
  constexpr std::size_t kFew = 40;  // for the search
  ArenaLayout best = in_order_of_time(blocks);
  const std::int64_t least = peak_of(blocks);
  const auto consider = [&](ArenaLayout layout) {
    if (!layout.offsets.empty() && layout.bytes < best.bytes) best = std::move(layout);
  };
  if (best.bytes > least && blocks.size() <= kManyBlocks) consider(in_given_order(blocks, by_size(blocks)));
  if (best.bytes > least && blocks.size() <= kManyBlocks)
    consider(in_given_order(blocks, by_lifetime(blocks)));
  if (best.bytes > least && blocks.size() <= kFew) {
    // Within the least first, then within a little more.
    for (int eighth = 0; eighth < 8 && best.bytes > least; ++eighth) {
      const std::int64_t limit = least + (best.bytes - least) * eighth / 8;
      ArenaLayout layout = StackingSearch(blocks, limit).run();
      if (layout.offsets.empty()) continue;
      consider(std::move(layout));
      break;
    }
  }
  return best.bytes > segment ? lay_out_in_segments(blocks, segment) : best;
}

}  // namespace caldera
