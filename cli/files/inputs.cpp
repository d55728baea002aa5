#include "cli/files/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <map>

#include "cli/arguments/usage_error.h"
#include "engine/runtime/runtime.h"
#include "lm/adapters/lora.h"
#include "lm/base/atomic_file.h"
#include "lm/formats/model_files.h"
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
                                     Device device, DType dtype, Activations activations, CacheType cache) {
  std::unique_ptr<CausalLM> model = open_model(dir, device);
  if (const std::string_view why = why_no_cache(cache, model->config().head_dim); !why.empty())
    throw UsageError(fmt::format("--cache-type {}: {}, and {} has {}: take f16 or f32", name(cache), why,
                                 dir.string(), model->config().head_dim));
  load_weights(*model, dir, adapter, dtype, halves_for_inference(device));
  model->set_activations(activations);
  model->set_cache_type(cache);
  return model;
}

Activations parse_activations(const std::string& text) {
  return text == "exact" ? Activations::exact : Activations::rounded;
}

CacheType parse_cache_type(const std::string& text) { return cache_type_of(text).value_or(CacheType::model); }

DType parse_dtype(const std::string& text) {
  if (text == "f16") return DType::f16;
  if (text == "bf16") return DType::bf16;
  return DType::f32;
}

DType parse_dtype(const std::string& text, const std::filesystem::path& model, Device device) {
  if (text != "auto" || device.kind == DeviceKind::cpu) return parse_dtype(text);
  const ModelFiles files = ModelFiles::open(model);
  std::map<DType, std::int64_t> numbers;
  for (const std::string& name : files.names())
    if (const StoredWeight& weight = files.weight(name); weight.is_floating())
      numbers[weight.natural_dtype()] += weight.shape().numel();
  const auto most = std::ranges::max_element(numbers, {}, [](const auto& counted) { return counted.second; });
  if (most == numbers.end() || !is_half(most->first) || !supports(device, most->first)) return DType::f32;
  return most->first;
}

std::string read_text_input(const std::string& path) {
  if (path != "-") return read_text_file(path);
  std::string text;
  std::array<char, 1 << 16> piece;
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), stdin)) {
    text.append(piece.data(), got);
    if (text.size() > kMaxTextFileBytes)
      throw FileError(fmt::format("standard input has more than {} bytes", kMaxTextFileBytes));
  }
  if (std::ferror(stdin) != 0) throw FileError("standard input cannot be read");
  return text;
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
