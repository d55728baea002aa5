#include "lm/formats/config/read_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lm/base/json_file.h"

namespace caldera {
namespace {

using detail::JsonFields;
using detail::printable;

constexpr std::array kTypes{RopeType::plain,  RopeType::linear, RopeType::dynamic,
                            RopeType::llama3, RopeType::yarn,   RopeType::longrope};

std::optional<RopeType> type_of(std::string_view text) {
  if (text == "su") return RopeType::longrope;  // as the first files of Phi-3 call it
  for (const RopeType type : kTypes)
    if (name(type) == text) return type;
  return std::nullopt;
}

// What any of the types may hold; a type passes over the fields of the others, as transformers does.
constexpr std::array<const char*, 19> kFields{"rope_type",
                                              "type",
                                              "rope_theta",
                                              "factor",
                                              "partial_rotary_factor",
                                              "original_max_position_embeddings",
                                              "low_freq_factor",
                                              "high_freq_factor",
                                              "beta_fast",
                                              "beta_slow",
                                              "mscale",
                                              "mscale_all_dim",
                                              "attention_factor",
                                              "truncate",
                                              "short_factor",
                                              "long_factor",
                                              "llama_4_scaling_beta",
                                              "max_position_embeddings",
                                              "finetuned"};

/// Reads the numbers of one object, and says which field of config.json holds it where they are wrong.
class Reader {
 public:
  Reader(const JsonFields& object, const JsonFields& config, const char* field)
      : object_(object), config_(config), field_(field) {}

  [[noreturn]] void fail(const std::string& problem) const { config_.fail(field_, problem); }

  RopeType type() const {
    std::optional<RopeType> type;
    for (const char* key : {"rope_type", "type"}) {
      const auto name = object_.string(key);
      if (!name) continue;
      const std::optional<RopeType> found = type_of(*name);
      if (!found)
        fail(fmt::format(
            "asks for '{}' scaling, which is not supported (supported: default, linear, dynamic, llama3, "
            "yarn, longrope)",
            printable(*name)));
      if (type && *type != found) fail("has a rope_type and a type that contradict each other");
      type = found;
    }
    if (!type && object_.has("factor")) fail("has a factor, but no rope_type");
    return type.value_or(RopeType::plain);
  }

  std::optional<double> positive(const char* key) const {
    const auto value = object_.number(key);
    if (value && !(*value > 0 && std::isfinite(*value)))
      fail(fmt::format("has a {} of {}, which must be positive", key, *value));
    return value;
  }
  double positive(const char* key, double otherwise) const { return positive(key).value_or(otherwise); }

  std::vector<double> factors(const char* key) const {
    std::vector<double> values;
    for (const auto& item : object_.require_array(key)) {
      if (!item.is_number() || !(item.get<double>() > 0))
        fail(fmt::format("has a {} that is no list of positive numbers", key));
      values.push_back(item.get<double>());
    }
    return values;
  }

 private:
  const JsonFields& object_;
  const JsonFields& config_;
  const char* field_;
};

void require(const Reader& read, const JsonFields& object, RopeType type,
             std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (!object.has(key)) read.fail(fmt::format("asks for '{}' scaling, but has no {}", name(type), key));
}

void check_type(const Reader& read, const JsonFields& object, const RopeScaling& rope) {
  const bool stretched = rope.factor.has_value() && *rope.factor < 1;
  switch (rope.type) {
    case RopeType::plain:
      return;
    case RopeType::linear:
    case RopeType::dynamic:
      require(read, object, rope.type, {"factor"});
      break;
    case RopeType::llama3:
      require(read, object, rope.type, {"factor", "original_max_position_embeddings"});
      if (rope.high_freq_factor <= rope.low_freq_factor)
        read.fail("has a high_freq_factor that is not above its low_freq_factor");
      break;
    case RopeType::yarn:
      if (!object.has("original_max_position_embeddings")) require(read, object, rope.type, {"factor"});
      break;
    case RopeType::longrope:
      return;
  }
  if (stretched) read.fail(fmt::format("has a factor of {}, which must not be below 1", *rope.factor));
}

}  // namespace

std::string detail::rope_object(const RopeScaling& rope) {
  nlohmann::ordered_json json{{"rope_type", name(rope.type)}};
  const auto put = [&](const char* key, const auto& value) {
    if (value) json[key] = *value;
  };
  put("factor", rope.factor);
  put("original_max_position_embeddings", rope.original_max_position_embeddings);
  if (rope.type == RopeType::llama3) {
    json["low_freq_factor"] = rope.low_freq_factor;
    json["high_freq_factor"] = rope.high_freq_factor;
  } else if (rope.type == RopeType::yarn) {
    json["beta_fast"] = rope.beta_fast;
    json["beta_slow"] = rope.beta_slow;
    json["truncate"] = rope.truncate;
    put("mscale", rope.mscale);
    put("mscale_all_dim", rope.mscale_all_dim);
    put("attention_factor", rope.attention_factor);
  }
  if (rope.partial_rotary_factor != 1) json["partial_rotary_factor"] = rope.partial_rotary_factor;
  if (rope.llama_4_scaling_beta != 0) json["llama_4_scaling_beta"] = rope.llama_4_scaling_beta;
  return json.dump();
}

void detail::read_rope_object(const JsonFields& object, const JsonFields& config, const char* field,
                              RopeParameters& rope) {
  const Reader read(object, config, field);
  for (const std::string& key : object.names())
    if (object.has(key.c_str()) && std::ranges::find(kFields, key) == kFields.end())
      read.fail(fmt::format("has '{}', which is not known", printable(key)));
  RopeScaling& s = rope.scaling;
  s.type = read.type();
  rope.theta = read.positive("rope_theta", rope.theta);
  s.factor = read.positive("factor");
  s.partial_rotary_factor = read.positive("partial_rotary_factor", s.partial_rotary_factor);
  if (const auto original = object.number("original_max_position_embeddings")) {  // some files have 4096.0
    if (!(*original >= 1 && *original <= 1e9 && *original == std::floor(*original)))
      read.fail("has an original_max_position_embeddings that is no positive integer");
    s.original_max_position_embeddings = static_cast<std::int64_t>(*original);
  }
  s.low_freq_factor = read.positive("low_freq_factor", s.low_freq_factor);
  s.high_freq_factor = read.positive("high_freq_factor", s.high_freq_factor);
  s.beta_fast = read.positive("beta_fast", s.beta_fast);
  s.beta_slow = read.positive("beta_slow", s.beta_slow);
  s.mscale = object.number("mscale");
  s.mscale_all_dim = object.number("mscale_all_dim");
  s.attention_factor = read.positive("attention_factor");
  s.truncate = object.boolean("truncate").value_or(s.truncate);
  s.llama_4_scaling_beta = object.number("llama_4_scaling_beta").value_or(0);
  if (s.type == RopeType::longrope) {
    require(read, object, s.type, {"short_factor", "long_factor"});
    s.short_factor = read.factors("short_factor");
    s.long_factor = read.factors("long_factor");
  }
  check_type(read, object, s);
}

}  // namespace caldera
