// The flags of what finetune trains: kinds of adapters and the modules that they are on, or the whole model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "lm/adapters/lora.h"

namespace caldera::cli {

struct AdapterFlags {
  LoRAOptions options;
  std::vector<std::string> targets{"q_proj", "v_proj"};

  /// Declares --rank, --alpha, --dropout, --target-modules, --adapter-type and what else there is.
  void declare(Arguments& args);
  /// Brings options and targets into the form that apply_lora() takes, for this model. Throws UsageError.
  void resolve(CausalLM& model);
  /// Whether the model itself is trained, without an adapter.
  bool is_full() const { return type_ == "full"; }
  /// Freezes what --freeze names, of a model that is trained itself. Throws UsageError where it names no
  /// parameter, or all.
  void freeze(CausalLM& model) const;

 private:
  std::string type_ = "lora";
  std::string init_ = "default";
  std::string bias_ = "none";
  std::vector<std::string> ranks_, alphas_, freeze_;
  std::optional<std::int64_t> last_layers_;
  Option init_option_;
  std::vector<Option> adapters_alone_;  // flags that say nothing of a model that is trained itself
};

}  // namespace caldera::cli
