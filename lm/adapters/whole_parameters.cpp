#include "lm/adapters/whole_parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "lm/models/causal_lm.h"
#include "ops/ops.h"
#include "ops/quantized/quantized_products.h"

namespace caldera::detail {
namespace {

constexpr const char* kHead = "lm_head";

struct Found {
  std::string name;
  Weight* weight;
};

std::vector<Found> weights_of(Module& model) {
  class Collector final : public ParameterVisitor {
   public:
    void parameter(const std::string& name, Weight& weight) override {
      if (weight.is_quantized() || weight.tensor.defined()) found.push_back({name, &weight});
    }
    std::vector<Found> found;
  };
  Collector collector;
  model.visit({}, collector);
  return std::move(collector.found);
}

std::string_view module_of(std::string_view name) { return name.substr(0, name.rfind('.')); }

/// The name of the model's table of tokens, which a model reports first.
std::string embedding_of(const std::vector<Found>& weights) {
  return weights.empty() ? std::string() : weights.front().name;
}

bool is_any(const std::vector<std::string>& targets, std::string_view path) {
  return std::ranges::any_of(targets,
                             [&](const std::string& t) { return is_lora_target(t, std::string(path)); });
}

}  // namespace

bool is_within(const std::vector<std::string>& modules, std::string_view path) {
  for (;; path = module_of(path)) {
    if (is_any(modules, path)) return true;
    if (path.find('.') == path.npos) return false;
  }
}

std::vector<std::string> resolve_saved_modules(CausalLM& model, const LoRAOptions& options) {
  std::vector<std::string> modules = options.modules_to_save;
  if (!model.config().tie_word_embeddings || modules.empty()) return modules;
  const std::string table(module_of(embedding_of(weights_of(model))));
  const bool names_head = is_any(modules, kHead), names_table = is_any(modules, table);
  if (names_table && !names_head) modules.emplace_back(kHead);
  if (names_head && !names_table) modules.insert(modules.begin(), table.substr(table.rfind('.') + 1));
  return modules;
}

std::vector<WholeParameter> whole_parameters(CausalLM& model, const LoRAOptions& options,
                                             const std::vector<std::string>& adapted) {
  const std::vector<Found> weights = weights_of(model);
  const std::vector<std::string> modules = resolve_saved_modules(model, options);
  const bool is_tied = model.config().tie_word_embeddings;
  for (const std::string& module : modules) {
    const std::vector<std::string> alone{module};
    const bool is_known =
        (is_tied && is_any(alone, kHead)) || std::ranges::any_of(weights, [&](const Found& found) {
          return is_within(alone, module_of(found.name));
        });
    if (!is_known)
      throw ValueError(fmt::format("modules_to_save: the model has no module '{}'; it has such as {} and {}",
                                   module, module_of(weights.front().name), module_of(weights.back().name)));
  }
  std::vector<WholeParameter> whole;
  for (const Found& found : weights) {
    if (found.name.find(".lora_") != std::string::npos || found.name == "score.weight") continue;
    WholeParameter parameter{.name = found.name, .shape = found.weight->shape(), .stored = {found.name}};
    const std::string module(module_of(found.name));
    const bool is_adapted = std::ranges::find(adapted, module) != adapted.end();
    const bool is_bias = found.name.ends_with(".bias");
    if (is_within(modules, module_of(found.name))) {
      if (is_tied && found.name == embedding_of(weights))
        parameter.stored.push_back(std::string(kHead) + ".weight");
    } else if (is_bias &&
               (options.bias == LoRABias::all || (options.bias == LoRABias::lora_only && is_adapted))) {
      if (is_adapted) {
        parameter.stored = {module + ".base_layer.bias"};
        parameter.older = found.name;
        // PEFT looks for such biases where they no longer are, and writes none.
        parameter.is_optional = options.bias == LoRABias::lora_only;
      }
    } else {
      continue;
    }
    whole.push_back(std::move(parameter));
  }
  return whole;
}

void train_whole(CausalLM& model, const std::vector<WholeParameter>& parameters) {
  for (const Found& found : weights_of(model)) {
    const auto named = std::ranges::find(parameters, found.name, &WholeParameter::name);
    if (named == parameters.end()) continue;
    Weight& weight = *found.weight;
    weight.base = weight.is_quantized() ? dequantize(weight.quantized) : weight.tensor;
    weight.base.eval();
    // A copy: the optimiser's update must not reach the base.
    weight.tensor = astype(weight.base, DType::f32) + 0.0;
    weight.quantized = {};
    weight.trainable = true;
  }
}

std::vector<Weight*> weights_trained_whole(Module& model) {
  std::vector<Weight*> weights;
  for (const Found& found : weights_of(model))
    if (found.weight->base.defined()) weights.push_back(found.weight);
  return weights;
}

void merge_whole(Module& model, double weight) {
  for (Weight* trained : weights_trained_whole(model)) {
    if (weight != 1) {
      const LazyTensor base = astype(trained->base, DType::f32);
      trained->tensor = base + (trained->tensor - base) * weight;
      trained->tensor.eval();
    }
    trained->base = {};
    trained->trainable = false;
  }
}

}  // namespace caldera::detail
