#include "training/text/load_tokenizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/tensor/error.h"
#include "training/io/atomic_file.h"
#include "training/io/json_file.h"
#include "training/text/byte_tokenizer.h"
#include "training/text/tokenizer_json.h"

namespace caldera {
namespace {

using detail::JsonFields;

/// An optional file of the model folder; an empty object where it does not exist.
nlohmann::json read_optional(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return nlohmann::json::object();
  return detail::read_json_object(path);
}

/// `field` of tokenizer_config.json: a token's text, or an object with its `content`.
std::optional<std::int32_t> token_from_text(const nlohmann::json& json, const std::string& where,
                                            const char* field, const TokenizerJson& tokenizer) {
  const JsonFields fields(json, where);
  const auto* value = fields.find(field);
  if (value == nullptr) return std::nullopt;
  const auto text = value->is_object() ? JsonFields(*value, where).string("content") : fields.string(field);
  return text ? tokenizer.id_of(*text) : std::nullopt;
}

/// `field` of config.json: an id, or a list of ids of which the first counts.
std::optional<std::int32_t> token_from_id(const nlohmann::json& json, const char* field,
                                          std::int64_t vocab_size) {
  const auto it = json.find(field);
  if (it == json.end()) return std::nullopt;
  const auto& value = it->is_array() && !it->empty() ? it->front() : *it;
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= static_cast<std::uint64_t>(vocab_size)) {
    return std::nullopt;
  }
  return value.get<std::int32_t>();
}

std::unique_ptr<Tokenizer> load_json(const std::filesystem::path& dir, const nlohmann::json& config) {
  const auto path = dir / "tokenizer.json";
  TokenizerJson::Options options;
  const std::string config_where = (dir / "config.json").string();
  options.model_vocab_size = JsonFields(config, config_where).integer("vocab_size").value_or(0);
  auto tokenizer = std::make_unique<TokenizerJson>(read_text_file(path), path.string(), options);

  const auto extra_path = dir / "tokenizer_config.json";
  const auto extra = read_optional(extra_path);
  const auto find = [&](const char* text_field, const char* id_field) {
    const auto id = token_from_text(extra, extra_path.string(), text_field, *tokenizer);
    return id ? id : token_from_id(config, id_field, tokenizer->vocab_size());
  };
  tokenizer->set_specials(find("bos_token", "bos_token_id"), find("eos_token", "eos_token_id"));
  return tokenizer;
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model_dir) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model_dir, ignored)) {
    throw FileError(fmt::format("{}: there is no such model folder", model_dir.string()));
  }
  const auto config = read_optional(model_dir / "config.json");
  if (std::filesystem::exists(model_dir / "tokenizer.json", ignored)) return load_json(model_dir, config);

  const std::string where = (model_dir / "config.json").string();
  const auto vocab_size = JsonFields(config, where).integer("vocab_size").value_or(0);
  if (vocab_size == 258) return std::make_unique<ByteTokenizer>(true);
  if (vocab_size == 256) return std::make_unique<ByteTokenizer>(false);
  throw FileError(
      fmt::format("{}: the folder holds no tokenizer.json, and its config.json has not the vocab_size of "
                  "the byte tokenizer (258, or 256 without special tokens)",
                  model_dir.string()));
}

}  // namespace caldera
