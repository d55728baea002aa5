// RegionChain: steps of a plan that go through the same points, run piece of the points by piece. What one
// step has read or written is in the cache when the next one reads it: the sums over rows that the gradients
// of a norm are, behind the kernel that computes its rows, or several sums of one tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device/cpu/regions/region_step.h"

namespace caldera::cpu {

/// The first region may store results a point or a row; those behind it reduce, and store when all pieces are
/// done. So no step writes where another one still reads, whatever memory the plan has given them: of what
/// the first one stores, the others read each point from where it was stored. Results are those of the steps
/// by themselves, to the bit. Immutable; run() is called by several threads at once.
class RegionChain {
 public:
  static constexpr std::size_t kMostSteps = 8;

  /// Makes a chain of the first of these steps that can be one, two to kMostSteps; `count()` is 0 where there
  /// is none, or nothing would be gained. They must outlive it.
  explicit RegionChain(const std::vector<const PreparedRegion*>& steps);

  std::size_t count() const { return regions_.size(); }
  /// Returns the share of the time that a step takes, by estimate.
  double share(std::size_t step) const { return regions_[step]->nanoseconds() / nanoseconds_; }
  /// Returns false where the steps are to be run by themselves: the first one has no machine code so far,
  /// threads would have too unequal parts, or set_chains_run() says so.
  bool run(const RunContext& context) const;

 private:
  struct Run;

  std::vector<const PreparedRegion*> regions_;
  std::int64_t points_ = 0;
  std::int64_t unit_ = 1;     // points by which the first region can be divided
  std::int64_t stretch_ = 0;  // points that one region goes through before the next one does
  std::int64_t share_ = 0;    // points by which threads divide them
  double nanoseconds_ = 0;
};

/// Counts the runs of chains since the process started.
std::uint64_t chains_run();
/// Sets whether there are any, from the next evaluation on: for tests and measurements. Any thread.
void set_chains_run(bool run);

}  // namespace caldera::cpu
