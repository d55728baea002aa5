#include "lm/tokenizers/sources/read_gguf_vocabulary.h"

#include <limits>

#include "lm/formats/gguf/gguf_file.h"

namespace caldera {
namespace {

using detail::GgufFile;
using detail::GgufValue;

const GgufValue* list(const GgufFile& file, const char* key) {
  const GgufValue* value = file.find(key);
  if (value != nullptr && !value->is_list()) file.fail(key, "must be a list");
  return value;
}

std::vector<std::string> strings(const GgufFile& file, const char* key) {
  const GgufValue* value = list(file, key);
  if (value == nullptr) return {};
  const auto texts = value->strings();
  if (!texts) file.fail(key, "must be a list of strings");
  return {texts->begin(), texts->end()};
}

/// A list of integers that fit T.
template <class T>
std::vector<T> integers(const GgufFile& file, const char* key) {
  const GgufValue* value = list(file, key);
  if (value == nullptr) return {};
  const auto numbers = value->integers();
  if (!numbers) file.fail(key, "must be a list of integers");
  std::vector<T> out;
  out.reserve(numbers->size());
  for (const std::int64_t n : *numbers) {
    if (n < std::numeric_limits<T>::min() || n > std::numeric_limits<T>::max())
      file.fail(key, "holds an integer out of range");
    out.push_back(static_cast<T>(n));
  }
  return out;
}

/// Bytes, which files have as i8 or as u8.
std::vector<std::uint8_t> bytes(const GgufFile& file, const char* key) {
  const GgufValue* value = list(file, key);
  if (value == nullptr) return {};
  if (value->element_type() == detail::GgufType::u8) return integers<std::uint8_t>(file, key);
  const std::vector<std::int8_t> chars = integers<std::int8_t>(file, key);
  return {chars.begin(), chars.end()};
}

std::vector<float> floats(const GgufFile& file, const char* key) {
  const GgufValue* value = list(file, key);
  if (value == nullptr) return {};
  const auto numbers = value->floats();
  if (!numbers) file.fail(key, "must be a list of f32");
  return *numbers;
}

}  // namespace

GgufVocabulary read_gguf_vocabulary(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::open(path);
  const auto model = file.string("tokenizer.ggml.model");
  if (!model) file.fail("tokenizer.ggml.model", "is missing: the file holds no tokenizer");
  GgufVocabulary v;
  v.model = *model;
  v.pre = file.string("tokenizer.ggml.pre").value_or("");
  v.tokens = strings(file, "tokenizer.ggml.tokens");
  v.scores = floats(file, "tokenizer.ggml.scores");
  v.token_types = integers<std::int32_t>(file, "tokenizer.ggml.token_type");
  v.merges = strings(file, "tokenizer.ggml.merges");
  v.bos_id = file.integer("tokenizer.ggml.bos_token_id");
  v.eos_id = file.integer("tokenizer.ggml.eos_token_id");
  v.unknown_id = file.integer("tokenizer.ggml.unknown_token_id");
  v.pad_id = file.integer("tokenizer.ggml.padding_token_id");
  v.separator_id = file.integer("tokenizer.ggml.seperator_token_id");
  v.cls_id = file.integer("tokenizer.ggml.cls_token_id");
  v.mask_id = file.integer("tokenizer.ggml.mask_token_id");
  v.add_bos = file.boolean("tokenizer.ggml.add_bos_token");
  v.add_eos = file.boolean("tokenizer.ggml.add_eos_token");
  v.add_space_prefix = file.boolean("tokenizer.ggml.add_space_prefix");
  v.remove_extra_whitespaces = file.boolean("tokenizer.ggml.remove_extra_whitespaces");
  v.nfc = file.boolean("tokenizer.ggml.normalizer.nfc");
  v.precompiled_charsmap = bytes(file, "tokenizer.ggml.precompiled_charsmap");
  return v;
}

}  // namespace caldera
