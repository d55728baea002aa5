// Explain: how a graph would be evaluated, and how recorded evaluations ran.
#pragma once

#include <initializer_list>
#include <span>

#include "engine/explain/explanation.h"
#include "engine/graph/lazy_tensor.h"
#include "engine/runtime/profiler.h"

namespace caldera {

/// Explains how `outputs` (lazy, on one device) would be evaluated now. Plans, and computes nothing. Throws
/// ValueError when nothing is left to compute. Call it from one thread at a time with evaluations of the same
/// graph.
Explanation explain(std::span<const LazyTensor> outputs);
Explanation explain(std::initializer_list<LazyTensor> outputs);

}  // namespace caldera
