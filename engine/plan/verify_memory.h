// The plan verifier's model of memory: every byte knows which buffer wrote it last and when it was last
// touched.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/tensor/shape.h"

namespace caldera::verify {

/// Holds what is known of a run of bytes. Epochs count barriers; 0 means never.
struct Bytes {
  std::int64_t end = 0;
  std::int32_t owner = -1;
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  std::size_t reader = 0;  // the step that read last, or kSeveral

  bool same_state(const Bytes& other) const {
    return owner == other.owner && written == other.written && read == other.read && reader == other.reader;
  }
};

constexpr std::size_t kSeveral = ~std::size_t{0};

/// Half-open.
struct Run {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// One address space as runs of equal state.
class Memory {
 public:
  explicit Memory(std::int64_t size);
  std::int64_t size() const { return size_; }

  /// Calls visit on every run of equal state within [begin, end), split so that none reaches beyond.
  template <class Visit>
  void visit(Run range, Visit visit) {
    split(range.begin);
    split(range.end);
    for (auto run = runs_.lower_bound(range.begin); run != runs_.end() && run->first < range.end; ++run)
      visit(run->second);
    join(range);
  }
  /// One state for all of [begin, end).
  void assign(Run range, Bytes state);

 private:
  void split(std::int64_t at);
  /// Makes neighbours of equal state one run again, which keeps the number of runs small.
  void join(Run range);

  std::int64_t size_;
  std::map<std::int64_t, Bytes> runs_;
};

/// The elements that a walk over extents with strides from `offset` touches.
struct Walk {
  Run hull;               // from the lowest to the highest
  std::vector<Run> runs;  // ascending and apart; just the hull where there would be more than kMostRuns
  bool exact = true;      // whether `runs` has no element that is not touched
  bool once = true;       // whether no element is touched twice, as far as that is known
};
constexpr std::int64_t kMostRuns = 1 << 17;

/// Nothing where a number leaves 64 bits. `extents` are not 0.
std::optional<Walk> walk_of(std::int64_t offset, const std::vector<std::int64_t>& extents,
                            const std::vector<std::int64_t>& strides);

/// Whether any element is in both.
bool meet(const std::vector<Run>& a, const std::vector<Run>& b);

}  // namespace caldera::verify
