#include "training/objectives/objective.h"

#include <fmt/format.h>

#include "lm/adapters/adapter_switch.h"
#include "ops/core/creation.h"

namespace caldera {

void ObjectiveModels::require_reference(std::string_view objective) const {
  if (reference_ == nullptr && !has_adapter(policy_))
    throw ValueError(fmt::format(
        "{} compares the model with a reference: train an adapter (the reference is the model without it), "
        "or give a reference model",
        objective));
}

void ObjectiveModels::require_teacher(std::string_view objective) const {
  if (reference_ == nullptr)
    throw ValueError(
        fmt::format("{} learns from a second model, and there is none: give a teacher", objective));
}

LazyTensor ObjectiveModels::reference(const std::function<LazyTensor(CausalLM& model)>& compute) const {
  CausalLM& model = reference_ != nullptr ? *reference_ : policy_;
  const EvaluationMode mode(model);
  if (reference_ != nullptr) return stop_gradient(compute(model));
  require_reference("this objective");
  const AdapterSwitchedOff off(model);
  return stop_gradient(compute(model));
}

}  // namespace caldera
