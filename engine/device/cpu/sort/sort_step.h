// Sorts made ready: rows side by side on threads.
#pragma once

#include <cstdint>

#include "engine/device/cpu/tiles/tile_layout.h"
#include "engine/plan/plan.h"

namespace caldera::cpu {

class PreparedSort {
 public:
  PreparedSort(const Step& step, const SortStep& sort);
  void run(const RunContext& context) const;

 private:
  template <class T>
  void run_typed(const RunContext& context) const;

  SortStep sort_;
  std::int64_t rows_ = 0, length_ = 0, count_ = 0;
  Operand in_, out_;
};

}  // namespace caldera::cpu
