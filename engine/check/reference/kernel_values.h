// The values of a kernel at a point.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/check/reference/step_memory.h"
#include "engine/plan/kernel/kernel.h"

namespace caldera::reference {

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

}  // namespace caldera::reference
