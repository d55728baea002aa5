#include "training/io/adapter_config.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/tensor/error.h"
#include "training/io/atomic_file.h"
#include "training/io/json_file.h"

namespace caldera {
namespace {

using detail::JsonFields;
using detail::printable;

constexpr const char* kAllLinear = "all-linear";
constexpr int kMaxRankOfAdapter = 1 << 20;

/// PEFT writes unused features as false, null, or an empty object or list.
bool is_unset(const nlohmann::json* value) {
  if (value == nullptr) return true;
  if (value->is_boolean()) return !value->get<bool>();
  return (value->is_object() || value->is_array()) && value->empty();
}

/// Refuses what would silently give other numbers than PEFT does.
void refuse_unsupported(const JsonFields& fields) {
  for (const char* field :
       {"use_dora", "use_rslora", "use_qalora", "lora_bias", "modules_to_save", "rank_pattern",
        "alpha_pattern", "layers_to_transform", "layers_pattern", "layer_replication", "exclude_modules",
        "target_parameters", "trainable_token_indices", "megatron_config"}) {
    if (!is_unset(fields.find(field))) fields.fail(field, "is set, which is not supported");
  }
  const auto bias = fields.string("bias").value_or("none");
  if (bias != "none") fields.fail("bias", fmt::format("is '{}', which is not supported", printable(bias)));
  // PiSSA, OLoRA, LoftQ and CorDA change the base weights; such an adapter is wrong on top of the published
  // ones.
  const auto* init = fields.find("init_lora_weights");
  if (init != nullptr && !init->is_boolean() && *init != "gaussian") {
    fields.fail("init_lora_weights",
                "asks for an initialisation that changes the base model, which is not supported");
  }
}

std::vector<std::string> read_targets(const JsonFields& fields) {
  const auto* value = fields.find("target_modules");
  if (value != nullptr && value->is_string()) {
    if (*value == kAllLinear) return {kAllLinear};
    fields.fail("target_modules",
                "is a pattern, which is not supported (supported: a list, or \"all-linear\")");
  }
  std::vector<std::string> targets;
  for (const auto& item : fields.require_array("target_modules")) {
    if (!item.is_string()) fields.fail("target_modules", "must be a list of strings");
    targets.push_back(item.get<std::string>());
  }
  return targets;
}

}  // namespace

AdapterConfig AdapterConfig::from_json(std::string_view text, const std::string& where) {
  const auto root = detail::parse_json(text, where);
  const JsonFields fields(root, where);
  const auto type = fields.require_string("peft_type");
  if (type != "LORA") {
    fields.fail("peft_type",
                fmt::format("is '{}', which is not supported (supported: LORA)", printable(type)));
  }
  refuse_unsupported(fields);

  AdapterConfig config;
  const std::int64_t rank = fields.require_integer("r");
  if (rank < 1 || rank > kMaxRankOfAdapter)
    fields.fail("r", fmt::format("is {}, but must be positive", rank));
  config.rank = static_cast<int>(rank);
  const auto alpha = fields.number("lora_alpha");
  if (!alpha) fields.fail("lora_alpha", "is missing");
  config.alpha = *alpha;
  config.dropout = fields.number("lora_dropout").value_or(0.0);
  config.target_modules = read_targets(fields);
  config.base_model_name_or_path = fields.string("base_model_name_or_path").value_or("");
  config.task_type = fields.string("task_type").value_or(config.task_type);
  config.fan_in_fan_out = fields.boolean("fan_in_fan_out").value_or(false);
  try {
    config.validate();
  } catch (const ValueError& e) {
    const std::string_view message = e.what();
    throw FileError(fmt::format("{}{}", where, message.substr(message.find(':'))));
  }
  return config;
}

AdapterConfig AdapterConfig::from_file(const std::filesystem::path& path) {
  return from_json(read_text_file(path), path.string());
}

std::string AdapterConfig::to_json() const {
  validate();
  nlohmann::ordered_json json;
  json["alpha_pattern"] = nlohmann::ordered_json::object();
  json["auto_mapping"] = nullptr;
  json["base_model_name_or_path"] = base_model_name_or_path;
  json["bias"] = "none";
  json["fan_in_fan_out"] = fan_in_fan_out;
  json["inference_mode"] = true;
  json["init_lora_weights"] = true;
  json["layer_replication"] = nullptr;
  json["layers_pattern"] = nullptr;
  json["layers_to_transform"] = nullptr;
  json["loftq_config"] = nlohmann::ordered_json::object();
  // PEFT declares lora_alpha an integer; a fraction is written as what it is.
  if (alpha == std::floor(alpha) && std::abs(alpha) < 1e9)
    json["lora_alpha"] = static_cast<std::int64_t>(alpha);
  else
    json["lora_alpha"] = alpha;
  json["lora_dropout"] = dropout;
  json["megatron_config"] = nullptr;
  json["megatron_core"] = "megatron.core";
  json["modules_to_save"] = nullptr;
  json["peft_type"] = "LORA";
  json["r"] = rank;
  json["rank_pattern"] = nlohmann::ordered_json::object();
  json["revision"] = nullptr;
  if (target_modules.size() == 1 && target_modules.front() == kAllLinear)
    json["target_modules"] = kAllLinear;
  else
    json["target_modules"] = target_modules;
  json["task_type"] = task_type;
  json["use_dora"] = false;
  json["use_rslora"] = false;
  try {
    return json.dump(2) + "\n";
  } catch (const nlohmann::json::exception&) {
    throw ValueError("adapter_config: a string is not UTF-8");
  }
}

void AdapterConfig::write(const std::filesystem::path& path) const { write_text_file(path, to_json()); }

void AdapterConfig::validate() const {
  const auto fail = [](const char* field, const std::string& problem) {
    throw ValueError(fmt::format("adapter_config: field '{}' {}", field, problem));
  };
  if (rank < 1 || rank > kMaxRankOfAdapter) fail("r", fmt::format("is {}, but must be positive", rank));
  if (!(alpha > 0) || !std::isfinite(alpha)) {
    fail("lora_alpha", fmt::format("is {}, but must be positive", alpha));
  }
  if (!(dropout >= 0 && dropout < 1)) {
    fail("lora_dropout", fmt::format("is {}, but must lie in [0, 1)", dropout));
  }
  if (target_modules.empty()) fail("target_modules", "names no module");
  for (const auto& module : target_modules) {
    if (module.empty()) fail("target_modules", "holds an empty name");
    if (module == kAllLinear && target_modules.size() > 1) {
      fail("target_modules", "holds \"all-linear\" beside other names");
    }
  }
}

}  // namespace caldera
