// Cuts the commands of a plan: into parts, of which a submit holds as many as its time allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/device/vulkan/record/pace.h"
#include "engine/device/vulkan/record/recording.h"

namespace caldera::vulkan {

/// Dispatches [first, last), or a share of one dispatch: the `slice`-th of `slices`.
struct Part {
  std::size_t first = 0, last = 0;
  std::uint32_t slice = 0, slices = 1;

  bool ends_dispatch() const { return slice + 1 == slices; }
  friend bool operator==(const Part&, const Part&) = default;
};

/// The workgroups of a slice, along x or, where there are more of them, along y.
struct GroupRange {
  std::uint32_t first_x = 0, x = 0, first_y = 0, y = 0;
};
GroupRange groups_of(const Dispatch& dispatch, std::uint32_t slice, std::uint32_t slices);

/// Ends of the parts of a plan's first run, in dispatches; the last is all of them. The device starts while
/// the rest is recorded, so the first part is small; each further one may have twice as much, in dispatches,
/// in bytes touched and in flops, whichever is reached first: a device that is slow for what one part holds
/// is not kept waiting, and one that is fast is not fed in crumbs.
std::vector<std::size_t> first_run_parts(std::span<const Work> work);

/// The parts of dispatches that take `seconds` each: one, if all of them together keep to the budget; else
/// parts of at most a quarter of it, so that few of them fill a submit well. A dispatch of more than twice
/// the budget is sliced, each slice a part that keeps to it, as far as the dispatch has workgroups. `ends`:
/// where else there is to be a cut, in rising order.
std::vector<Part> cut(std::span<const Dispatch> dispatches, std::span<const double> seconds, double budget,
                      std::span<const std::size_t> ends = {});

/// Seconds of a part.
double seconds_of(const Part& part, std::span<const double> seconds);

/// Whether parts that were cut by other times ought to be cut again: one takes more than twice the budget and
/// need not, or a dispatch is sliced that keeps to it.
bool is_stale(std::span<const Part> parts, std::span<const Dispatch> dispatches,
              std::span<const double> seconds, double budget);

/// Returns how many parts each submit holds: as many as keep to the budget, at least one.
std::vector<std::size_t> pack(std::span<const Part> parts, std::span<const double> seconds, double budget);

}  // namespace caldera::vulkan
