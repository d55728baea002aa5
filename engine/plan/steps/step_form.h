// What the plan verifier knows about the form of a step: what its operands are, from the contracts in plan.h
// and kernel.h alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera::verify {

/// Why a plan is no good. The verifier adds where.
struct Fault {
  std::string why;
};

/// A set of a step's dimensions, as bits.
using DimSet = std::uint32_t;

enum class OperandRole : std::uint8_t { read, written, index };

struct OperandForm {
  OperandRole role = OperandRole::read;
  DType type = DType::f32;
  Dims extents;       // of the step, but for A and B of a contraction's later segments
  DimSet walked = 0;  // the dimensions that it may vary along; strides along the others are 0
  DimSet needed = 0;  // without an extent of 0 among these it is touched
  bool own = false;  // a point (or row) touches no element of it but the one that it addresses, and reads all
                     // its operands before it writes any
  const char* moved = nullptr;  // what to say when it varies along another dimension
};

/// Checks everything about a step but its accesses to memory: the kernels, scalar arguments, segments, and
/// that its operands are of the right number, type and rank and stand still where they must. Gives their
/// forms in order. Throws Fault.
std::vector<OperandForm> check_form(const Plan& plan, const Step& step);

/// Checks a kernel by itself. Only regions may have reductions of either kind. Throws Fault.
void check_kernel(const Kernel& kernel, bool of_region);

/// Checks that the score of an attention step whose form is right is constant where Step::causal says so.
/// Throws Fault.
void check_causal_score(const Step& step);

/// For each value of a kernel of the row form, whether it is one for the whole row.
std::vector<bool> row_values(const Kernel& kernel);

}  // namespace caldera::verify
