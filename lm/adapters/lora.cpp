#include "lm/adapters/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "lm/models/causal_lm.h"
#include "lm/nn/init.h"
#include "lm/nn/precision.h"
#include "ops/core/views.h"
#include "ops/nn/dropout.h"
#include "ops/nn/lora.h"
#include "ops/random/uniform_normal.h"

namespace caldera {
namespace {

void check_rank(const std::string& name, const Projection& base, int rank) {
  const std::int64_t limit = std::min(base.in_features(), base.out_features());
  if (rank > limit)
    throw ValueError(
        fmt::format("LoRA rank {} is above min(in, out) = {} of {} (in {}, out {}); use a rank of at "
                    "most {}",
                    rank, limit, name, base.in_features(), base.out_features(), limit));
}

/// kaiming_uniform with a = sqrt(5): the bound sqrt(6 / ((1 + a^2) fan_in)) is 1 / sqrt(fan_in).
LazyTensor initial_a(const Projection& base, int rank, std::uint64_t seed, Device device) {
  const double bound = 1 / std::sqrt(static_cast<double>(base.in_features()));
  return uniform_init(Shape{rank, base.in_features()}, bound, seed, device);
}

LazyTensor initial_b(const Projection& base, int rank, Device device) {
  return LazyTensor::zeros(Shape{base.out_features(), rank}, DType::f32, device);
}

/// Where the projection's first weight is, quantised or not.
Device device_of(Projection& base) {
  class Finder final : public ParameterVisitor {
   public:
    void parameter(const std::string&, Weight& weight) override {
      if (!device && (weight.is_quantized() || weight.tensor.defined())) device = weight.device();
    }
    std::optional<Device> device;
  };
  Finder finder;
  base.visit({}, finder);
  return finder.device.value();
}

}  // namespace

void LoRAOptions::validate() const {
  if (rank < 1) throw ValueError(fmt::format("LoRA rank {} is not positive", rank));
  if (!(alpha > 0) || !std::isfinite(alpha))
    throw ValueError(fmt::format("LoRA alpha {} is not positive", alpha));
  if (!(dropout >= 0 && dropout < 1))
    throw ValueError(fmt::format("LoRA dropout {} is not in [0, 1)", dropout));
}

LoRALinear::LoRALinear(std::unique_ptr<Projection> base, const LoRAOptions& options, std::uint64_t seed,
                       const std::string& name)
    : base_(std::move(base)), options_(options), dropout_(options.dropout, seed) {
  options_.validate();
  check_rank(name, *base_, options_.rank);
  const Device device = device_of(*base_);
  a_.tensor = initial_a(*base_, options_.rank, seed, device);
  b_.tensor = initial_b(*base_, options_.rank, device);
}

LoRALinear::LoRALinear(std::unique_ptr<Projection> base, const LoRAOptions& options, LazyTensor a,
                       LazyTensor b)
    : base_(std::move(base)),
      options_(options),
      a_{std::move(a)},
      b_{std::move(b)},
      dropout_(options.dropout) {
  options_.validate();
  check_rank("LoRALinear", *base_, options_.rank);
  if (lora_a().shape() != Shape{options_.rank, in_features()} ||
      lora_b().shape() != Shape{out_features(), options_.rank})
    throw ShapeError(fmt::format("LoRALinear: A {} and B {} do not fit rank {}, in {}, out {}",
                                 lora_a().shape().to_string(), lora_b().shape().to_string(), options_.rank,
                                 in_features(), out_features()));
}

LazyTensor LoRALinear::forward(const LazyTensor& x) {
  if (!enabled_) return base_->forward(x);
  const LazyTensor delta = lora_delta(dropout_.forward(x), transpose(cast_like(a_.tensor, x)),
                                      transpose(cast_like(b_.tensor, x)), options_.scaling());
  return base_->forward(x) + delta;
}

void LoRALinear::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.module(prefix, *base_);
  visitor.parameter(join_name(prefix, "lora_A.weight"), a_);
  visitor.parameter(join_name(prefix, "lora_B.weight"), b_);
  visitor.module(join_name(prefix, "lora_dropout"), dropout_);
}

std::vector<std::string> lora_target_modules(CausalLM& model) {
  std::vector<std::string> names;
  model.visit_projections([&](const std::string&, const std::string& name, std::unique_ptr<Projection>&) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  });
  return names;
}

std::vector<std::string> resolve_lora_targets(CausalLM& model, const std::vector<std::string>& targets) {
  std::vector<std::string> valid = lora_target_modules(model);
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const std::string& t : targets)
    if (t != "all-linear" && !has(valid, t))
      throw ValueError(fmt::format("unknown LoRA target module '{}' (valid: {}, or all-linear)", t,
                                   fmt::join(valid, ", ")));
  if (targets.empty())
    throw ValueError(
        fmt::format("no LoRA target module is given (valid: {}, or all-linear)", fmt::join(valid, ", ")));
  if (has(targets, "all-linear")) return valid;
  std::vector<std::string> chosen;
  for (const std::string& name : valid)
    if (has(targets, name)) chosen.push_back(name);
  return chosen;
}

std::size_t apply_lora(CausalLM& model, const LoRAOptions& options, const std::vector<std::string>& targets,
                       std::uint64_t seed) {
  options.validate();
  const std::vector<std::string> names = resolve_lora_targets(model, targets);
  struct Site {
    std::string path;
    std::unique_ptr<Projection>* slot;
  };
  std::vector<Site> sites;
  model.visit_projections(
      [&](const std::string& path, const std::string& name, std::unique_ptr<Projection>& slot) {
        if (dynamic_cast<LoRALinear*>(slot.get()) != nullptr)
          throw ValueError(fmt::format("the model has an adapter already (at {})", path));
        if (std::find(names.begin(), names.end(), name) == names.end()) return;
        check_rank(path, *slot, options.rank);
        sites.push_back({path, &slot});
      });
  model.freeze();
  for (std::size_t i = 0; i < sites.size(); ++i)
    *sites[i].slot =
        std::make_unique<LoRALinear>(std::move(*sites[i].slot), options, mix_seed(seed, i), sites[i].path);
  model.set_training(model.is_training());  // reaches the new modules
  model.materialize();
  return sites.size();
}

}  // namespace caldera
