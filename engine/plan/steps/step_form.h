// The form of a step: what its operands are, as the plan verifier derives it from the contract of its kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/plan/steps/step_kind.h"

namespace caldera::verify {

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
  bool accumulated = false;            // what is written is read too, and points may meet there
  std::optional<IndexedAxis> indexed;  // any element along it may be touched
  const char* moved = nullptr;         // what to say when it varies along another dimension
};

/// Gives a kind's `check` what it works on: the header of a step and the types that the plan gives. It adds
/// the form of each operand, in order, and the type of each scalar argument. All of it throws Fault.
class StepForm {
 public:
  StepForm(const StepHeader& step, std::span<const PlanBuffer> buffers, std::span<const DType> scalars)
      : step_(step), buffers_(buffers), scalars_(scalars), rank_(step.dims.rank()) {}

  const StepHeader& step() const { return step_; }
  int rank() const { return rank_; }
  /// Dimension `i` counted from the innermost, which is 1.
  DimSet inner(int i) const { return DimSet{1} << (rank_ - i); }
  /// Operands that were added so far.
  std::size_t count() const { return forms_.size(); }
  DimSet all() const { return (DimSet{1} << rank_) - 1; }
  void check_rank(int least) const;

  OperandForm& add(OperandRole role, DType type, DimSet walked, DimSet needed, bool own = false);
  void read(DType type, DimSet walked, DimSet needed) { add(OperandRole::read, type, walked, needed); }
  void write(DType type, DimSet walked) { add(OperandRole::written, type, walked, walked); }
  /// The inputs of an element-wise kernel after the first `given`, and its index operands.
  void add_kernel_operands(const Kernel& kernel, std::size_t given, DimSet points, bool own);
  /// The type of the next operand's buffer, if there is one.
  std::optional<DType> buffer_type() const;
  /// The next operand's type, which may be a 16-bit one where its values are f32.
  DType in_memory(DType type) const;
  /// Checks the dimensions of gathers and scatters, and the axis that is indexed.
  void check_indexed(const IndexedAxis& axis) const;

  void add_scalar(DType type) { arguments_.push_back(type); }
  void add_scalars_of(const Kernel& kernel);
  /// That a scalar of the plan exists and has this type.
  void check_scalar(std::int32_t slot, DType type) const;

  /// The forms, once the step is found to have such scalar arguments and operands.
  std::vector<OperandForm> finish();

 private:
  void check_operand(std::size_t k) const;

  const StepHeader& step_;
  std::span<const PlanBuffer> buffers_;
  std::span<const DType> scalars_;
  int rank_;
  std::vector<OperandForm> forms_;
  std::vector<DType> arguments_;
};

/// The first inputs of the kernel are no operands: the step computes them, in this type.
void check_given(const Kernel& kernel, std::size_t given, DType type);

}  // namespace caldera::verify
