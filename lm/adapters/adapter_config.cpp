#include "lm/adapters/adapter_config.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/base/json_text.h"

namespace caldera {
namespace {

using detail::JsonFields;
using detail::JsonKind;
using detail::printable;

constexpr const char* kAllLinear = "all-linear";
constexpr const char* kScoreHead = "score";
constexpr int kMaxRankOfAdapter = 1 << 20;

/// Refuses what would silently give other numbers than PEFT does.
void refuse_unsupported_adapter(const JsonFields& fields) {
  for (const char* field :
       {"use_dora", "use_rslora", "use_qalora", "lora_bias", "rank_pattern", "alpha_pattern",
        "layers_to_transform", "layers_pattern", "layer_replication", "exclude_modules", "target_parameters",
        "trainable_token_indices", "megatron_config"}) {
    // PEFT writes unused features as false, null, or an empty object or list.
    if (!fields.is_unset(field)) fields.fail(field, "is set, which is not supported");
  }
  const std::vector<std::string> saved =
      fields.is_unset("modules_to_save") ? std::vector<std::string>{} : fields.strings("modules_to_save");
  if (!saved.empty() && saved != std::vector<std::string>{kScoreHead})
    fields.fail("modules_to_save", "names other modules than 'score', which is not supported");
  const auto bias = fields.string("bias").value_or("none");
  if (bias != "none") fields.fail("bias", fmt::format("is '{}', which is not supported", printable(bias)));
  // PiSSA, OLoRA, LoftQ and CorDA change the base weights; such an adapter is wrong on top of the published
  // ones.
  const JsonKind init = fields.kind("init_lora_weights");
  if (init != JsonKind::missing && init != JsonKind::boolean &&
      !(init == JsonKind::string && fields.string("init_lora_weights") == "gaussian")) {
    fields.fail("init_lora_weights",
                "asks for an initialisation that changes the base model, which is not supported");
  }
}

std::vector<std::string> read_targets(const JsonFields& fields) {
  if (fields.kind("target_modules") == JsonKind::string) {
    if (fields.string("target_modules") == kAllLinear) return {kAllLinear};
    fields.fail("target_modules",
                "is a pattern, which is not supported (supported: a list, or \"all-linear\")");
  }
  if (!fields.has("target_modules")) fields.fail("target_modules", "is missing");
  return fields.strings("target_modules");
}

}  // namespace

AdapterConfig AdapterConfig::from_json(std::string_view text, const std::string& where) {
  const detail::JsonDocument document(text, where);
  const JsonFields& fields = document.fields();
  const auto type = fields.require_string("peft_type");
  if (type != "LORA") {
    fields.fail("peft_type",
                fmt::format("is '{}', which is not supported (supported: LORA)", printable(type)));
  }
  refuse_unsupported_adapter(fields);

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
  config.has_score_head = !fields.is_unset("modules_to_save");
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
  detail::JsonMembers json;
  const auto put = [&](const char* name, detail::JsonValue value) {
    json.emplace_back(name, std::move(value));
  };
  put("alpha_pattern", detail::EmptyObject{});
  put("auto_mapping", nullptr);
  put("base_model_name_or_path", base_model_name_or_path);
  put("bias", "none");
  put("fan_in_fan_out", fan_in_fan_out);
  put("inference_mode", true);
  put("init_lora_weights", true);
  put("layer_replication", nullptr);
  put("layers_pattern", nullptr);
  put("layers_to_transform", nullptr);
  put("loftq_config", detail::EmptyObject{});
  // PEFT declares lora_alpha an integer; a fraction is written as what it is.
  if (alpha == std::floor(alpha) && std::abs(alpha) < 1e9)
    put("lora_alpha", static_cast<std::int64_t>(alpha));
  else
    put("lora_alpha", alpha);
  put("lora_dropout", dropout);
  put("megatron_config", nullptr);
  put("megatron_core", "megatron.core");
  if (has_score_head)
    put("modules_to_save", std::vector<std::string>{kScoreHead});
  else
    put("modules_to_save", nullptr);
  put("peft_type", "LORA");
  put("r", std::int64_t{rank});
  put("rank_pattern", detail::EmptyObject{});
  put("revision", nullptr);
  if (target_modules.size() == 1 && target_modules.front() == kAllLinear)
    put("target_modules", kAllLinear);
  else
    put("target_modules", target_modules);
  put("task_type", task_type);
  put("use_dora", false);
  put("use_rslora", false);
  try {
    return detail::to_json(json, 2) + "\n";
  } catch (const ValueError&) {
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
