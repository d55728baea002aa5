// LoRAAdapter of the eager API: the LoRA layers of a whole model, and several such adapters by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eager/language_model.h"
#include "eager/lora.h"

namespace caldera::v1 {

/// Names one of the seven projections of a decoder's layer.
class TargetModule {
 public:
  enum Kind : std::uint8_t { QProj, KProj, VProj, OProj, GateProj, UpProj, DownProj };

  constexpr TargetModule(Kind kind) : kind_(kind) {}  // NOLINT(google-explicit-constructor): it is its kind
  constexpr operator Kind() const { return kind_; }   // NOLINT(google-explicit-constructor)

  /// "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj".
  std::string_view name() const;
  /// Nothing for another name.
  static std::optional<TargetModule> from_name(std::string_view name);
  static const std::vector<TargetModule>& all();

 private:
  Kind kind_;
};

struct LoRAAdapterConfig {
  std::int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;
  std::vector<TargetModule> target_modules = {TargetModule::QProj, TargetModule::VProj};

  LoRAConfig layer() const { return {.rank = rank, .alpha = alpha, .dropout = dropout}; }
  /// Throws TrainingError (InvalidLoRAConfig) as LoRAConfig::validate does, and where no module is named, or
  /// one twice.
  void validate() const;
};

/// Says how large the projections of a model are. Keys and values are narrower than queries where these are
/// grouped.
struct ModelDimensions {
  std::int64_t num_layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;

  static ModelDimensions of(const ModelConfig& config);
  /// Features in and out of a projection.
  std::int64_t in_features(TargetModule module) const;
  std::int64_t out_features(TargetModule module) const;
};

/// A LoRA layer for each target module of each layer of a model. Movable, not copyable.
class LoRAAdapter {
 public:
  /// Layer i's modules take the seeds that follow one another from `seed` on. Throws TrainingError
  /// (InvalidLoRAConfig) as LoRALayer does.
  LoRAAdapter(const ModelDimensions& model, const LoRAAdapterConfig& config,
              const Device& device = Device::cpu(), std::uint64_t seed = 0);
  /// With layers of one's own, keyed as layers() has them.
  LoRAAdapter(const ModelDimensions& model, LoRAAdapterConfig config,
              std::map<std::string, LoRALayer> layers);

  /// The delta for the module's input, to be added to its output; nothing where the module is not adapted.
  std::optional<Tensor> forward(std::int64_t layer, TargetModule module, const Tensor& x) const;
  /// Keyed "layers.{i}.{module}": "layers.0.q_proj".
  const std::map<std::string, LoRALayer>& layers() const { return layers_; }
  /// Null where the module is not adapted.
  const LoRALayer* get_layer(std::int64_t layer, TargetModule module) const;
  /// base (out, in), as checkpoints store it, plus scaling (A B)^T; base itself where the module is not
  /// adapted. Throws ShapeError.
  Tensor merge_weights(const Tensor& base, std::int64_t layer, TargetModule module) const;

  std::int64_t num_trainable_parameters() const;
  /// Elements of the matrices that stand frozen beside the adapter's layers.
  std::int64_t num_frozen_parameters() const;
  /// A and B of each layer, in the order of layers().
  std::vector<Var> trainable_variables() const;
  void set_training(bool training);
  const LoRAAdapterConfig& config() const { return config_; }
  const ModelDimensions& dimensions() const { return model_; }

 private:
  ModelDimensions model_;
  LoRAAdapterConfig config_;
  std::map<std::string, LoRALayer> layers_;
};

/// Has the model compute with the adapter from now on: in forward(), in generation, and in value_and_grad of
/// the adapter's variables. Throws TrainingError (State) where it has one already, and ShapeError where the
/// adapter is of another model.
void apply_adapter(const LanguageModel& model, std::shared_ptr<const LoRAAdapter> adapter);
/// Gives the model back as it was. Throws TrainingError (State) where it has none.
void remove_adapter(const LanguageModel& model);
bool has_adapter(const LanguageModel& model);

/// Adapters by name, of which one may be active. Not synchronised.
class AdapterRegistry {
 public:
  using AdapterPtr = std::shared_ptr<LoRAAdapter>;

  /// Throws TrainingError (State) for a name that is taken.
  void add_adapter(const std::string& name, AdapterPtr adapter);
  /// Reads an adapter of this model: a folder of PEFT or mlx-lm, or a GGUF file. Throws CheckpointError
  /// (LoadFailed) for what does not fit, and for kinds that are no plain LoRA (DoRA, saved modules); and as
  /// add_adapter does.
  void load_adapter_from_checkpoint(const std::string& name, const std::filesystem::path& path,
                                    const LanguageModel& model);
  /// Forgets an adapter; the active one is none then, if it was that. Throws TrainingError (State) for an
  /// unknown name.
  void unload_adapter(const std::string& name);
  /// Throws TrainingError (State) for an unknown name.
  void activate(const std::string& name);
  void deactivate() { active_.reset(); }
  /// The active adapter's name.
  const std::optional<std::string>& active_adapter() const { return active_; }
  /// Null for an unknown name.
  AdapterPtr get_adapter(const std::string& name) const;
  /// In alphabetical order.
  std::vector<std::string> list_adapters() const;
  std::size_t len() const { return adapters_.size(); }
  bool is_empty() const { return adapters_.empty(); }

 private:
  void require(const std::string& name) const;

  std::map<std::string, AdapterPtr> adapters_;
  std::optional<std::string> active_;
};

}  // namespace caldera::v1
