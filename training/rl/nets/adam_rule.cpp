#include "training/rl/nets/adam_rule.h"

#include <cmath>

#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"

namespace caldera::rl {

AdamState AdamState::begin(std::vector<LazyTensor> parameters) {
  AdamState state;
  for (const LazyTensor& p : parameters) {
    state.first.push_back(zeros_like(p).eval());
    state.second.push_back(zeros_like(p).eval());
  }
  state.step = LazyTensor::from_vector<float>({0}, {}, parameters.front().device());
  state.parameters = std::move(parameters);
  return state;
}

std::vector<LazyTensor> AdamState::all() const {
  std::vector<LazyTensor> all = parameters;
  all.insert(all.end(), first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  all.push_back(step);
  return all;
}

AdamState AdamState::from(std::span<const LazyTensor> all, std::size_t count) {
  const auto part = [&](std::size_t k) {
    const auto tensors = all.subspan(k * count, count);
    return std::vector<LazyTensor>(tensors.begin(), tensors.end());
  };
  return {part(0), part(1), part(2), all[3 * count]};
}

AdamState adam_step(const AdamState& state, std::span<const LazyTensor> grads, const LazyTensor& rate,
                    const AdamNumbers& numbers) {
  AdamState next;
  next.step = state.step + 1.0;
  const LazyTensor scale = rate / (1.0 - exp(next.step * std::log(numbers.beta1)));
  const LazyTensor root = rsqrt(1.0 - exp(next.step * std::log(numbers.beta2)));
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const LazyTensor m = state.first[i] * numbers.beta1 + grads[i] * (1 - numbers.beta1);
    const LazyTensor v = state.second[i] * numbers.beta2 + square(grads[i]) * (1 - numbers.beta2);
    next.parameters.push_back(state.parameters[i] - scale * m / (sqrt(v) * root + numbers.eps));
    next.first.push_back(m);
    next.second.push_back(v);
  }
  return next;
}

}  // namespace caldera::rl
