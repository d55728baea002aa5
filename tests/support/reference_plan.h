// An interpreter of plans, one element at a time in f64 and i64, written from the contracts in
// engine/kernel/kernel.h and engine/compile/plan.h. It shares no code with any device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/compile/plan.h"

namespace caldera::testing {

/// What a plan runs on: the bytes of every buffer, each apart from the others (arena buffers too), and the
/// bits of the scalar arguments.
struct PlanMemory {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::uint64_t> scalars;
};

/// One element: floating types in `f`, the others in `i`.
struct Number {
  double f = 0;
  std::int64_t i = 0;
};

Number read_number(const std::vector<std::byte>& buffer, DType type, std::int64_t element);
void write_number(std::vector<std::byte>& buffer, DType type, std::int64_t element, Number value);

/// `op` on operands of type `operand`, giving `result`: exact for integers, in f64 and then rounded to the
/// result's type for floating types.
Number apply_scalar_op(ScalarOp op, DType operand, DType result, Number a, Number b, Number c);

/// Word i % 4 of Philox4x32-10 block i / 4 under the seed, and the pair of words that element i belongs to.
std::uint32_t reference_philox_word(std::uint64_t seed, std::uint32_t i);

void run_reference(const Plan& plan, PlanMemory& memory);

}  // namespace caldera::testing
