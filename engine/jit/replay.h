// Replay: one call of a function that was traced. Internal to compiled functions.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/jit/trace.h"
#include "engine/runtime/devices.h"

namespace caldera {

/// Whether the numbers among the arguments fit the types that the trace has them in.
bool holds_numbers(const Trace& trace, std::span<const LazyTensor> arguments);

/// The results for these arguments, of the trace's signature; `may_give` says of each whether results may
/// take its memory. Nothing if one of them, or what was captured, has no value, because its evaluation has
/// failed meanwhile.
/// `device`: the trace's; null where it has no plan.
std::optional<std::vector<LazyTensor>> replay(const Trace& trace, std::span<const LazyTensor> arguments,
                                              const std::vector<bool>& may_give,
                                              const std::shared_ptr<OpenDevice>& device);

}  // namespace caldera
