#include "lm/embed/embedding_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "lm/formats/safetensors/safetensors.h"
#include "lm/models/registry.h"
#include "lm/nn/attention/packed_texts.h"
#include "lm/tokenizers/sources/load_tokenizer.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/linalg/matmul.h"

namespace caldera {
namespace {

/// Cuts a text to `most` tokens. Behind what is cut stay the special tokens that it ends with: those that an
/// empty text has too, behind its first one.
void cut(std::vector<std::int32_t>& ids, std::size_t most, const std::vector<std::int32_t>& of_empty_text) {
  if (ids.size() <= most) return;
  std::size_t kept = 0;
  while (kept < of_empty_text.size() && kept < most &&
         of_empty_text[of_empty_text.size() - 1 - kept] == ids[ids.size() - 1 - kept])
    ++kept;
  // A token at the front that is not also at the end belongs to the front.
  if (kept == of_empty_text.size() && kept > 1) --kept;
  ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(most - kept),
            ids.end() - static_cast<std::ptrdiff_t>(kept));
}

}  // namespace

EmbeddingModel::EmbeddingModel(std::unique_ptr<CausalLM> model, std::unique_ptr<Tokenizer> tokenizer,
                               SentenceModules modules)
    : model_(std::move(model)), tokenizer_(std::move(tokenizer)), modules_(std::move(modules)) {
  read_dense();
}

bool is_embedding_model(const std::filesystem::path& path) {
  return SentenceModules::from_folder(path).pooling || is_encoder(path);
}

EmbeddingModel EmbeddingModel::from_pretrained(const std::filesystem::path& dir, Device device, DType dtype) {
  SentenceModules modules = SentenceModules::from_folder(dir);
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(dir);
  return {load_text_model(dir, device, dtype), std::move(tokenizer), std::move(modules)};
}

void EmbeddingModel::read_dense() {
  std::int64_t width = model_->config().hidden_size;
  for (const DenseModule& module : modules_.dense) {
    const std::filesystem::path path = module.folder / "model.safetensors";
    const SafetensorsFile file = SafetensorsFile::open(path);
    const auto read = [&](const char* name, const Shape& shape) {
      if (!file.contains(name) || file.info(name).shape != shape)
        throw FileError(fmt::format("{}: tensor '{}' {} is missing, or has another shape", path.string(),
                                    name, shape.to_string()));
      return LazyTensor::from_vector(file.read_f32(name), shape, model_->device());
    };
    if (module.in != width)
      throw FileError(
          fmt::format("{}: the module takes {} features, but gets {}", path.string(), module.in, width));
    dense_.push_back({read("linear.weight", Shape{module.out, module.in}),
                      module.bias ? read("linear.bias", Shape{module.out}) : LazyTensor{}, module.tanh});
    width = module.out;
  }
}

std::int64_t EmbeddingModel::dimension() const {
  return modules_.dense.empty() ? model_->config().hidden_size : modules_.dense.back().out;
}

std::int64_t EmbeddingModel::max_length() const {
  const std::int64_t most = model_->config().max_positions();
  return modules_.max_length ? std::min(most, *modules_.max_length) : most;
}

std::vector<std::int32_t> EmbeddingModel::tokenize(const std::string& text,
                                                   const EncodeOptions& options) const {
  const std::string prompt_name = options.prompt_name.value_or(modules_.default_prompt);
  if (prompt_name.empty()) return tokenizer_->encode(text);
  const auto found = modules_.prompts.find(prompt_name);
  if (found == modules_.prompts.end())
    throw ValueError(fmt::format("encode: the model has no prompt '{}'", prompt_name));
  if (!found->second.empty() && !modules_.include_prompt)
    throw ValueError("encode: prompts that do not count in the pooling (include_prompt) are not supported");
  return tokenizer_->encode(found->second + text);
}

LazyTensor EmbeddingModel::embed(std::span<const std::vector<std::int32_t>> texts,
                                 const EncodeOptions& options) {
  std::size_t length = 1;
  for (const auto& text : texts) length = std::max(length, text.size());
  std::vector<std::int32_t> ids;
  std::vector<std::vector<std::int64_t>> lengths;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) throw ValueError(fmt::format("embed: text {} has no tokens", i));
    ids.insert(ids.end(), texts[i].begin(), texts[i].end());
    ids.insert(ids.end(), length - texts[i].size(), 0);
    lengths.push_back({static_cast<std::int64_t>(texts[i].size())});
  }
  PackedTexts padded(lengths, static_cast<std::int64_t>(length), model_->device());
  const LazyTensor hidden =
      model_->hidden_states(model_->make_ids(ids, static_cast<std::int64_t>(texts.size())), &padded);
  const Pooling pooling = options.pooling.value_or(modules_.pooling.value_or(Pooling::mean));
  LazyTensor x = pool(hidden, padded.present(), pooling);
  for (const Dense& dense : dense_) {
    x = matmul(x, transpose(dense.weight));
    if (dense.bias.defined()) x = x + dense.bias;
    if (dense.tanh) x = tanh(x);
  }
  return options.normalize.value_or(modules_.normalized) ? normalize(x) : x;
}

EncodedTexts EmbeddingModel::encode(std::span<const std::string> texts, const EncodeOptions& options) {
  if (options.batch_size < 1) throw ValueError("encode: the batch size must be positive");
  const std::vector<std::int32_t> of_empty_text = tokenizer_->encode("");
  EncodedTexts encoded;
  std::vector<std::vector<std::int32_t>> ids;
  ids.reserve(texts.size());
  for (const std::string& text : texts) {
    ids.push_back(tokenize(text, options));
    const std::size_t size = ids.back().size();
    cut(ids.back(), static_cast<std::size_t>(max_length()), of_empty_text);
    encoded.left_out.push_back(static_cast<std::int64_t>(size - ids.back().size()));
  }

  EvaluationMode evaluation(*model_);
  const auto batch = static_cast<std::size_t>(options.batch_size);
  const auto width = static_cast<std::size_t>(dimension());
  for (std::size_t begin = 0; begin < ids.size(); begin += batch) {
    const auto part = std::span(ids).subspan(begin, std::min(batch, ids.size() - begin));
    const std::vector<float> values = embed(part, options).to_vector<float>();
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(i * width);
      encoded.embeddings.emplace_back(first, first + static_cast<std::ptrdiff_t>(width));
      encoded.tokens.push_back(static_cast<std::int64_t>(part[i].size()));
    }
  }
  return encoded;
}

}  // namespace caldera
