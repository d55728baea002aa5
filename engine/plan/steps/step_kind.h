// Lists what is asked of every kind of step.
//
// A kind is a struct with the fields that only its steps have. It stands in two files of this folder: the
// header states the contract (operands, results), the source answers what the compiler, the verifier, costs
// and reports ask. Each device visits the variant `Step::Work` once, with one function a kind.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/kernel/kernel.h"
#include "engine/plan/steps/step_header.h"

namespace caldera {

namespace verify {
class StepForm;
}  // namespace verify

/// A kernel that a step runs.
struct StepKernel {
  const Kernel* kernel = nullptr;
  std::string_view role;  // "epilogue", "score" ...; empty for a region, which is nothing but its kernel
  int given = 0;          // first inputs that the step computes itself and that are no operands
};

/// An axis of an operand along which indices say which element is meant.
struct IndexedAxis {
  std::int64_t extent = 0;
  std::int64_t stride = 0;  // elements
};

/// A kind of step, by the answers that it must give. A kind may leave out what most kinds answer alike; Step
/// then gives the answer that stands in brackets here:
///
///   Shape operand_dims(step, k): the extents that operand k walks (step.dims).
///   optional<IndexedAxis> indexed_axis(step, k): the axis of operand k that is indexed, so that any element
///     along it may be touched (none).
///   int64 most_elements(step, k): elements of operand k that the step touches at most, where indices pick
///     them (as many as there are).
///   bool may_interleave(k): whether the gaps between the elements of operand k count: another step may touch
///     those meanwhile (true).
///   bool accumulates(): whether the step reads what it writes, as it goes on with what its outputs hold
///     (false).
///   bool reads_in_place(k): whether every point reads of operand k, an input, just the element at its own
///     place before it writes there, so that an output may be over it (false).
///   vector<StepKernel> kernels(): in the order of their scalar arguments (none).
///   int64 own_operations(): operations of the graph that the step stands for, without the arithmetic of its
///     kernels (1).
///   void check_values(step): checks that need operands of the right form. Throws verify::Fault (nothing).
///   size_t heap_bytes(): memory that the fields hold, without kernels, which plans share (0).
template <class Kind>
concept StepKind = requires(const Kind& kind, const StepHeader& step, verify::StepForm& form) {
  /// Names the kind for tools: "region", "contract", "gather" ...
  { kind.kind() } -> std::convertible_to<std::string_view>;
  /// Says for tools what it does: "map", "reduce", "contract", "index" ...
  { kind.form() } -> std::convertible_to<std::string_view>;
  /// Names the kernel for traces: "matmul", "gather" ...
  { kind.name() } -> std::convertible_to<std::string>;
  /// Operands that are written: the last ones. The others, but index operands, are read.
  { kind.output_count() } -> std::same_as<int>;
  /// Operands ahead of those of the kernels.
  { kind.named_operands() } -> std::same_as<int>;
  /// Floating-point operations: see StepCost::flops.
  { kind.flops(step) } -> std::same_as<std::int64_t>;
  /// Checks the fields and lists the form of every operand, from the contract alone: it uses none of the
  /// other answers, so that the verifier notices where they are wrong. Throws verify::Fault.
  kind.check(form);
};

}  // namespace caldera
