// Profiler: records evaluations, for explain() and to_trace().
#pragma once

#include <memory>
#include <vector>

#include "engine/explain/host_records.h"

namespace caldera {

struct RunRecord;

/// Records every evaluation of the process from construction to destruction. At most one at a time; throws
/// Error otherwise. A tool for measuring: each evaluation then also copies its graph.
class Profiler {
 public:
  Profiler();
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// In the order in which they were scheduled.
  std::vector<std::shared_ptr<const RunRecord>> runs() const;
  std::vector<HostSpan> spans() const;
  std::vector<CopyRecord> copies() const;
};

}  // namespace caldera
