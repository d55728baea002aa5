// Scatters: values combined into elements of one axis, picked by indices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/graph/op.h"
#include "engine/plan/steps/step_kind.h"

namespace caldera {

/// dims = outer, indices, inner: out[o, idx[i], j] += u[o,i,j] in order of i, or what `combine` says instead
/// of +. operands: u, idx (i32), out.
///
/// out has stride 0 along `indices`, and already holds the base; `axis` is the one that is scattered along.
/// Indices outside [0, axis.extent) are dropped. Types of memory: set only. `distinct`: for no o and j two of
/// the others are the same, so that their order says nothing.
struct ScatterStep {
  IndexedAxis axis;
  Scatter combine = Scatter::add;
  bool distinct = false;

  static std::string_view kind() { return "scatter_add"; }
  static std::string_view form() { return "index"; }
  static std::string name() { return "scatter_add"; }
  static int output_count() { return 1; }
  static int named_operands() { return 2; }
  std::optional<IndexedAxis> indexed_axis(const StepHeader& step, std::size_t k) const;
  static bool may_interleave(std::size_t /*k*/) { return false; }
  static bool accumulates() { return true; }
  static std::int64_t flops(const StepHeader& step);
  void check(verify::StepForm& form) const;
};

}  // namespace caldera
