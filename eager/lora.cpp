#include "eager/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eager/errors.h"
#include "engine/base/splitmix64.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/nn/dropout.h"
#include "ops/nn/lora.h"
#include "ops/random/uniform_normal.h"

namespace caldera::v1 {

namespace {

std::uint64_t next_layer_seed() {
  static std::atomic<std::uint64_t> layers{0};
  return ++layers;
}

/// Returns the configuration, for use in a constructor's initialisers.
const LoRAConfig& checked(const LoRAConfig& config, std::int64_t in, std::int64_t out) {
  config.validate();
  if (in < 1 || out < 1)
    throw TrainingError::invalid_lora_config(
        fmt::format("in_features is {} and out_features {}; both must be positive", in, out));
  if (config.rank > std::min(in, out))
    throw TrainingError::invalid_lora_config(
        fmt::format("rank {} is above min(in_features {}, out_features {}); choose a rank of at most {}",
                    config.rank, in, out, std::min(in, out)));
  return config;
}

}  // namespace

void LoRAConfig::validate() const {
  if (rank <= 0)
    throw TrainingError::invalid_lora_config(fmt::format("rank is {}, want it positive (8 is usual)", rank));
  // Written so that NaN is refused too.
  if (!(alpha > 0 && std::isfinite(alpha)))
    throw TrainingError::invalid_lora_config(fmt::format("alpha is {}, want it positive and finite", alpha));
  if (!(dropout >= 0 && dropout < 1))
    throw TrainingError::invalid_lora_config(fmt::format("dropout is {}, want it in [0, 1)", dropout));
}

LoRALayer::LoRALayer(std::int64_t in_features, std::int64_t out_features, const LoRAConfig& config,
                     const Device& device, std::optional<std::uint64_t> seed)
    : in_features_(in_features),
      out_features_(out_features),
      config_(checked(config, in_features, out_features)),
      dropout_state_(std::make_unique<std::atomic<std::uint64_t>>()) {
  const std::uint64_t layer_seed = seed ? *seed : next_layer_seed();
  const double deviation = 1 / std::sqrt(static_cast<double>(config.rank));
  lora_a_ = Var(Tensor(random_normal({in_features, config.rank}, splitmix64(layer_seed), DType::f32, device) *
                       deviation));
  lora_b_ = Var(Tensor::zeros({config.rank, out_features}, DType::f32, device));
  set_dropout_seed(layer_seed);
}

void LoRALayer::set_dropout_seed(std::uint64_t seed) { dropout_state_->store(splitmix64(~seed)); }

LazyTensor LoRALayer::forward_lazy(const LazyTensor& x) const {
  if (x.rank() == 0 || x.shape().back() != in_features_)
    throw ShapeError(fmt::format("LoRALayer: the input has shape {}, its last axis must be in_features = {}",
                                 x.shape().to_string(), in_features_));
  const LazyTensor& a = lora_a_.tensor().lazy();
  const LazyTensor& b = lora_b_.tensor().lazy();
  if (!training_ || config_.dropout == 0) return lora_delta(x, a, b, config_.scaling());

  const LazyTensor hidden = x.matmul(a);
  const std::uint64_t seed = splitmix64(dropout_state_->fetch_add(1));
  const LazyTensor draw = random_uniform(hidden.shape(), seed, DType::f32, hidden.device());
  // What is kept is scaled up, so that the expected sum is that of evaluation.
  const LazyTensor kept = where(greater_equal(draw, config_.dropout), hidden, zeros_like(hidden));
  return (kept * (1 / (1 - config_.dropout))).matmul(b) * config_.scaling();
}

Tensor LoRALayer::forward(const Tensor& x) const {
  return Tensor::computed(forward_lazy(x.lazy()), {&x, &lora_a_.tensor(), &lora_b_.tensor()});
}

}  // namespace caldera::v1
