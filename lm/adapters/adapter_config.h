// A LoRA adapter's configuration, in the form PEFT reads and writes (adapter_config.json).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lm/adapters/lora_options.h"

namespace caldera {

/// The part of PEFT's LoraConfig that Caldera honours.
struct AdapterConfig {
  LoRAOptions options;
  /// Module names ("q_proj"; matched as PEFT does, as the last components of a module's path), or the one
  /// entry "all-linear", or one regular expression for whole paths.
  std::vector<std::string> target_modules;
  std::string base_model_name_or_path;
  std::string task_type = "CAUSAL_LM";
  /// Whether the adapter has a head of its own that scores texts: "score" among modules_to_save.
  bool has_score_head = false;
  /// Read and written for GPT-2's sake; without meaning for nn.Linear modules, as in PEFT.
  bool fan_in_fan_out = false;

  /// Reads an adapter_config.json. Throws FileError, "path: field 'x' ...", for malformed values and for
  /// every PEFT feature that would change the result and is not supported (replicated layers, trained tokens,
  /// ...).
  static AdapterConfig from_file(const std::filesystem::path& path);
  /// Reads it from text; `where` begins every message.
  static AdapterConfig from_json(std::string_view text, const std::string& where = "adapter_config");
  /// An adapter_config.json that PEFT loads.
  std::string to_json() const;
  /// Writes to_json() atomically. Throws FileError.
  void write(const std::filesystem::path& path) const;
  /// Throws ValueError for a value out of its domain.
  void validate() const;

  bool operator==(const AdapterConfig&) const = default;
};

}  // namespace caldera
