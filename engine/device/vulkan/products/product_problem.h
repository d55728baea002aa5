// A contraction as its shaders see it: batch dimensions merged, M, N, and strides.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// The iteration space after merging: batch extents, M and N, and each operand's strides along them. Views
/// are in the order of the step's operands. A view of A has K for columns, one of B for rows.
struct ProductProblem {
  struct View {
    Dims batch;
    std::int64_t rows = 0, columns = 0;
    bool is_b = false;
  };
  Dims batch;
  std::int64_t m = 0, n = 0;
  std::vector<View> views;
  std::int64_t batches() const {
    std::int64_t product = 1;
    for (std::int64_t e : batch) product *= e;
    return product;
  }
};

/// The problem of a contraction step.
ProductProblem make_problem(const Step& step);

/// The extents that a view is over: batch, then rows and columns.
Dims view_extents(const ProductProblem& problem, std::int64_t rows, std::int64_t columns);
/// A view's strides over them.
Dims view_strides(const ProductProblem::View& view);
/// Returns what to add to element numbers (see recording.h). Throws ShapeError naming the step where element
/// numbers do not fit into 32 bits.
std::int64_t view_bias(const Dims& extents, const ProductProblem::View& view, const Step& step);

}  // namespace caldera::vulkan
