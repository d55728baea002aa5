// Traced arguments: what a transform gives the function that it is applied to. Internal to the transforms.
#pragma once

#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// While one lives, what is built from traced arguments on this thread keeps its inputs when it is evaluated.
/// Those inside another join it: the outermost ends the trace.
class TraceScope {
 public:
  TraceScope();
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  /// The same values behind nodes of their own, so that calls of one function do not take each other's
  /// arguments for theirs.
  std::vector<LazyTensor> traced(std::span<const LazyTensor> arguments) const;

 private:
  bool outermost_;
};

}  // namespace caldera
