// TraceScope: the time during which a transform runs the user's function. Internal to the transforms.
#pragma once

#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// While one lives, nodes that are built from traced arguments on this thread keep their inputs when they are
/// evaluated, so the function may evaluate what is differentiated afterwards. A scope inside of another joins
/// it: the outermost ends the trace.
class TraceScope {
 public:
  TraceScope();
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  /// Returns what the function is to be called with: the same values behind new nodes, so that two calls of
  /// one function do not take each other's arguments for theirs.
  std::vector<LazyTensor> traced(std::span<const LazyTensor> arguments) const;

 private:
  bool outermost_;
};

}  // namespace caldera
