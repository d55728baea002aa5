// Step: one unit of work of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/plan/steps/attention.h"
#include "engine/plan/steps/contract.h"
#include "engine/plan/steps/control.h"
#include "engine/plan/steps/convolution.h"
#include "engine/plan/steps/gather.h"
#include "engine/plan/steps/linalg.h"
#include "engine/plan/steps/quantized.h"
#include "engine/plan/steps/region.h"
#include "engine/plan/steps/scatter.h"
#include "engine/plan/steps/sort.h"
#include "engine/plan/steps/step_header.h"

namespace caldera {

/// One dispatch on a GPU, together with the steps joined to it: a header, and what steps of its kind have.
struct Step : StepHeader {
  using Work = std::variant<RegionStep, ContractStep, GatherStep, ScatterStep, AttentionStep, LinalgStep,
                            QuantizedStep, ControlStep, ConvolutionStep, SortStep>;
  Work work;

  template <class Kind>
  bool is() const {
    return std::holds_alternative<Kind>(work);
  }
  /// The fields of a step that is known to be of this kind. Throws std::bad_variant_access.
  template <class Kind>
  const Kind& as() const {
    return std::get<Kind>(work);
  }
  template <class Kind>
  Kind& as() {
    return std::get<Kind>(work);
  }
  /// Returns the fields of the kind, or null for a step of another kind.
  template <class Kind>
  const Kind* if_a() const {
    return std::get_if<Kind>(&work);
  }
  /// Calls visitor(kind) with the fields of the step's kind.
  template <class Visitor>
  decltype(auto) visit(Visitor&& visitor) const {
    return std::visit(std::forward<Visitor>(visitor), work);
  }

  // Every kind answers these questions: see step_kind.h.
  std::string_view kind() const;
  std::string_view form() const;
  int output_count() const;
  int named_operands() const;
  Shape operand_dims(std::size_t k) const;
  std::optional<IndexedAxis> indexed_axis(std::size_t k) const;
  std::int64_t most_elements(std::size_t k) const;
  bool may_interleave(std::size_t k) const;
  bool accumulates() const;
  bool reads_in_place(std::size_t k) const;
  std::vector<StepKernel> kernels() const;
  std::int64_t own_operations() const;
  std::int64_t flops() const;
  std::size_t heap_bytes() const;
  void check_values() const;

  /// Returns where the outputs begin among the operands.
  std::size_t first_output() const { return operands.size() - static_cast<std::size_t>(output_count()); }
  /// Names the step for traces: label, and the kind's name.
  std::string name() const;
};

/// Whether the step does nothing but write each element of its one operand, as it is, to some place of its
/// one result, places that are known before it runs.
bool moves_only(const Step& step);

/// Whether the step does nothing but write each element of its one operand, as it is, to the same place of
/// its one result: nothing at all, where both are at one address.
bool is_copy(const Step& step);

}  // namespace caldera
