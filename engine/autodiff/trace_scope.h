// TraceScope: the time during which a transform runs the user's function. Internal to the transforms.
#pragma once

#include <span>
#include <vector>

#include "engine/graph/histories.h"
#include "engine/graph/lazy_tensor.h"
#include "engine/graph/tracing/tracing.h"

namespace caldera {

/// While one lives, what is evaluated on this thread keeps its history, so the function may evaluate what is
/// differentiated afterwards.
class TraceScope {
 public:
  /// Returns what the function is to be called with: the same values behind new nodes, so that two calls of
  /// one function do not take each other's arguments for theirs.
  std::vector<LazyTensor> traced(std::span<const LazyTensor> arguments) const;

 private:
  KeepHistories histories_;
  Tracing tracing_;
};

}  // namespace caldera
