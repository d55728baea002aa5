#include "lm/formats/gguf/gguf_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>

#include "engine/base/error.h"
#include "lm/base/json_file.h"

namespace caldera::detail {
namespace {

using Json = nlohmann::ordered_json;

/// The factors by which frequencies are divided; empty where the file has no such tensor.
std::vector<float> factors(const GgufFile& file, const char* name) {
  const auto found = std::ranges::find(file.tensors(), name, &GgufTensor::name);
  if (found == file.tensors().end()) return {};
  if (found->type->id != ggml::kF32 || found->shape.rank() != 1)
    throw FileError(fmt::format("{}: tensor {} must be a list of F32", file.path().string(), name));
  std::vector<float> values(static_cast<std::size_t>(found->shape[0]));
  std::memcpy(values.data(), found->bytes.data(), found->bytes.size());
  return values;
}

/// Llama 3.x's parameters, if they give exactly these factors.
std::optional<Json> as_llama3(const std::vector<float>& file, double theta) {
  constexpr double kLow = 1;
  constexpr double kHigh = 4;
  constexpr double kOriginal = 8192;
  const double factor = *std::ranges::max_element(file);
  const std::vector<double> rule = llama3_factors(file.size(), theta, factor, kLow, kHigh, kOriginal);
  for (std::size_t i = 0; i < file.size(); ++i)
    if (!(std::abs(rule[i] - file[i]) <= 1e-4 * rule[i])) return std::nullopt;
  return Json{{"rope_type", "llama3"},
              {"factor", factor},
              {"low_freq_factor", kLow},
              {"high_freq_factor", kHigh},
              {"original_max_position_embeddings", static_cast<std::int64_t>(kOriginal)}};
}

class RopeReader {
 public:
  RopeReader(Json& config, const GgufFile& file, const GgufFamily& family)
      : config_(config), file_(file), family_(family) {}

  void read() {
    const double theta = number("rope.freq_base").value_or(10000);
    if (file_.find(key("rope.freq_base")) != nullptr || family_.decoder_names) config_["rope_theta"] = theta;
    if (const auto local = number("rope.freq_base_swa")) config_["rope_local_base_freq"] = *local;
    partial_rotation();
    scaling(theta);
  }

 private:
  std::string key(const char* name) const { return fmt::format("{}.{}", family_.architecture, name); }
  std::optional<double> number(const char* name) const { return file_.number(key(name)); }

  void partial_rotation() {
    const auto rotated = file_.integer(key("rope.dimension_count"));
    const std::int64_t heads = config_.value("num_attention_heads", std::int64_t{0});
    if (!rotated || heads < 1) return;
    const std::int64_t head = config_.contains("head_dim")
                                  ? config_["head_dim"].get<std::int64_t>()
                                  : config_["hidden_size"].get<std::int64_t>() / heads;
    if (head > 0 && *rotated != head)
      config_["partial_rotary_factor"] = static_cast<double>(*rotated) / static_cast<double>(head);
  }

  void scaling(double theta) {
    const std::string type = file_.string(key("rope.scaling.type")).value_or("linear");
    // The first files have a linear factor alone, under this name.
    const double factor = number("rope.scaling.factor").value_or(number("rope.scale_linear").value_or(1));
    const bool stretched = factor != 1 && factor != 0;
    const auto long_factors = factors(file_, "rope_factors_long.weight");
    const auto short_factors = factors(file_, "rope_factors_short.weight");
    const auto all_factors = factors(file_, "rope_freqs.weight");
    const bool by_pairs = !long_factors.empty() || !short_factors.empty() || !all_factors.empty();
    if (by_pairs && stretched && (type == "linear" || type == "yarn"))
      file_.fail(key("rope.scaling.type"),
                 "asks for a scaling beside factors of frequencies, which is not supported");
    if (!long_factors.empty() || !short_factors.empty()) return longrope(short_factors, long_factors);
    if (!all_factors.empty()) {
      const auto llama3 = as_llama3(all_factors, theta);
      config_["rope_scaling"] =
          llama3 ? *llama3
                 : Json{{"rope_type", "longrope"},
                        {"short_factor", all_factors},
                        {"long_factor", all_factors},
                        {"attention_factor", 1.0},
                        {"original_max_position_embeddings", config_["max_position_embeddings"]}};
      return;
    }
    if (type == "none" || (type == "linear" && !stretched)) return;
    if (type == "linear")
      linear(factor);
    else if (type == "yarn")
      yarn(factor);
    else
      file_.fail(key("rope.scaling.type"), fmt::format("is '{}', which is not supported", printable(type)));
  }

  void longrope(const std::vector<float>& short_factors, const std::vector<float>& long_factors) {
    Json rope{{"rope_type", "longrope"}, {"short_factor", short_factors}, {"long_factor", long_factors}};
    if (const auto factor = number("rope.scaling.attn_factor")) rope["attention_factor"] = *factor;
    // As llama.cpp has it; Phi-3's class has another length by default.
    const std::int64_t original = file_.integer(key("rope.scaling.original_context_length"))
                                      .value_or(config_["max_position_embeddings"]);
    rope["original_max_position_embeddings"] = original;
    config_["original_max_position_embeddings"] = original;
    config_["rope_scaling"] = std::move(rope);
  }

  void linear(double factor) {
    Json rope{{"rope_type", "linear"}, {"factor", factor}};
    if (const auto original = file_.integer(key("rope.scaling.original_context_length")))
      rope["original_max_position_embeddings"] = *original;
    config_["rope_scaling"] = std::move(rope);
  }

  void yarn(double factor) {
    if (const auto attention = number("rope.scaling.attn_factor"); attention && *attention != 1)
      file_.fail(key("rope.scaling.attn_factor"), "is not 1, which is not supported with yarn");
    Json rope{{"rope_type", "yarn"}, {"factor", factor}};
    if (const auto original = file_.integer(key("rope.scaling.original_context_length")))
      rope["original_max_position_embeddings"] = *original;
    rope["beta_fast"] = number("rope.scaling.yarn_beta_fast").value_or(32);
    rope["beta_slow"] = number("rope.scaling.yarn_beta_slow").value_or(1);
    if (family_.architecture == "gpt-oss") rope["truncate"] = false;
    config_["rope_scaling"] = std::move(rope);
  }

  Json& config_;
  const GgufFile& file_;
  const GgufFamily& family_;
};

}  // namespace

std::vector<double> llama3_factors(std::size_t count, double theta, double factor, double low, double high,
                                   double original) {
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double wavelength =
        2 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / static_cast<double>(count));
    if (wavelength < original / high)
      out[i] = 1;
    else if (wavelength > original / low)
      out[i] = factor;
    else
      out[i] = 1 / ((1 - (original / wavelength - low) / (high - low)) / factor +
                    (original / wavelength - low) / (high - low));
  }
  return out;
}

void add_rope(Json& config, const GgufFile& file, const GgufFamily& family) {
  RopeReader(config, file, family).read();
}

}  // namespace caldera::detail
