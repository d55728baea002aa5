#include "engine/testing/steady_function.h"

#include <fmt/core.h>

#include <algorithm>

namespace caldera::testing {

Floating::Floating(std::span<const LazyTensor> all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_floating(all[i].dtype())) continue;
    positions.push_back(i);
    tensors.push_back(all[i]);
  }
}

Floating SteadyFunction::operator()(std::span<const LazyTensor> inputs) {
  const std::vector<LazyTensor> results = function_(inputs);
  std::vector<Form> forms;
  for (const LazyTensor& result : results) {
    if (!result.defined()) {
      throw ValueError(
          fmt::format("{}: result {} of the function is an empty tensor", caller_, forms.size()));
    }
    forms.push_back({result.shape(), result.dtype()});
  }
  if (first_.empty()) {
    learn(forms);
  } else {
    compare(forms);
  }
  return Floating(results);
}

void SteadyFunction::learn(const std::vector<Form>& forms) {
  if (std::none_of(forms.begin(), forms.end(), [](const Form& form) { return is_floating(form.dtype); })) {
    throw ValueError(
        fmt::format("{}: none of the function's {} results is floating, so there is no "
                    "derivative to check",
                    caller_, forms.size()));
  }
  first_ = forms;
}

void SteadyFunction::compare(const std::vector<Form>& forms) const {
  if (forms.size() != first_.size()) {
    throw CheckFailed(
        fmt::format("the function is not deterministic: it gave {} results at first and {} in a later "
                    "call",
                    first_.size(), forms.size()));
  }
  for (std::size_t k = 0; k < forms.size(); ++k) {
    if (forms[k] == first_[k]) continue;
    throw CheckFailed(fmt::format(
        "the function is not deterministic: output {} was {} of shape {} at first and {} of shape {} in a "
        "later call",
        k, name(first_[k].dtype), first_[k].shape.to_string(), name(forms[k].dtype),
        forms[k].shape.to_string()));
  }
}

}  // namespace caldera::testing
