#include "eager/sampling.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <vector>

#include "eager/errors.h"
#include "lm/generate/sampling/sampler.h"
#include "ops/core/cast.h"

namespace caldera::v1 {
namespace {

void check_temperature(double temperature) {
  // Written so that NaN is refused too.
  if (!(temperature > 0 && std::isfinite(temperature)))
    throw InferenceError::invalid_sampling(fmt::format(
        "temperature is {}, want it positive; greedy() takes the most likely token", temperature));
}

std::vector<float> last_row(const Tensor& logits) {
  if (logits.rank() == 0 || logits.numel() == 0)
    throw ShapeError(fmt::format("sample_token: logits {} have no row", logits.shape().to_string()));
  std::vector<float> values = logits.astype(DType::f32).to_vector<float>();
  values.erase(values.begin(), values.end() - logits.shape().back());
  return values;
}

}  // namespace

SamplingStrategy SamplingStrategy::top_k(std::int64_t k, double temperature) {
  check_temperature(temperature);
  if (k < 1) throw InferenceError::invalid_sampling(fmt::format("top_k is {}, want it positive", k));
  return {Kind::TopK, k, 1, temperature};
}

SamplingStrategy SamplingStrategy::top_p(double p, double temperature) {
  check_temperature(temperature);
  if (!(p > 0 && p <= 1))
    throw InferenceError::invalid_sampling(fmt::format("top_p is {}, want it in (0, 1]", p));
  return {Kind::TopP, 0, p, temperature};
}

SamplingStrategy SamplingStrategy::temperature(double temperature) {
  check_temperature(temperature);
  return {Kind::Temperature, 0, 1, temperature};
}

SamplingOptions SamplingStrategy::options() const {
  SamplingOptions options;
  options.temperature = temperature_;
  options.top_k = k_;
  options.top_p = p_;
  return options;
}

SampledToken sample_token_with_metadata(const Tensor& logits, const SamplingStrategy& strategy,
                                        std::uint64_t seed) {
  const std::vector<float> row = last_row(logits);
  SamplingOptions options = strategy.options();
  options.seed = seed;
  try {
    Sampler sampler(options);
    SampledToken token;
    token.token_id = sampler.next(row, SamplingContext{});
    token.logit = row[static_cast<std::size_t>(token.token_id)];
    for (const TokenProbability& likely : sampler.distribution(row, {}))
      if (likely.id == token.token_id) token.probability = likely.probability;
    return token;
  } catch (const ValueError& error) {
    throw InferenceError::sampling(error.what());
  }
}

std::int32_t sample_token(const Tensor& logits, const SamplingStrategy& strategy, std::uint64_t seed) {
  return sample_token_with_metadata(logits, strategy, seed).token_id;
}

Tensor apply_repetition_penalty(const Tensor& logits, std::span<const std::int32_t> tokens, double penalty) {
  if (!(penalty > 0 && std::isfinite(penalty)))
    throw InferenceError::invalid_sampling(
        fmt::format("the repetition penalty is {}, want it positive (1 changes nothing)", penalty));
  if (logits.rank() != 1)
    throw ShapeError(
        fmt::format("apply_repetition_penalty: logits {} are not (vocabulary)", logits.shape().to_string()));
  std::vector<float> values = logits.astype(DType::f32).to_vector<float>();
  for (const std::int32_t id : std::set<std::int32_t>(tokens.begin(), tokens.end())) {
    if (id < 0 || static_cast<std::size_t>(id) >= values.size()) continue;
    float& value = values[static_cast<std::size_t>(id)];
    value = static_cast<float>(value > 0 ? value / penalty : value * penalty);
  }
  return Tensor(values, logits.shape(), logits.device()).astype(logits.dtype());
}

}  // namespace caldera::v1
