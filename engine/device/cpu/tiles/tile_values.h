// The values of a kernel as a decoder sees them: which are one a row, when each can be computed, and which
// walk along the row has to compute it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device/cpu/tiles/tile_form.h"
#include "engine/plan/kernel/kernel.h"

namespace caldera::cpu {

bool is_source(ScalarOp op);

/// Operands that are value numbers (not input, scalar or index numbers).
int value_operands(const Instruction& i);
inline std::array<std::uint16_t, 3> operands_of(const Instruction& i) { return {i.a, i.b, i.c}; }

class TileValues {
 public:
  /// Refers to the kernel. `indices`: the type of each index operand.
  TileValues(const Kernel& kernel, const TileForm& form, std::vector<DType> indices);

  /// One a row.
  bool uniform(std::size_t v) const { return uniform_[v]; }
  /// Row reductions that have to be finished first.
  int phase(std::size_t v) const { return phase_[v]; }
  /// Whether any output depends on it.
  bool needed(std::size_t v) const { return needed_[v]; }
  /// Whether output o is stored once a row.
  bool per_row(std::size_t o) const { return per_row_[o]; }

  int passes() const { return passes_; }
  /// Values, one a point, that pass p computes, in order.
  std::vector<std::size_t> values_of(int p) const;
  /// Values that have to be there, one a point, when pass p has been at a point.
  std::vector<std::size_t> roots_of(int p) const;
  /// Whether a value that `pass` computes is read by a later one.
  bool is_kept(std::size_t v, int pass) const { return !form_.recompute && last_pass_[v] > pass; }

  /// A source whose value is read where it is.
  bool in_place(std::size_t v) const;
  /// Returns the type that a source has in memory; its instruction may ask for another type.
  DType source_type(const Instruction& i) const;

 private:
  void classify();
  void find_needed();
  void count_passes();

  const Kernel& kernel_;
  const std::vector<Instruction>& code_;
  TileForm form_;
  std::vector<DType> indices_;
  int passes_ = 1;
  std::vector<bool> per_row_;  // of each output
  // Known of each value:
  std::vector<bool> uniform_;
  std::vector<int> phase_;
  std::vector<bool> needed_;
  std::vector<int> last_pass_;  // the last pass that reads it
};

}  // namespace caldera::cpu
