// Chooses what a trial of a matrix product runs: as much as tells the variants apart, as little as no
// watchdog minds.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// Work of a trial on a device that is not known to be fast.
inline constexpr std::int64_t kMostTrialFlops = 5'000'000'000;

/// The contraction with smaller extents: outer batches first, then whichever of M and N is larger, halved
/// until it takes no more than that, those of more than 256. K, strides and with them the layout
/// of all operands stay, so the variants differ by as much as on the whole.
Step trial_step(const Step& step, std::int64_t most_flops);

/// Returns the flops of a trial that comes after one of `flops` which took `seconds`: as much as keeps the
/// device busy for 20 ms, where that is more.
std::int64_t further_flops(std::int64_t flops, double seconds);

/// Seconds for one of a number of dispatches in one submit.
using RunDispatches = std::function<double(int dispatches)>;

/// Seconds for one dispatch, the best of a few. The first runs alone; if it takes longer than `stop_at`, and
/// a second one does, that is the answer. Others follow by what it took: up to four dispatches a submit
/// within 20 ms, up to four submits within 100 ms.
double best_of_few(const RunDispatches& run, double stop_at);

}  // namespace caldera::vulkan
