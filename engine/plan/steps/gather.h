// Gathers: elements of one axis, picked by indices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/plan/steps/step_kind.h"

namespace caldera {

/// dims = outer, indices, inner: out[o,i,j] = x[o, idx[i], j]. operands: x, idx (i32), out.
///
/// x has stride 0 along `indices`; `axis` is the one that is gathered along. idx may vary along outer and
/// inner too. An index outside [0, axis.extent) gives NaN (floating) or 0.
struct GatherStep {
  IndexedAxis axis;

  static std::string_view kind() { return "gather"; }
  static std::string_view form() { return "index"; }
  static std::string name() { return "gather"; }
  static int output_count() { return 1; }
  static int named_operands() { return 2; }
  std::optional<IndexedAxis> indexed_axis(const StepHeader& step, std::size_t k) const;
  static bool may_interleave(std::size_t /*k*/) { return false; }
  static std::int64_t flops(const StepHeader& /*step*/) { return 0; }
  void check(verify::StepForm& form) const;
};

}  // namespace caldera
