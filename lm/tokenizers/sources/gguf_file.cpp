#include "lm/tokenizers/sources/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/formats/gguf/gguf_file.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "lm/tokenizers/pipeline/read_tokenizer.h"
#include "lm/tokenizers/sources/read_gguf_vocabulary.h"

namespace caldera::detail {
namespace {

std::int64_t vocabulary_size(const GgufFile& file) {
  const auto found = std::ranges::find(file.tensors(), "token_embd.weight", &GgufTensor::name);
  return found == file.tensors().end() || found->shape.rank() != 2 ? 0 : found->shape[0];
}

std::optional<std::int32_t> token(const GgufFile& file, const char* key, std::int64_t size) {
  const auto id = file.integer(key);
  if (!id || *id < 0 || *id >= size) return std::nullopt;
  return static_cast<std::int32_t>(*id);
}

}  // namespace

std::unique_ptr<Tokenizer> load_gguf_tokenizer(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::open(path);
  const std::int64_t size = vocabulary_size(file);
  if (const auto whole = file.string("tokenizer.huggingface.json")) {
    const std::string where = path.string() + ": tokenizer.huggingface.json";
    TokenizerParts parts = read_tokenizer(parse_json(*whole, where), where);
    parts.bos_id = token(file, "tokenizer.ggml.bos_token_id", size);
    parts.eos_id = token(file, "tokenizer.ggml.eos_token_id", size);
    parts.model_vocab_size = size;
    return std::make_unique<Pipeline>(std::move(parts), where);
  }
  if (file.find("tokenizer.ggml.model") != nullptr)
    return make_tokenizer(read_gguf_vocabulary(path), path.string());
  if (size == 258) return std::make_unique<ByteTokenizer>(true);
  if (size == 256) return std::make_unique<ByteTokenizer>(false);
  throw FileError(
      fmt::format("{}: the file holds no tokenizer (there is no key tokenizer.ggml.model)", path.string()));
}

}  // namespace caldera::detail
