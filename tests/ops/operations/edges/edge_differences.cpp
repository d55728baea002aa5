#include "tests/ops/operations/edges/edges.h"

namespace caldera::testing {
namespace {

constexpr EdgeDifference kDifferences[] = {
    {"sign", "NaN", "NaN stays NaN, as in NumPy and the Array API"},
    {"softshrink", "NaN", "NaN stays NaN"},
    {"heaviside", "NaN, 1", "NaN stays NaN, as in NumPy"},
    {"nan_to_num", "", "the limits of float32; PyTorch's values are of float64"},
    {"i0", "", "the limit; PyTorch divides infinity by infinity"},
    {"i1", "", "the limit; PyTorch divides infinity by infinity"},
    {"zeta", "", "the pole counts first"},
    {"cummax_with_indices", "", "of ties the first, which has the gradient, too"},
    {"cummin_with_indices", "", "of ties the first, which has the gradient, too"},
    {"quantile", "", "equal infinities have no difference, and a share of 0 needs no neighbour"},
    {"nanquantile", "", "equal infinities have no difference, and a share of 0 needs no neighbour"},
    {"median", "", "the mean of infinities is not taken from their difference"},
    {"nanmedian", "", "the mean of infinities is not taken from their difference"},
    {"sin", "max", "computed in float32, which rounds max to 2^31"},
    {"cos", "max", "computed in float32, which rounds max to 2^31"},
    {"tan", "max", "computed in float32, which rounds max to 2^31"},
};

}  // namespace

std::span<const EdgeDifference> edge_differences() { return kDifferences; }

const EdgeDifference* reason_for(const EdgeCall& call) {
  for (const EdgeDifference& row : kDifferences) {
    if (row.operation == call.operation->name && (row.edge.empty() || row.edge == call.edge)) return &row;
  }
  return nullptr;
}

}  // namespace caldera::testing
