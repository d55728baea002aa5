// Deviation: how far the results of a dispatch are from those of the f64 interpreter, and how far they may
// be.
//
// The bound of an element comes from how much the element depends on its operands. The interpreter runs again
// with operands that are moved by a relative distance, up or down at random, and what the element moves by
// says how much a relative error of one rounding is worth there (random perturbation: Parker, "Monte Carlo
// Arithmetic", 1997; Higham, "Accuracy and Stability of Numerical Algorithms", section 26.1). The bound is
// what kRoundings of them would come to, with the rounding of the stored type and of the largest element.
// Integers and booleans must be equal, but where the moved operands change them: there a rounding decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/check/reference/plan_memory.h"
#include "engine/check/reference/scalar_reference.h"
#include "engine/plan/plan.h"

namespace caldera::check {

/// An output of a dispatch that has elements beyond their bounds.
struct Deviation {
  std::size_t step = 0;      ///< of the dispatch: the last that writes the output
  std::size_t buffer = 0;    ///< of the dispatch's plan
  std::int64_t count = 0;    ///< elements beyond their bounds
  std::int64_t element = 0;  ///< the one that is furthest beyond its own
  reference::Number got;
  reference::Number want;
  double bound = 0;
};

/// Compares what a device made of the plan, `after` (a buffer each), with what the interpreter makes of
/// `before`. The first output, in the order of the steps, that has an element beyond its bound; none where
/// all are within. `failed` are steps that gave up for what their operands are: their results are not
/// compared.
std::optional<Deviation> first_deviation(const Plan& plan, const reference::PlanMemory& before,
                                         const std::vector<std::vector<std::byte>>& after,
                                         const std::vector<std::size_t>& failed);

/// An element of two results that should be the same.
struct Difference {
  std::int64_t element = 0;
  reference::Number got;
  reference::Number want;
};

/// Compares elements [first, first + count) of two buffers that were computed by the same steps in the same
/// order: floats to half of their digits relative to the largest of `want`, others exactly. Returns the first
/// that differs by more.
std::optional<Difference> gross_difference(DType type, const std::vector<std::byte>& got,
                                           const std::vector<std::byte>& want, std::int64_t first,
                                           std::int64_t count);

}  // namespace caldera::check
