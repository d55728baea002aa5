// The flags of what finetune trains: kinds of adapters and the modules that they are on, or the whole model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "cli/arguments/settings_file.h"
#include "lm/adapters/lora.h"

namespace caldera::cli {

struct AdapterFlags {
  LoRAOptions options;
  std::vector<std::string> targets{"q_proj", "v_proj"};

  /// Declares --rank, --alpha, --dropout, --target-modules, --adapter-type and what else there is.
  void declare(Arguments& args);
  /// Brings options and targets into the form that apply_lora() takes, for this model. Throws UsageError.
  void resolve(CausalLM& model);
  /// Removes from the settings of a run what says nothing of it: of adapters, where the model itself is
  /// trained.
  void remove_unused(std::vector<Setting>& settings) const;
  /// Whether the model itself is trained, without an adapter.
  bool is_full() const { return type_ == "full"; }
  /// Applies the adapter, of which `seed` draws the weights, or makes the model itself trainable but for what
  /// --freeze names; returns what is trained, for people. `model_path` is what messages call the model.
  /// Throws UsageError for quantised weights that would be trained themselves, and where --freeze names no
  /// parameter, or all.
  std::string make_trainable(CausalLM& model, std::uint64_t seed, const std::string& model_path) const;

 private:
  void freeze(CausalLM& model) const;

  std::string type_ = "lora";
  std::string init_ = "default";
  std::string bias_ = "none";
  std::vector<std::string> ranks_, alphas_, freeze_;
  std::optional<std::int64_t> last_layers_;
  Option init_option_;
  std::vector<Option> adapters_alone_;  // flags that say nothing of a model that is trained itself
};

}  // namespace caldera::cli
