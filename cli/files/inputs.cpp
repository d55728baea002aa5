#include "cli/files/inputs.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "cli/arguments/usage_error.h"
#include "lm/adapters/lora.h"
#include "lm/models/registry.h"

namespace caldera::cli {

std::unique_ptr<CausalLM> open_model(const std::filesystem::path& dir, Device device) {
  return make_causal_lm(dir, device);
}

void load_weights(CausalLM& model, const std::filesystem::path& dir, const std::filesystem::path& adapter,
                  DType dtype, HalfWeights halves) {
  model.load_weights(dir, dtype, halves);
  if (!adapter.empty()) load_adapter(model, adapter);
  model.set_training(false);
}

std::unique_ptr<CausalLM> load_model(const std::filesystem::path& dir, const std::filesystem::path& adapter,
                                     Device device, DType dtype, Activations activations) {
  std::unique_ptr<CausalLM> model = open_model(dir, device);
  load_weights(*model, dir, adapter, dtype, halves_for_inference(device));
  model->set_activations(activations);
  return model;
}

Activations parse_activations(const std::string& text) {
  return text == "exact" ? Activations::exact : Activations::rounded;
}

DType parse_dtype(const std::string& text) {
  if (text == "f16") return DType::f16;
  if (text == "bf16") return DType::bf16;
  return DType::f32;
}

std::vector<std::int32_t> parse_ids(const std::string& text, const char* flag) {
  std::vector<std::int32_t> ids;
  const char* at = text.data();
  const char* end = at + text.size();
  const auto is_separator = [](char c) { return c == ' ' || c == ',' || c == '\t' || c == '\n'; };
  while (true) {
    while (at != end && is_separator(*at)) ++at;
    if (at == end) return ids;
    std::int32_t id = 0;
    const auto [stopped, error] = std::from_chars(at, end, id);
    if (error == std::errc::result_out_of_range || (error == std::errc() && id < 0)) {
      throw ValueError(
          fmt::format("{}: a token id must lie in 0 … {}", flag, std::numeric_limits<std::int32_t>::max()));
    }
    if (error != std::errc() || (stopped != end && !is_separator(*stopped)))
      throw UsageError(fmt::format("{}: '{}' is not a list of token ids like \"1 2 3\"", flag, text));
    ids.push_back(id);
    at = stopped;
  }
}

}  // namespace caldera::cli
