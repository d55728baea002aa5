#include "engine/compile/arena/arena_segments.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/compile/arena/free_space.h"

namespace caldera {
namespace {

/// Where each block is, and the length of every segment.
struct Segmented {
  struct Place {
    std::size_t segment = 0;
    std::int64_t offset = 0;
  };
  std::vector<Place> places;
  std::vector<std::int64_t> lengths;

  ArenaLayout one_after_the_other() const {
    ArenaLayout layout;
    std::vector<std::int64_t> begins;
    for (const std::int64_t length : lengths) {
      begins.push_back(layout.bytes);
      if (layout.bytes > 0) layout.cuts.push_back(layout.bytes);
      layout.bytes += length;
    }
    layout.offsets.reserve(places.size());
    for (const Place& place : places) layout.offsets.push_back(begins[place.segment] + place.offset);
    return layout;
  }
};

/// Blocks that are larger than a segment. Each has a segment to itself while it lives; of those that are
/// free, the smallest that is large enough, or else the largest, which grows.
class LargeSegments {
 public:
  explicit LargeSegments(Segmented& result) : result_(result) {}

  std::size_t take(std::int64_t bytes) {
    const auto better = [&](std::size_t a, std::size_t b) {
      const std::int64_t x = result_.lengths[a], y = result_.lengths[b];
      return x >= bytes && y >= bytes ? x < y : x > y;
    };
    const auto best = std::min_element(free_.begin(), free_.end(), better);
    if (best == free_.end()) {
      result_.lengths.push_back(bytes);
      return result_.lengths.size() - 1;
    }
    const std::size_t segment = *best;
    free_.erase(best);
    result_.lengths[segment] = std::max(result_.lengths[segment], bytes);
    return segment;
  }
  void give(std::size_t segment) { free_.push_back(segment); }

 private:
  Segmented& result_;
  std::vector<std::size_t> free_;
};

/// Best fit in order of time. Near-linear; large blocks share their segments with nothing else.
ArenaLayout segments_in_order_of_time(const std::vector<ArenaBlock>& blocks, std::int64_t segment) {
  Segmented result;
  result.places.resize(blocks.size());
  LargeSegments large(result);
  struct Small {
    std::size_t segment;
    FreeSpace space;
  };
  std::vector<Small> small;
  const auto home_of = [&](std::int64_t bytes) -> Small& {
    Small* best = nullptr;
    std::optional<std::int64_t> least;
    for (Small& s : small) {
      const std::optional<std::int64_t> fit = s.space.fit(bytes);
      if (!fit || (least && *fit >= *least)) continue;
      best = &s;
      least = fit;
    }
    if (best != nullptr) return *best;
    for (Small& s : small) {
      if (s.space.grown(bytes) <= segment) return s;
    }
    result.lengths.push_back(0);
    return small.emplace_back(Small{result.lengths.size() - 1, {}});
  };
  walk(
      blocks,
      [&](std::uint32_t b) {
        if (blocks[b].bytes > segment) {
          result.places[b].segment = large.take(blocks[b].bytes);
          return;
        }
        Small& home = home_of(blocks[b].bytes);
        result.places[b] = {home.segment, home.space.take(blocks[b].bytes)};
        result.lengths[home.segment] = home.space.end();
      },
      [&](std::uint32_t b) {
        const auto [home, offset] = result.places[b];
        if (blocks[b].bytes > segment) {
          large.give(home);
          return;
        }
        const auto owner = std::find_if(small.begin(), small.end(),
                                        [&, at = home](const Small& s) { return s.segment == at; });
        owner->space.give(offset, blocks[b].bytes);
      });
  return result.one_after_the_other();
}

/// A segment of blocks that are placed one by one, each into the smallest gap that its lifetime leaves.
class GapSegment {
 public:
  /// Where a block would be, by how much the segment would grow, and how much room there is.
  struct Place {
    std::int64_t offset = 0, growth = 0, gap = 0;
    bool is_better_than(const Place& other) const {
      return std::tie(growth, gap) < std::tie(other.growth, other.gap);
    }
  };

  explicit GapSegment(std::int64_t capacity) : capacity_(capacity) {}

  std::optional<Place> find(const ArenaBlock& block) const {
    std::optional<Place> best;
    std::int64_t covered = 0;  // everything below is taken or was looked at
    const auto consider = [&](std::int64_t end) {
      const Place place{covered, std::max<std::int64_t>(covered + block.bytes - length_, 0), end - covered};
      if (place.gap >= block.bytes && (!best || place.is_better_than(*best))) best = place;
    };
    for (const Placed& other : placed_) {
      if (!live_together(other.block, block)) continue;
      consider(other.offset);
      covered = std::max(covered, other.offset + other.block.bytes);
    }
    consider(capacity_);
    return best;
  }

  void place(const ArenaBlock& block, std::int64_t offset) {
    const auto at = std::upper_bound(placed_.begin(), placed_.end(), offset,
                                     [](std::int64_t o, const Placed& p) { return o < p.offset; });
    placed_.insert(at, {offset, block});
    length_ = std::max(length_, offset + block.bytes);
  }

  std::int64_t length() const { return length_; }

 private:
  struct Placed {
    std::int64_t offset;
    ArenaBlock block;
  };

  std::int64_t capacity_;
  std::int64_t length_ = 0;
  std::vector<Placed> placed_;  // by offset
};

/// Large blocks first, the largest at the beginning, then the rest in the given order. Quadratic.
ArenaLayout segments_in_given_order(const std::vector<ArenaBlock>& blocks, std::vector<std::uint32_t> order,
                                    std::int64_t segment) {
  const auto is_large = [&](std::uint32_t b) { return blocks[b].bytes > segment; };
  const auto rest = std::stable_partition(order.begin(), order.end(), is_large);
  std::stable_sort(order.begin(), rest,
                   [&](std::uint32_t a, std::uint32_t b) { return blocks[a].bytes > blocks[b].bytes; });
  Segmented result;
  result.places.resize(blocks.size());
  std::vector<GapSegment> segments;
  for (const std::uint32_t b : order) {
    std::optional<GapSegment::Place> best;
    std::size_t home = segments.size();
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const std::optional<GapSegment::Place> place = segments[s].find(blocks[b]);
      if (!place || (best && !place->is_better_than(*best))) continue;
      best = place;
      home = s;
    }
    if (!best) segments.emplace_back(std::max(segment, blocks[b].bytes));
    const std::int64_t offset = best ? best->offset : 0;
    segments[home].place(blocks[b], offset);
    result.places[b] = {home, offset};
  }
  for (const GapSegment& s : segments) result.lengths.push_back(s.length());
  return result.one_after_the_other();
}

}  // namespace

ArenaLayout lay_out_in_segments(const std::vector<ArenaBlock>& blocks, std::int64_t segment) {
  ArenaLayout best = segments_in_order_of_time(blocks, segment);
  if (blocks.size() > kManyBlocks) return best;
  for (std::vector<std::uint32_t>& order : std::vector{by_size(blocks), by_lifetime(blocks)}) {
    ArenaLayout layout = segments_in_given_order(blocks, std::move(order), segment);
    if (layout.bytes < best.bytes) best = std::move(layout);
  }
  return best;
}

}  // namespace caldera
