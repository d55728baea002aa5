#include "eager/lora_adapter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "eager/errors.h"
#include "lm/adapters/lora.h"
#include "ops/core/cast.h"

namespace caldera::v1 {
namespace {

constexpr std::array<std::string_view, 7> kNames{"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                 "gate_proj", "up_proj", "down_proj"};

std::string key_of(std::int64_t layer, TargetModule module) {
  return fmt::format("layers.{}.{}", layer, module.name());
}

/// A projection with a LoRA layer of the eager API beside it.
class AdaptedProjection final : public Projection {
 public:
  AdaptedProjection(std::unique_ptr<Projection> base, std::shared_ptr<const LoRAAdapter> adapter,
                    const LoRALayer& layer)
      : base_(std::move(base)), adapter_(std::move(adapter)), layer_(layer) {}

  LazyTensor forward(const LazyTensor& x) override {
    const LazyTensor y = base_->forward(x);
    return y + astype(layer_.forward_lazy(astype(x, DType::f32)), y.dtype());
  }
  std::int64_t in_features() const override { return base_->in_features(); }
  std::int64_t out_features() const override { return base_->out_features(); }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    visitor.module(prefix, *base_);
  }
  std::unique_ptr<Projection> take_base() { return std::move(base_); }

 private:
  std::unique_ptr<Projection> base_;
  std::shared_ptr<const LoRAAdapter> adapter_;  // which keeps the layer
  const LoRALayer& layer_;
};

std::vector<std::unique_ptr<Projection>*> adapted_slots(const LanguageModel& model) {
  std::vector<std::unique_ptr<Projection>*> slots;
  model.lazy().visit_projections(
      [&](const std::string&, const std::string&, std::unique_ptr<Projection>& slot) {
        if (dynamic_cast<AdaptedProjection*>(slot.get()) != nullptr) slots.push_back(&slot);
      });
  return slots;
}

Tensor transposed(const std::vector<float>& values, std::int64_t rows, std::int64_t columns,
                  const Device& device) {
  return Tensor(values, Shape{rows, columns}, device).transpose();
}

}  // namespace

std::string_view TargetModule::name() const { return kNames[kind_]; }

std::optional<TargetModule> TargetModule::from_name(std::string_view name) {
  for (const TargetModule module : all())
    if (module.name() == name) return module;
  return std::nullopt;
}

const std::vector<TargetModule>& TargetModule::all() {
  static const std::vector<TargetModule> kAll{QProj, KProj, VProj, OProj, GateProj, UpProj, DownProj};
  return kAll;
}

void LoRAAdapterConfig::validate() const {
  layer().validate();
  if (target_modules.empty())
    throw TrainingError::invalid_lora_config("target_modules names no module; q_proj and v_proj are usual");
  for (std::size_t i = 0; i < target_modules.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (target_modules[i].name() == target_modules[j].name())
        throw TrainingError::invalid_lora_config(
            fmt::format("target_modules names {} twice", target_modules[i].name()));
}

ModelDimensions ModelDimensions::of(const ModelConfig& config) {
  return {.num_layers = config.num_layers(),
          .hidden_size = config.hidden_size(),
          .intermediate_size = config.intermediate_size(),
          .num_heads = config.num_heads(),
          .num_kv_heads = config.num_kv_heads(),
          .head_dim = config.head_dim()};
}

std::int64_t ModelDimensions::in_features(TargetModule module) const {
  switch (module) {
    case TargetModule::OProj:
      return num_heads * head_dim;
    case TargetModule::DownProj:
      return intermediate_size;
    default:
      return hidden_size;
  }
}

std::int64_t ModelDimensions::out_features(TargetModule module) const {
  switch (module) {
    case TargetModule::QProj:
      return num_heads * head_dim;
    case TargetModule::KProj:
    case TargetModule::VProj:
      return num_kv_heads * head_dim;
    case TargetModule::GateProj:
    case TargetModule::UpProj:
      return intermediate_size;
    default:
      return hidden_size;
  }
}

LoRAAdapter::LoRAAdapter(const ModelDimensions& model, const LoRAAdapterConfig& config, const Device& device,
                         std::uint64_t seed)
    : model_(model), config_(config) {
  config.validate();
  for (std::int64_t layer = 0; layer < model.num_layers; ++layer)
    for (const TargetModule module : config.target_modules)
      layers_.emplace(key_of(layer, module), LoRALayer(model.in_features(module), model.out_features(module),
                                                       config.layer(), device, seed++));
}

LoRAAdapter::LoRAAdapter(const ModelDimensions& model, LoRAAdapterConfig config,
                         std::map<std::string, LoRALayer> layers)
    : model_(model), config_(std::move(config)), layers_(std::move(layers)) {}

const LoRALayer* LoRAAdapter::get_layer(std::int64_t layer, TargetModule module) const {
  const auto found = layers_.find(key_of(layer, module));
  return found == layers_.end() ? nullptr : &found->second;
}

std::optional<Tensor> LoRAAdapter::forward(std::int64_t layer, TargetModule module, const Tensor& x) const {
  const LoRALayer* own = get_layer(layer, module);
  if (own == nullptr) return std::nullopt;
  return own->forward(x);
}

Tensor LoRAAdapter::merge_weights(const Tensor& base, std::int64_t layer, TargetModule module) const {
  const LoRALayer* own = get_layer(layer, module);
  if (own == nullptr) return base;
  if (base.shape() != Shape{own->out_features(), own->in_features()})
    throw ShapeError(fmt::format("merge_weights: the base {} of {} is not (out, in) = ({}, {})",
                                 base.shape().to_string(), key_of(layer, module), own->out_features(),
                                 own->in_features()));
  const Tensor change = own->lora_a().tensor().matmul(own->lora_b().tensor()).transpose();
  return base + (change * own->config().scaling()).astype(base.dtype());
}

std::int64_t LoRAAdapter::num_trainable_parameters() const {
  std::int64_t sum = 0;
  for (const auto& [key, layer] : layers_) sum += layer.num_parameters();
  return sum;
}

std::int64_t LoRAAdapter::num_frozen_parameters() const {
  std::int64_t sum = 0;
  for (const auto& [key, layer] : layers_) sum += layer.in_features() * layer.out_features();
  return sum;
}

std::vector<Var> LoRAAdapter::trainable_variables() const {
  std::vector<Var> variables;
  for (const auto& [key, layer] : layers_)
    for (const Var& variable : layer.trainable_variables()) variables.push_back(variable);
  return variables;
}

void LoRAAdapter::set_training(bool training) {
  for (auto& [key, layer] : layers_) layer.set_training(training);
}

void apply_adapter(const LanguageModel& model, std::shared_ptr<const LoRAAdapter> adapter) {
  if (has_adapter(model))
    throw TrainingError::state("the model has an adapter; remove it before another is applied");
  struct Place {
    std::unique_ptr<Projection>* slot;
    const LoRALayer* layer;
  };
  std::vector<Place> places;
  model.lazy().visit_projections(
      [&](const std::string& path, const std::string& name, std::unique_ptr<Projection>& slot) {
        const auto module = TargetModule::from_name(name);
        if (!module) return;
        const LoRALayer* layer = adapter->get_layer(layer_of_path(path), *module);
        if (layer == nullptr) return;
        if (layer->in_features() != slot->in_features() || layer->out_features() != slot->out_features())
          throw ShapeError(fmt::format(
              "the adapter is of another model: {} maps {} to {} there, and {} to {} here", path,
              layer->in_features(), layer->out_features(), slot->in_features(), slot->out_features()));
        places.push_back({&slot, layer});
      });
  if (places.size() != adapter->layers().size())
    throw ShapeError(
        fmt::format("the adapter is of another model: it has {} layers, of which this one has {}",
                    adapter->layers().size(), places.size()));
  for (const Place& place : places)
    *place.slot = std::make_unique<AdaptedProjection>(std::move(*place.slot), adapter, *place.layer);
}

void remove_adapter(const LanguageModel& model) {
  const auto slots = adapted_slots(model);
  if (slots.empty()) throw TrainingError::state("the model has no adapter to remove");
  for (std::unique_ptr<Projection>* slot : slots)
    *slot = dynamic_cast<AdaptedProjection&>(**slot).take_base();
}

bool has_adapter(const LanguageModel& model) { return !adapted_slots(model).empty(); }

void AdapterRegistry::require(const std::string& name) const {
  if (!adapters_.contains(name))
    throw TrainingError::state(
        fmt::format("there is no adapter '{}'; there are: {}", name, fmt::join(list_adapters(), ", ")));
}

void AdapterRegistry::add_adapter(const std::string& name, AdapterPtr adapter) {
  if (!adapters_.emplace(name, std::move(adapter)).second)
    throw TrainingError::state(fmt::format("there is an adapter '{}'; unload it first", name));
}

void AdapterRegistry::load_adapter_from_checkpoint(const std::string& name, const std::filesystem::path& path,
                                                   const LanguageModel& model) {
  const ModelDimensions dimensions = ModelDimensions::of(model.config());
  const Device device = model.device();
  LoRAAdapterConfig config;
  std::map<std::string, LoRALayer> layers;
  try {
    const AdapterFactors read = read_adapter(model.lazy(), path);
    const LoRAOptions& options = read.options;
    if (options.use_dora || !options.modules_to_save.empty() || options.bias != LoRABias::none ||
        read.factors.contains("score.weight"))
      throw FileError(
          "it is no plain LoRA (DoRA, saved modules or biases); load it with caldera::load_adapter");
    config = {.rank = options.rank, .alpha = options.scaling() * options.rank, .dropout = options.dropout};
    config.target_modules.clear();
    for (const auto& [module_path, own] : lora_modules(model.lazy(), options, read.targets)) {
      const auto module = TargetModule::from_name(module_path.substr(module_path.rfind('.') + 1));
      if (!module) throw FileError(fmt::format("it adapts {}, which has no TargetModule", module_path));
      const auto known = std::ranges::find(config.target_modules, module->name(), &TargetModule::name);
      if (known == config.target_modules.end()) config.target_modules.push_back(*module);
      const std::int64_t in = dimensions.in_features(*module), out = dimensions.out_features(*module);
      LoRALayer layer(in, out, {.rank = own.rank, .alpha = own.scaling() * own.rank, .dropout = own.dropout},
                      device, 0);
      layer.lora_a().set(transposed(read.factors.at(module_path + ".lora_A.weight"), own.rank, in, device));
      layer.lora_b().set(transposed(read.factors.at(module_path + ".lora_B.weight"), out, own.rank, device));
      layers.emplace(key_of(layer_of_path(module_path), *module), std::move(layer));
    }
  } catch (const FileError& error) {
    throw CheckpointError::load_failed(path.string(), error.what());
  }
  add_adapter(name, std::make_shared<LoRAAdapter>(dimensions, config, std::move(layers)));
}

void AdapterRegistry::unload_adapter(const std::string& name) {
  require(name);
  adapters_.erase(name);
  if (active_ == name) active_.reset();
}

void AdapterRegistry::activate(const std::string& name) {
  require(name);
  active_ = name;
}

AdapterRegistry::AdapterPtr AdapterRegistry::get_adapter(const std::string& name) const {
  const auto found = adapters_.find(name);
  return found == adapters_.end() ? nullptr : found->second;
}

std::vector<std::string> AdapterRegistry::list_adapters() const {
  std::vector<std::string> names;
  for (const auto& [name, adapter] : adapters_) names.push_back(name);
  return names;
}

}  // namespace caldera::v1
