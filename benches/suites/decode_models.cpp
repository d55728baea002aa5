#include "benches/suites/decode_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/tensor/quantized_format.h"
#include "lm/base/atomic_file.h"
#include "lm/base/temporary_name.h"
#include "lm/formats/convert/convert.h"
#include "lm/formats/model_files.h"
#include "lm/models/registry.h"

namespace caldera::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOwner = "caldera-bench";

/// The characters that byte-level tokenizers have for the bytes, in UTF-8: those that can be printed are
/// themselves.
std::string byte_character(int byte, int& others) {
  const bool printed = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const int code = printed ? byte : 256 + others++;
  if (code < 128) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

/// A tokenizer of so many tokens, without which other programs do not read a file: the bytes, a pair, and
/// words that nobody writes.
std::string tokenizer_json(std::int64_t vocabulary) {
  nlohmann::json vocab = nlohmann::json::object();
  int others = 0;
  for (int byte = 0; byte < 256; ++byte) vocab[byte_character(byte, others)] = byte;
  vocab["ab"] = 256;
  for (std::int64_t id = 257; id < vocabulary; ++id) vocab[fmt::format("<word {}>", id)] = id;
  return nlohmann::json{
      {"version", "1.0"},
      {"added_tokens", nlohmann::json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"},
        {"unk_token", nullptr},
        {"byte_fallback", false},
        {"vocab", vocab},
        {"merges", nlohmann::json::array({"a b"})}}}}
      .dump();
}

double stored_bytes(const StoredWeight& weight) {
  const auto elements = static_cast<double>(weight.shape().numel());
  const std::string type = weight.type();
  for (const QuantizedFacts& format : kQuantizedFacts)
    if (format.block > 0 && format.name == type) return elements / format.block * format.block_bytes;
  return elements * static_cast<double>(size_of(weight.natural_dtype()));
}

/// All weights of a model whose table of embeddings is its head.
double bytes_of_token(const fs::path& file) {
  const ModelFiles files = ModelFiles::open(file);
  double bytes = 0;
  for (const std::string& name : files.names()) bytes += stored_bytes(files.weight(name));
  return bytes;
}

}  // namespace

double layer_parameters(const ModelConfig& c) {
  const double q = static_cast<double>(c.num_attention_heads * c.head_dim);
  const double kv = static_cast<double>(c.num_key_value_heads * c.head_dim);
  const double d = static_cast<double>(c.hidden_size);
  return static_cast<double>(c.num_hidden_layers) *
         (2 * d * q + 2 * d * kv + 3 * d * static_cast<double>(c.intermediate_size));
}

ModelStore::~ModelStore() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

fs::path ModelStore::base(const Proportions& proportions) {
  if (folder_.empty()) {
    std::error_code error;
    const fs::path place = fs::temp_directory_path(error);
    if (error)
      throw FileError("the folder for temporary files, where models are made, is none: set TMPDIR to one");
    detail::remove_leftovers(place, kOwner);
    folder_ = place / detail::temporary_name(kOwner);
  }
  fs::path folder = folder_ / proportions.name;
  if (base_name_ == proportions.name) return folder;
  std::error_code ignored;
  if (!base_name_.empty()) fs::remove_all(folder_ / base_name_, ignored);
  base_name_.clear();
  Llama model(proportions.config, Device::cpu(), 1);
  model.freeze();
  model.set_dtype(proportions.made_in);
  model.save(folder);
  write_text_file(folder / "tokenizer.json", tokenizer_json(proportions.config.vocab_size));
  base_name_ = proportions.name;
  return folder;
}

std::shared_ptr<LoadedModel> ModelStore::load(const Proportions& proportions, const std::string& type,
                                              Device device) {
  const std::string name = fmt::format("{}-{}", proportions.name, type);
  if (loaded_name_ == name) return loaded_;
  if (loaded_) {
    std::error_code ignored;
    fs::remove(loaded_->file, ignored);
  }
  loaded_name_.clear();
  loaded_.reset();
  auto loaded = std::make_shared<LoadedModel>();
  const fs::path folder = base(proportions);
  loaded->file = folder_ / (name + ".gguf");
  convert_model(folder, loaded->file, {.to = ModelFormat::gguf, .type = type});
  loaded->weight_bytes = bytes_of_token(loaded->file);
  loaded->model = load_causal_lm(loaded->file, device, DType::f32, halves_for_inference(device));
  loaded->model->set_activations(Activations::rounded);
  loaded_ = std::move(loaded);
  loaded_name_ = name;
  return loaded_;
}

}  // namespace caldera::bench
