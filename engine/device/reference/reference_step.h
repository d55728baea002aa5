// What the parts of the interpreter of plans share: points, the elements that operands have there, and the
// values of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/device/reference/reference_plan.h"

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
  /// Of a plan's scalar.
  Number scalar(std::int32_t slot, DType type) const;

  /// Storage and type of operand k.
  std::vector<std::byte>& bytes(std::size_t k) const;
  DType type(std::size_t k) const;

 private:
  const Plan& plan_;
  PlanMemory& memory_;
  const Step& step_;
};

/// A kernel of a step, and where its operands and scalars start. The values of its first inputs may be given
/// instead of being operands.
struct KernelUse {
  const Kernel& kernel;
  std::size_t first_operand = 0;
  std::size_t first_scalar = 0;
  std::size_t given = 0;

  /// Operand of the step for input i or index operand i, and for the first output.
  std::size_t input(std::size_t i) const { return first_operand + i - given; }
  std::size_t index(std::size_t i) const { return first_operand + kernel.inputs.size() - given + i; }
  std::size_t outputs() const { return index(static_cast<std::size_t>(kernel.index_count)); }
};

/// A source (load, load_row, scalar, index) at a point.
Number source_at(const StepMemory& memory, const KernelUse& use, const Instruction& i, const Point& at,
                 const std::vector<Number>& given);
/// Any other instruction but a row reduction, from the values of its operands.
Number function_of(const Kernel& kernel, const Instruction& i, Number a, Number b, Number c);
bool is_source(ScalarOp op);

/// Every value of an element-wise kernel at a point.
std::vector<Number> evaluate(const StepMemory& memory, const KernelUse& use, const Point& at,
                             const std::vector<Number>& given = {});
/// Output `number` of a kernel whose values are known, in the type that is stored.
Number output_value(const Kernel& kernel, std::size_t number, const std::vector<Number>& values);
void store_outputs(const StepMemory& memory, const KernelUse& use, const Point& at,
                   const std::vector<Number>& values);

void run_contract(const StepMemory& memory);
void run_attention(const StepMemory& memory);
/// Throws std::domain_error for a matrix that has no result.
void run_linalg(const StepMemory& memory);

}  // namespace caldera::reference
