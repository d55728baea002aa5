#include "lm/formats/config/read_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/base/json_text.h"
#include "lm/formats/config/read_rope.h"

namespace caldera {
namespace {

using detail::FamilyFields;
using detail::JsonFields;
using detail::JsonKind;
using detail::printable;

/// A field of config.json, or of one of its objects, that says which part of a head's width is rotated.
void check_partial(const JsonFields& fields, const char* field, double factor, const FamilyFields& family) {
  if (factor == 1 || (family.partial_rotary && factor < 1)) return;
  fields.fail(field, family.partial_rotary
                         ? fmt::format("has a partial_rotary_factor of {}, which must not be above 1", factor)
                         : "asks for a partial_rotary_factor, which is not supported (supported: 1)");
}

JsonFields require_object(const JsonFields& fields, const char* field, const std::string& where) {
  if (fields.kind(field) != JsonKind::object) fields.fail(field, "must be an object or null");
  return fields.object(field, where);
}

/// {"full_attention": {"rope_type": ...}, "sliding_attention": {...}}: of each type of layer.
void read_nested_rope(const JsonFields& object, const JsonFields& fields, const char* field,
                      RopeParameters& rope, ModelConfig& config) {
  for (const std::string& type : object.names()) {
    if (object.kind(type.c_str()) == JsonKind::missing) continue;
    if (type != "full_attention" && type != "sliding_attention")
      fields.fail(field, fmt::format("holds '{}', which is no type of layer (known: full_attention, "
                                     "sliding_attention)",
                                     printable(type)));
    const std::string where = fmt::format("{}: {}: {}", fields.where(), field, type);
    const JsonFields inner = require_object(object, type.c_str(), where);
    if (type == "full_attention") {
      read_rope_object(inner, fields, field, rope);
    } else {
      if (!config.local_rope) config.local_rope = RopeParameters{rope.theta};
      read_rope_object(inner, fields, field, *config.local_rope);
    }
  }
}

/// Files that have both names have them for one thing.
void refuse_two_ropes(const JsonFields& fields) {
  const nlohmann::json* older = fields.find("rope_scaling");
  const nlohmann::json* newer = fields.find("rope_parameters");
  if (older != nullptr && newer != nullptr && !older->empty() && !newer->empty() && *older != *newer)
    fields.fail("rope_parameters", "differs from rope_scaling; remove one of them");
}

/// Frequencies of the rotary embedding: `rope_scaling` (older files) or `rope_parameters` (newer ones).
void read_rope(const JsonFields& fields, ModelConfig& config, const FamilyFields& family) {
  RopeParameters rope{fields.number("rope_theta").value_or(config.rope_theta), config.rope_scaling};
  if (const auto partial = fields.number("partial_rotary_factor")) {
    check_partial(fields, "partial_rotary_factor", *partial, family);
    rope.scaling.partial_rotary_factor = *partial;
  }
  refuse_two_ropes(fields);
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    if (fields.kind(name) == JsonKind::missing) continue;
    const std::string inner_where = fmt::format("{}: {}", fields.where(), name);
    const JsonFields inner = require_object(fields, name, inner_where);
    if (family.local_rope && inner.first_object())
      read_nested_rope(inner, fields, name, rope, config);
    else
      read_rope_object(inner, fields, name, rope);
    check_partial(fields, name, rope.scaling.partial_rotary_factor, family);
  }
  // Phi-3 has it beside rope_scaling, where it goes before the one within.
  if (const auto original = fields.integer("original_max_position_embeddings")) {
    if (*original < 1) fields.fail("original_max_position_embeddings", "must be positive");
    rope.scaling.original_max_position_embeddings = original;
  }
  if (rope.scaling.llama_4_scaling_beta != 0 && !family.scales_queries)
    fields.fail(fields.has("rope_parameters") ? "rope_parameters" : "rope_scaling",
                "has a llama_4_scaling_beta, which the family does not compute");
  config.rope_theta = rope.theta;
  config.rope_scaling = rope.scaling;
}

/// What the family has by default of windows and frequencies, where the file does not name it.
void keep_defaults(const JsonFields& fields, ModelConfig& config, const FamilyFields& family) {
  ConfigFields& kept = config.kept.fields;
  if (family.sliding && config.sliding_window && !fields.names_field("sliding_window"))
    kept.emplace_back("sliding_window", std::to_string(*config.sliding_window));
  if (!family.rotary) return;
  const RopeScaling& rope = config.rope_scaling;
  const bool given = fields.has("rope_scaling") || fields.has("rope_parameters");
  if (!given && rope.type != RopeType::plain) {
    kept.emplace_back("rope_scaling", detail::rope_object(rope));
  } else if (constexpr auto kOriginal = "original_max_position_embeddings";
             rope.original_max_position_embeddings && !fields.has(kOriginal)) {
    const auto has_it = [&](const char* field) {
      return fields.has(field) && fields.find(field)->contains(kOriginal);
    };
    if (!has_it("rope_scaling") && !has_it("rope_parameters"))
      kept.emplace_back(kOriginal, std::to_string(*rope.original_max_position_embeddings));
  }
}

void refuse_unsupported_model(const JsonFields& fields) {
  if (fields.has("quantization_config")) {
    fields.fail("quantization_config", "is set: quantised weights are not supported");
  }
}

}  // namespace

std::size_t detail::match_family(const JsonFields& fields, std::span<const FamilyName> known) {
  const auto refuse = [&](const std::string& what) {
    std::vector<std::string> names;
    names.reserve(known.size());
    for (const FamilyName& k : known)
      names.push_back(fmt::format("{} (model_type \"{}\")", k.architecture, k.model_type));
    throw FileError(
        fmt::format("{}: {} is not supported (supported: {})", fields.where(), what, fmt::join(names, ", ")));
  };
  const auto type = fields.string("model_type");
  const bool listed = fields.has("architectures");
  if (!listed && !type) fields.fail("architectures", "is missing, and so is 'model_type'");
  std::string architecture;
  if (listed) {
    if (fields.kind("architectures") != JsonKind::list || fields.is_unset("architectures"))
      fields.fail("architectures", "must be a list of strings");
    architecture = fields.strings("architectures").front();
    if (std::ranges::find(known, architecture, &FamilyName::architecture) == known.end())
      refuse(fmt::format("architecture '{}'", printable(architecture)));
  }
  if (type && std::ranges::find(known, *type, &FamilyName::model_type) == known.end())
    refuse(fmt::format("model_type '{}'", printable(*type)));
  const auto found = std::ranges::find_if(known, [&](const FamilyName& k) {
    return (!listed || k.architecture == architecture) && (!type || k.model_type == *type);
  });
  if (found == known.end())
    refuse(fmt::format("architecture '{}' with model_type '{}'", printable(architecture), printable(*type)));
  return static_cast<std::size_t>(found - known.begin());
}

void detail::read_config(const JsonFields& fields, ModelConfig& config, const FamilyFields& family) {
  refuse_unsupported_model(fields);
  check_fields(fields, family);
  const auto required = [&](const char* name, std::int64_t otherwise = 0) {
    const char* field = family.name_of(name, fields);
    return otherwise == 0 ? fields.require_integer(field) : fields.integer(field).value_or(otherwise);
  };
  config.hidden_size = required("hidden_size", config.hidden_size);
  config.intermediate_size = required("intermediate_size", config.intermediate_size);
  config.num_hidden_layers = required("num_hidden_layers", config.num_hidden_layers);
  config.num_attention_heads = required("num_attention_heads", config.num_attention_heads);
  // Null is not the family's default, which stands for a field that is not there at all.
  if (config.num_key_value_heads == 0 || fields.names_field("num_key_value_heads"))
    config.num_key_value_heads = config.num_attention_heads;
  config.num_key_value_heads = fields.integer("num_key_value_heads").value_or(config.num_key_value_heads);
  config.vocab_size = required("vocab_size", config.vocab_size);
  config.max_position_embeddings = required("max_position_embeddings", config.max_position_embeddings);
  if (const auto head_dim = fields.integer("head_dim")) {
    config.head_dim = *head_dim;
  } else if ((config.head_dim == 0 || fields.names_field("head_dim")) && config.num_attention_heads > 0) {
    if (config.hidden_size % config.num_attention_heads != 0) {
      fields.fail("hidden_size",
                  fmt::format("({}) is no multiple of num_attention_heads ({}), and there is no head_dim",
                              config.hidden_size, config.num_attention_heads));
    }
    config.head_dim = config.hidden_size / config.num_attention_heads;
  }
  config.rms_norm_eps = fields.number("rms_norm_eps").value_or(config.rms_norm_eps);
  if (family.rotary) read_rope(fields, config, family);
  if (family.sliding && fields.names_field("sliding_window"))
    config.sliding_window = fields.integer("sliding_window");
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings").value_or(config.tie_word_embeddings);
  config.hidden_act = fields.string(family.activation_field).value_or(config.hidden_act);
  config.initializer_range = fields.number("initializer_range").value_or(config.initializer_range);
  config.bos_token_id = fields.integer("bos_token_id");
  config.eos_token_ids = fields.integers("eos_token_id");
  for (const char* name : {"torch_dtype", "dtype"}) {
    config.torch_dtype = fields.string(name).value_or(config.torch_dtype);
  }

  config.kept.fields = fields_to_keep(fields, family);
  keep_defaults(fields, config, family);

  try {
    config.validate(family.activations);
  } catch (const ValueError& e) {
    // "config: field ..." -> "path: field ...": what a file holds is the file's fault.
    const std::string_view message = e.what();
    throw FileError(fmt::format("{}{}", fields.where(), message.substr(message.find(':'))));
  }
}

void detail::set_layers(const JsonFields& fields, ModelConfig& config,
                        const std::function<bool(std::int64_t layer)>& slides) {
  const std::vector<std::string> types = fields.strings("layer_types");
  if (fields.has("layer_types") && types.size() != static_cast<std::size_t>(config.num_hidden_layers))
    fields.fail("layer_types", fmt::format("has {} entries, but num_hidden_layers is {}", types.size(),
                                           config.num_hidden_layers));
  config.layers.resize(static_cast<std::size_t>(config.num_hidden_layers));
  bool any = false;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (!types.empty() && types[i] != "full_attention" && types[i] != "sliding_attention")
      fields.fail("layer_types",
                  fmt::format("asks for '{}', which is not supported (supported: full_attention, "
                              "sliding_attention)",
                              printable(types[i])));
    config.layers[i].sliding =
        types.empty() ? slides(static_cast<std::int64_t>(i)) : types[i] == "sliding_attention";
    any = any || config.layers[i].sliding;
  }
  if (any && !config.sliding_window)
    fields.fail(types.empty() ? "sliding_window" : "layer_types",
                "asks for 'sliding_attention', but there is no sliding_window");
  if (config.sliding_window && *config.sliding_window < 1)
    fields.fail("sliding_window", fmt::format("is {}, but must be positive", *config.sliding_window));
}

void detail::set_equal_layers(const JsonFields& fields, ModelConfig& config) {
  const bool slide = config.sliding_window.has_value();
  set_layers(fields, config, [&](std::int64_t /*layer*/) { return slide; });
  for (const LayerConfig& layer : config.layers)
    if (layer.sliding != slide)
      fields.fail("layer_types",
                  fmt::format("lists layers that {}, but in this family all of them {}: remove it",
                              slide ? "do not slide" : "slide", slide ? "do" : "look at all positions"));
}

std::string detail::config_json(const ModelConfig& config, const ConfigFields& own) {
  JsonMembers json;
  const auto put = [&](const char* name, JsonValue value) { json.emplace_back(name, std::move(value)); };
  put("architectures", std::vector{config.architecture});
  put("model_type", config.model_type);
  put("hidden_size", config.hidden_size);
  put("intermediate_size", config.intermediate_size);
  put("num_hidden_layers", config.num_hidden_layers);
  put("num_attention_heads", config.num_attention_heads);
  put("num_key_value_heads", config.num_key_value_heads);
  put("head_dim", config.head_dim);
  put("vocab_size", config.vocab_size);
  put("max_position_embeddings", config.max_position_embeddings);
  put("rms_norm_eps", config.rms_norm_eps);
  put("rope_theta", config.rope_theta);
  put("tie_word_embeddings", config.tie_word_embeddings);
  for (const ConfigFields* more : {&config.kept.fields, &own})
    for (const auto& [name, text] : *more) json.emplace_back(name, RawJson{text});
  put("hidden_act", config.hidden_act);
  put("initializer_range", config.initializer_range);
  if (config.bos_token_id)
    put("bos_token_id", *config.bos_token_id);
  else
    put("bos_token_id", nullptr);
  if (config.eos_token_ids.empty())
    put("eos_token_id", nullptr);
  else if (config.eos_token_ids.size() == 1)
    put("eos_token_id", config.eos_token_ids.front());
  else
    put("eos_token_id", config.eos_token_ids);
  put("torch_dtype", config.torch_dtype);
  return to_json(json, 2) + "\n";
}

}  // namespace caldera
