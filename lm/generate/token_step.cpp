#include "lm/generate/token_step.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "engine/runtime/runtime.h"
#include "lm/generate/sampling/sampler.h"
#include "lm/generate/traced_step.h"
#include "lm/nn/precision.h"
#include "ops/core/creation.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

std::vector<std::int64_t> windows_of(const CausalLM& model) {
  std::set<std::int64_t> windows;
  for (const std::optional<std::int64_t>& window : model.attention_windows())
    if (window) windows.insert(*window);
  return {windows.begin(), windows.end()};
}

}  // namespace

LazyTensor logits_or_choices(CausalLM& model, const LazyTensor& hidden, bool choose) {
  const LazyTensor logits = in_dtype(model.logits(hidden), DType::f32);
  return choose ? stop_gradient(most_likely(logits)) : logits;
}

LazyTensor logits_or_choice(CausalLM& model, const LazyTensor& hidden, bool choose) {
  LazyTensor result = logits_or_choices(model, hidden, choose);
  return choose ? reshape(result, Shape{hidden.shape(0), 1}) : result;
}

void eval_soon(std::span<const LazyTensor> outputs, Device device) {
  // A processor computes on the caller's thread, which small models are faster for.
  if (device == Device::cpu())
    eval(outputs);
  else
    eval_async(outputs);
}

TokenStep::TokenStep(CausalLM& model, bool choose)
    : model_(model), choose_(choose), windows_(windows_of(model)) {
  const auto traced = [this](std::span<const LazyTensor> arguments) {
    const std::size_t numbers = 1 + 2 * windows_.size();
    KVCache cache = cache_->traced(windows_, arguments.subspan(1, numbers), arguments.subspan(1 + numbers));
    const LazyTensor hidden = model_.hidden_states(arguments[0], &cache);
    std::vector<LazyTensor> results = constants(cache.give_buffers());
    results.push_back(stop_gradient(logits_or_choice(model_, hidden, choose_)));
    return results;
  };
  step_ = traced_step(traced, 2 + 2 * windows_.size(),
                      2 * static_cast<std::size_t>(model.config().num_hidden_layers));
}

LazyTensor TokenStep::replayed(KVCache& cache, const LazyTensor& id) const {
  std::vector<LazyTensor> arguments{id};
  std::ranges::move(cache.step_numbers(windows_), std::back_inserter(arguments));
  return run_traced_step(step_, std::move(arguments), cache);
}

LazyTensor TokenStep::computed(KVCache& cache, const LazyTensor& id) const {
  LazyTensor result = logits_or_choice(model_, model_.hidden_states(id, &cache), choose_);
  std::vector<LazyTensor> outputs = cache.state();
  outputs.push_back(result);
  eval_soon(outputs, model_.device());
  return result;
}

LazyTensor TokenStep::operator()(KVCache& cache, const LazyTensor& id) {
  if (is_traced_) {
    cache.begin(1);
    cache_ = &cache;
    try {
      LazyTensor result = replayed(cache, id);
      cache.finish();
      return result;
    } catch (const ValueError&) {  // it evaluates inside, or has an error of its own, which follows
    }
  }
  LazyTensor result = computed(cache, id);
  is_traced_ = false;
  return result;
}

}  // namespace caldera
