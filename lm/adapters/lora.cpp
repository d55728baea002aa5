#include "lm/adapters/lora.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "lm/adapters/whole_parameters.h"
#include "lm/models/causal_lm.h"

namespace caldera {
namespace {

std::vector<std::string> projection_paths(CausalLM& model) {
  std::vector<std::string> paths;
  model.visit_adaptable([&](const std::string& path, const std::string&, std::unique_ptr<Projection>&) {
    paths.push_back(path);
  });
  return paths;
}

std::vector<detail::WholeParameter> checked_whole(
    CausalLM& model, const LoRAOptions& options,
    const std::vector<std::pair<std::string, LoRAOptions>>& modules) {
  std::vector<std::string> paths;
  paths.reserve(modules.size());
  for (const auto& [path, own] : modules) paths.push_back(path);
  std::vector<detail::WholeParameter> whole = detail::whole_parameters(model, options, paths);
  const bool trains_bias =
      std::ranges::any_of(whole, [](const detail::WholeParameter& p) { return p.name.ends_with(".bias"); });
  if (options.use_dora && options.bias != LoRABias::none && trains_bias)
    throw ValueError("LoRA: DoRA keeps the biases of its modules; train none with it");
  return whole;
}

}  // namespace

std::vector<std::string> lora_target_modules(CausalLM& model) {
  std::vector<std::string> names;
  model.visit_projections([&](const std::string&, const std::string& name, std::unique_ptr<Projection>&) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  });
  return names;
}

std::vector<std::string> resolve_lora_targets(CausalLM& model, const std::vector<std::string>& targets) {
  std::vector<std::string> valid = lora_target_modules(model);
  const std::vector<std::string> paths = projection_paths(model);
  const auto has = [](const std::vector<std::string>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const std::string& t : targets) {
    const bool is_known =
        t == kAllLinear || has(valid, t) ||
        std::any_of(paths.begin(), paths.end(), [&](const auto& path) { return is_lora_target(t, path); });
    if (!is_known)
      throw ValueError(fmt::format("unknown LoRA target module '{}' (valid: {}, or all-linear)", t,
                                   fmt::join(valid, ", ")));
  }
  if (targets.empty())
    throw ValueError(
        fmt::format("no LoRA target module is given (valid: {}, or all-linear)", fmt::join(valid, ", ")));
  const bool are_all = has(targets, kAllLinear);
  std::vector<std::string> chosen;
  for (const std::string& name : valid)
    if (are_all || has(targets, name)) chosen.push_back(name);
  for (const std::string& t : targets)
    if (t != kAllLinear && !has(chosen, t)) chosen.push_back(t);
  return chosen;
}

std::vector<std::pair<std::string, LoRAOptions>> lora_modules(CausalLM& model, const LoRAOptions& options,
                                                              const std::vector<std::string>& targets) {
  const std::vector<std::string> chosen = resolve_lora_targets(model, targets);
  const auto is_one = [](const std::vector<std::string>& list, const std::string& path) {
    return std::any_of(list.begin(), list.end(), [&](const auto& t) { return is_lora_target(t, path); });
  };
  std::vector<std::pair<std::string, LoRAOptions>> modules;
  for (const std::string& path : projection_paths(model)) {
    const auto& layers = options.layers_to_transform;
    const bool is_in_layers =
        layers.empty() ||
        std::find(layers.begin(), layers.end(), layer_of_path(path, options.layers_pattern)) != layers.end();
    const bool is_left_out =
        is_one(options.exclude_modules, path) || detail::is_within(options.modules_to_save, path);
    if (is_in_layers && is_one(chosen, path) && !is_left_out)
      modules.emplace_back(path, options.for_module(path));
  }
  return modules;
}

std::vector<std::string> lora_saved_parameters(CausalLM& model, const LoRAOptions& options,
                                               const std::vector<std::string>& targets) {
  std::vector<std::string> names;
  for (const detail::WholeParameter& p : checked_whole(model, options, lora_modules(model, options, targets)))
    names.push_back(p.name);
  return names;
}

std::size_t apply_lora(CausalLM& model, const LoRAOptions& options, const std::vector<std::string>& targets,
                       std::uint64_t seed) {
  options.validate();
  const auto modules = lora_modules(model, options, targets);
  if (modules.empty())
    throw ValueError(
        "LoRA: no module is left to adapt; look at the layers and the modules that are left out");
  std::vector<std::unique_ptr<Projection>*> slots;
  model.visit_adaptable([&](const std::string& path, const std::string&, std::unique_ptr<Projection>& slot) {
    if (dynamic_cast<LoRALinear*>(slot.get()) != nullptr)
      throw ValueError(fmt::format("the model has an adapter already (at {})", path));
    if (slots.size() == modules.size() || modules[slots.size()].first != path) return;
    check_lora_rank(path, *slot, modules[slots.size()].second.rank);
    slots.push_back(&slot);
  });
  const std::vector<detail::WholeParameter> whole = checked_whole(model, options, modules);
  auto request = std::make_shared<LoRARequest>(
      LoRARequest{options, targets.size() == 1 ? targets : resolve_lora_targets(model, targets)});
  request->options.modules_to_save = detail::resolve_saved_modules(model, options);
  model.freeze();
  detail::train_whole(model, whole);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    auto adapted = std::make_unique<LoRALinear>(std::move(*slots[i]), modules[i].second, mix_seed(seed, i),
                                                modules[i].first);
    adapted->set_request(request);
    *slots[i] = std::move(adapted);
  }
  model.set_training(model.is_training());  // reaches the new modules
  model.materialize();
  return slots.size();
}

}  // namespace caldera
