// The points of a step, and the elements that its operands have there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/check/reference/plan_memory.h"
#include "engine/check/reference/scalar_reference.h"
#include "engine/plan/plan.h"

namespace caldera::reference {

using Point = std::vector<std::int64_t>;

/// Calls body(point) for every point, in row-major order.
template <class Body>
void for_each_point(const Point& extents, const Body& body) {
  for (std::int64_t extent : extents)
    if (extent == 0) return;
  Point at(extents.size(), 0);
  while (true) {
    body(std::as_const(at));
    std::size_t d = extents.size();
    while (d > 0 && ++at[d - 1] == extents[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

/// A step with the memory that it works on.
class StepMemory {
 public:
  StepMemory(const Plan& plan, PlanMemory& memory, const Step& step)
      : plan_(plan), memory_(memory), step_(step) {}

  const Step& step() const { return step_; }
  /// The extents of the step without the last `left_out`, and the last `count`.
  Point leading_dims(std::size_t left_out) const;
  Point trailing_dims(std::size_t count) const;

  /// Number of the element that operand k has at a point. Missing coordinates are 0.
  std::int64_t element(std::size_t k, const Point& at) const;
  Number read(std::size_t k, DType type, const Point& at) const;
  /// Rounds to the type.
  void write(std::size_t k, DType type, const Point& at, Number value) const;
  /// Returns a plan's scalar.
  Number scalar(std::int32_t slot, DType type) const;
  std::uint64_t scalar_bits(std::int32_t slot) const {
    return memory_.scalars[static_cast<std::size_t>(slot)];
  }

  /// Storage and type of operand k.
  std::vector<std::byte>& bytes(std::size_t k) const;
  DType type(std::size_t k) const;

 private:
  const Plan& plan_;
  PlanMemory& memory_;
  const Step& step_;
};

}  // namespace caldera::reference
