// Sorts made ready: rows side by side on threads.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/cpu/sort/short_rows.h"
#include "engine/device/cpu/tiles/tile_layout.h"
#include "engine/plan/plan.h"

namespace caldera::cpu {

class PreparedSort {
 public:
  PreparedSort(const Step& step, const SortStep& sort);
  void run(const RunContext& context) const;

 private:
  /// The rows in the memory of a run.
  SortedRows bound(const RunContext& context) const;
  /// One row after the other on each thread.
  template <class Key>
  void run_rows(const SortedRows& rows) const;

  SortStep sort_;
  std::int64_t rows_ = 0, length_ = 0, count_ = 0;
  Operand in_, out_;
  std::vector<Exchange> network_;  // of short rows, else empty
};

}  // namespace caldera::cpu
