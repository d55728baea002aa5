#include "lm/adapters/adapter_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/base/json_text.h"

namespace caldera {
namespace {

using detail::JsonFields;
using detail::JsonKind;
using detail::printable;

constexpr const char* kScoreHead = "score";
constexpr int kMaxRankOfAdapter = 1 << 20;

/// Refuses what would silently give other numbers than PEFT does.
void refuse_unsupported_adapter(const JsonFields& fields) {
  for (const char* field :
       {"use_qalora", "lora_bias", "layer_replication", "alora_invocation_tokens", "arrow_config",
        "target_parameters", "trainable_token_indices", "megatron_config"}) {
    // PEFT writes unused features as false, null, or an empty object or list.
    if (!fields.is_unset(field)) fields.fail(field, "is set, which is not supported");
  }
  // PiSSA, OLoRA, LoftQ and CorDA change the base weights; such an adapter is wrong on top of the published
  // ones.
  const JsonKind init = fields.kind("init_lora_weights");
  if (init != JsonKind::missing && init != JsonKind::boolean &&
      !(init == JsonKind::string && fields.string("init_lora_weights") == "gaussian")) {
    fields.fail("init_lora_weights",
                "asks for an initialisation that changes the base model, which is not supported");
  }
}

/// A list of names, or one regular expression.
std::vector<std::string> read_modules(const JsonFields& fields, const char* field) {
  if (fields.kind(field) == JsonKind::string) return {*fields.string(field)};
  return fields.strings(field);
}

/// The members of an object of numbers.
std::map<std::string, double> read_numbers(const JsonFields& fields, const char* field) {
  std::map<std::string, double> numbers;
  if (fields.kind(field) != JsonKind::object) fields.fail(field, "must be an object of numbers");
  const JsonFields object = fields.object(field, fields.where());
  for (const std::string& name : object.names()) {
    if (object.kind(name.c_str()) != JsonKind::number) fields.fail(field, "must be an object of numbers");
    numbers.emplace(name, *object.number(name.c_str()));
  }
  return numbers;
}

struct BiasName {
  const char* name;
  LoRABias value;
};
constexpr std::array kBiases{BiasName{"none", LoRABias::none}, BiasName{"all", LoRABias::all},
                             BiasName{"lora_only", LoRABias::lora_only}};

LoRABias read_bias(const JsonFields& fields) {
  const std::string bias = fields.string("bias").value_or("none");
  const auto* const known = std::ranges::find_if(kBiases, [&](const BiasName& b) { return b.name == bias; });
  if (known == kBiases.end())
    fields.fail("bias", fmt::format("is '{}', and may be none, all or lora_only", printable(bias)));
  return known->value;
}

LoRAOptions read_options(const JsonFields& fields) {
  LoRAOptions options;
  options.bias = read_bias(fields);
  if (!fields.is_unset("modules_to_save")) {
    options.modules_to_save = fields.strings("modules_to_save");
    std::erase(options.modules_to_save, kScoreHead);
  }
  const std::int64_t rank = fields.require_integer("r");
  if (rank < 1 || rank > kMaxRankOfAdapter)
    fields.fail("r", fmt::format("is {}, but must be positive", rank));
  options.rank = static_cast<int>(rank);
  const auto alpha = fields.number("lora_alpha");
  if (!alpha) fields.fail("lora_alpha", "is missing");
  options.alpha = *alpha;
  options.dropout = fields.number("lora_dropout").value_or(0.0);
  options.use_rslora = fields.boolean("use_rslora").value_or(false);
  options.use_dora = fields.boolean("use_dora").value_or(false);
  if (fields.kind("init_lora_weights") == JsonKind::string) options.init = LoRAInit::gaussian;
  if (!fields.is_unset("rank_pattern")) {
    for (const auto& [name, value] : read_numbers(fields, "rank_pattern")) {
      if (value != std::floor(value) || value < 1 || value > kMaxRankOfAdapter)
        fields.fail("rank_pattern", fmt::format("gives '{}' the rank {}", printable(name), value));
      options.rank_pattern.emplace(name, static_cast<int>(value));
    }
  }
  if (!fields.is_unset("alpha_pattern")) options.alpha_pattern = read_numbers(fields, "alpha_pattern");
  if (!fields.is_unset("layers_to_transform"))
    options.layers_to_transform = fields.integers("layers_to_transform");
  if (!fields.is_unset("layers_pattern")) options.layers_pattern = read_modules(fields, "layers_pattern");
  if (!fields.is_unset("exclude_modules")) options.exclude_modules = read_modules(fields, "exclude_modules");
  return options;
}

template <class Value>
detail::RawJson object_of(const std::map<std::string, Value>& values) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : values) {
    if (value == static_cast<Value>(std::floor(static_cast<double>(value))))
      object[name] = static_cast<std::int64_t>(value);
    else
      object[name] = value;
  }
  return {object.dump()};
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
  config.options = read_options(fields);
  if (!fields.has("target_modules")) fields.fail("target_modules", "is missing");
  config.target_modules = read_modules(fields, "target_modules");
  config.base_model_name_or_path = fields.string("base_model_name_or_path").value_or("");
  config.task_type = fields.string("task_type").value_or(config.task_type);
  if (!fields.is_unset("modules_to_save")) {
    const std::vector<std::string> saved = fields.strings("modules_to_save");
    config.has_score_head = std::ranges::find(saved, kScoreHead) != saved.end();
  }
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
  const LoRAOptions& lora = options;
  const auto put_modules = [&](const char* name, const std::vector<std::string>& modules) {
    if (modules.size() == 1 && (modules.front() == kAllLinear || is_lora_pattern(modules.front())))
      put(name, modules.front());
    else
      put(name, modules);
  };
  put("alpha_pattern", object_of(lora.alpha_pattern));
  put("auto_mapping", nullptr);
  put("base_model_name_or_path", base_model_name_or_path);
  put("bias", std::ranges::find(kBiases, lora.bias, &BiasName::value)->name);
  if (!lora.exclude_modules.empty()) put_modules("exclude_modules", lora.exclude_modules);
  put("fan_in_fan_out", fan_in_fan_out);
  put("inference_mode", true);
  if (lora.init == LoRAInit::gaussian)
    put("init_lora_weights", "gaussian");
  else
    put("init_lora_weights", true);
  put("layer_replication", nullptr);
  if (lora.layers_pattern.empty())
    put("layers_pattern", nullptr);
  else if (lora.layers_pattern.size() == 1)
    put("layers_pattern", lora.layers_pattern.front());
  else
    put("layers_pattern", lora.layers_pattern);
  if (lora.layers_to_transform.empty())
    put("layers_to_transform", nullptr);
  else
    put("layers_to_transform", lora.layers_to_transform);
  put("loftq_config", detail::EmptyObject{});
  // PEFT declares lora_alpha an integer; a fraction is written as what it is.
  if (lora.alpha == std::floor(lora.alpha) && std::abs(lora.alpha) < 1e9)
    put("lora_alpha", static_cast<std::int64_t>(lora.alpha));
  else
    put("lora_alpha", lora.alpha);
  put("lora_dropout", lora.dropout);
  put("megatron_config", nullptr);
  put("megatron_core", "megatron.core");
  std::vector<std::string> saved = lora.modules_to_save;
  if (has_score_head) saved.emplace_back(kScoreHead);
  if (saved.empty())
    put("modules_to_save", nullptr);
  else
    put("modules_to_save", saved);
  put("peft_type", "LORA");
  put("r", std::int64_t{lora.rank});
  put("rank_pattern", object_of(lora.rank_pattern));
  put("revision", nullptr);
  put_modules("target_modules", target_modules);
  put("task_type", task_type);
  put("use_dora", lora.use_dora);
  put("use_rslora", lora.use_rslora);
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
  const int rank = options.rank;
  const double alpha = options.alpha, dropout = options.dropout;
  if (rank < 1 || rank > kMaxRankOfAdapter) fail("r", fmt::format("is {}, but must be positive", rank));
  if (!(alpha > 0) || !std::isfinite(alpha))
    fail("lora_alpha", fmt::format("is {}, but must be positive", alpha));
  if (!(dropout >= 0 && dropout < 1))
    fail("lora_dropout", fmt::format("is {}, but must lie in [0, 1)", dropout));
  try {
    options.validate();
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("adapter_config: {}", error.what()));
  }
  if (target_modules.empty()) fail("target_modules", "names no module");
  for (const auto& module : target_modules) {
    if (module.empty()) fail("target_modules", "holds an empty name");
    if (module == kAllLinear && target_modules.size() > 1) {
      fail("target_modules", "holds \"all-linear\" beside other names");
    }
    if (is_lora_pattern(module) && target_modules.size() > 1)
      fail("target_modules", "holds a regular expression beside other names");
  }
}

}  // namespace caldera
