// What operations give at edges: tensors without axes or elements, zeros of both signs, infinities, NaN,
// poles, limits of integers. docs/guide/operation-edges.md is made of it, next to what PyTorch gives.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "tests/catalogue/table/operation.h"
#include "tests/support/layouts.h"

namespace caldera::testing {

/// A call of an operation, in f32 or, of limits of integers, in i32.
struct EdgeCall {
  const catalogue::Operation* operation = nullptr;
  std::string edge;  // the heading of its column
  std::vector<Host> operands;
  DType type = DType::f32;
  catalogue::Arguments arguments;

  /// "section/operation/edge"
  std::string key;
};

/// Operations of one kind at the same edges: a table of the page.
struct EdgeSection {
  std::string title, remark;
  std::vector<std::string> edges;
  std::vector<std::vector<EdgeCall>> rows;  // a row an operation, a call an edge
};
const std::vector<EdgeSection>& edge_sections();

/// The elements of all results, or none where the call is refused.
using EdgeValue = std::optional<std::vector<double>>;
EdgeValue value_at(const EdgeCall& call, Device device);

/// What PyTorch gives: not known where it has no counterpart of the operation.
struct ForeignValue {
  bool known = false;
  EdgeValue value;
};
ForeignValue foreign_value_at(const EdgeCall& call);
/// Whether they agree but for the rounding of float32. A value where the other refuses is no disagreement:
/// more is offered.
bool agree(const EdgeValue& ours, const ForeignValue& theirs);

/// Why an operation differs from PyTorch: at one edge, or at all ("").
struct EdgeDifference {
  std::string_view operation, edge, why;
};
std::span<const EdgeDifference> edge_differences();
/// The reason that is given for a call, or null.
const EdgeDifference* reason_for(const EdgeCall& call);

/// The whole page.
std::string edges_page();
/// The calls as JSON, one a line: what tests/golden/edges/generate.py reads.
std::string edge_calls_as_json();

}  // namespace caldera::testing
