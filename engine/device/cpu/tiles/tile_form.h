// Says what a kernel is decoded for.
#pragma once

#include <vector>

namespace caldera::cpu {

struct TileForm {
  std::vector<bool> uniform_inputs;   // of each input: one element a row (load_row or not)
  std::vector<bool> uniform_indices;  // of each index operand
  bool reduces_rows = false;          // Kernel::reduce combines each row; else its operand is only evaluated
  bool expand = false;                // rows are too short to be gone through one by one
  bool recompute = false;             // no value is kept from one pass over the row to the next
  bool flat = false;                  // element-wise kernels: every value but scalar arguments is one a point

  friend bool operator==(const TileForm&, const TileForm&) = default;
};

}  // namespace caldera::cpu
