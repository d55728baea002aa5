#include "lm/tokenizers/sources/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "engine/base/error.h"
#include "lm/base/json_file.h"

namespace caldera::detail {
namespace {

constexpr const char* kSpecialFields[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};

nlohmann::json read_optional(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return nlohmann::json::object();
  return read_json_object(path);
}

/// `field`: a token's text, or an object with its `content`.
std::optional<std::string> token_text(const nlohmann::json& json, const std::string& where,
                                      const char* field) {
  const JsonFields fields(json, where);
  const auto* value = fields.find(field);
  if (value == nullptr) return std::nullopt;
  return value->is_object() ? JsonFields(*value, where).string("content") : fields.string(field);
}

void put(TokenizerParts& parts, AddedToken token) {
  const auto same = std::ranges::find(parts.added, token.id, &AddedToken::id);
  if (same == parts.added.end()) {
    parts.added.push_back(std::move(token));
  } else if (same->content == token.content) {
    *same = std::move(token);
  }
}

}  // namespace

ModelFolder::ModelFolder(std::filesystem::path dir)
    : dir_(std::move(dir)),
      config_(read_optional(dir_ / "config.json")),
      tokenizer_config_(read_optional(dir_ / "tokenizer_config.json")),
      special_tokens_(read_optional(dir_ / "special_tokens_map.json")),
      added_tokens_(read_optional(dir_ / "added_tokens.json")),
      config_where_((dir_ / "config.json").string()),
      tokenizer_config_where_((dir_ / "tokenizer_config.json").string()) {}

bool ModelFolder::has(const char* file) const {
  std::error_code ignored;
  return std::filesystem::exists(dir_ / file, ignored);
}

std::int64_t ModelFolder::model_vocab_size() const {
  const JsonFields fields(config_, config_where_);
  if (const auto size = fields.integer("vocab_size")) return *size;
  // Models of several parts hold the language model's configuration in one of its own.
  const auto* text = fields.find("text_config");
  if (text == nullptr || !text->is_object()) return 0;
  return JsonFields(*text, config_where_).integer("vocab_size").value_or(0);
}

std::string ModelFolder::tokenizer_class() const {
  auto name = JsonFields(tokenizer_config_, tokenizer_config_where_).string("tokenizer_class").value_or("");
  if (name.empty()) name = JsonFields(config_, config_where_).string("tokenizer_class").value_or("");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

std::optional<bool> ModelFolder::flag(const char* field) const {
  return JsonFields(tokenizer_config_, tokenizer_config_where_).boolean(field);
}

std::optional<std::int64_t> ModelFolder::integer(const char* field) const {
  return JsonFields(tokenizer_config_, tokenizer_config_where_).integer(field);
}

std::optional<std::string> ModelFolder::special_token(const char* field) const {
  if (auto text = token_text(tokenizer_config_, tokenizer_config_where_, field)) return text;
  return token_text(special_tokens_, (dir_ / "special_tokens_map.json").string(), field);
}

std::optional<std::int32_t> ModelFolder::id_from_config(const char* field, std::int64_t limit) const {
  const auto it = config_.find(field);
  if (it == config_.end()) return std::nullopt;
  const auto& value = it->is_array() && !it->empty() ? it->front() : *it;
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= static_cast<std::uint64_t>(limit)) {
    return std::nullopt;
  }
  return value.get<std::int32_t>();
}

void ModelFolder::add_tokens(TokenizerParts& parts) const {
  const std::string where = (dir_ / "added_tokens.json").string();
  for (const auto& [content, id] : added_tokens_.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > kMaxTokenId) {
      throw FileError(fmt::format("{}: token '{}' has an id that is none", where, printable(content)));
    }
    const auto value = id.get<std::int32_t>();
    if (std::ranges::find(parts.added, value, &AddedToken::id) == parts.added.end()) {
      parts.added.push_back({.id = value, .content = content});
    }
  }
  const JsonFields fields(tokenizer_config_, tokenizer_config_where_);
  const auto* decoder = fields.find("added_tokens_decoder");
  if (decoder == nullptr) return;
  if (!decoder->is_object()) fields.fail("added_tokens_decoder", "must be an object");
  const std::string entry_where = tokenizer_config_where_ + ": added_tokens_decoder";
  for (const auto& [key, entry] : decoder->items()) {
    std::int64_t id = -1;
    const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || stop != key.data() + key.size()) {
      fields.fail("added_tokens_decoder", fmt::format("has '{}' for an id", printable(key)));
    }
    put(parts, read_added_token(JsonFields(entry, entry_where), id));
  }
}

void ModelFolder::mark_special(TokenizerParts& parts) const {
  std::vector<std::string> names;
  for (const char* field : kSpecialFields) {
    if (auto text = special_token(field)) names.push_back(std::move(*text));
  }
  for (const auto* json : {&tokenizer_config_, &special_tokens_}) {
    for (const char* field : {"additional_special_tokens", "extra_special_tokens"}) {
      const auto list = json->find(field);
      if (list == json->end() || !list->is_array()) continue;
      for (const auto& entry : *list) {
        if (entry.is_string()) names.push_back(entry.get<std::string>());
      }
    }
  }
  for (const auto& name : names) {
    const auto added = std::ranges::find(parts.added, name, &AddedToken::content);
    if (added != parts.added.end()) {
      added->special = true;
    } else if (const auto id = parts.model->tokens().find(name)) {
      parts.added.push_back({.id = *id, .content = name, .special = true});
    }
  }
}

void ModelFolder::complete(TokenizerParts& parts) const {
  add_tokens(parts);
  mark_special(parts);
  parts.model_vocab_size = model_vocab_size();
  std::int64_t size = parts.model->tokens().size();
  for (const auto& token : parts.added) size = std::max<std::int64_t>(size, token.id + 1);
  const auto id_of = [&](const char* text_field, const char* id_field) {
    const auto text = special_token(text_field);
    const auto id = text ? parts.id_of(*text) : std::nullopt;
    return id ? id : id_from_config(id_field, size);
  };
  const auto bos = id_of("bos_token", "bos_token_id");
  const auto eos = id_of("eos_token", "eos_token_id");
  if (bos) parts.bos_id = bos;
  if (eos) parts.eos_id = eos;
  if (is_llama_class(tokenizer_class())) {
    parts.post_processor = around(flag("add_bos_token").value_or(true) ? parts.bos_id : std::nullopt,
                                  flag("add_eos_token").value_or(false) ? parts.eos_id : std::nullopt);
  }
}

bool is_llama_class(const std::string& tokenizer_class) {
  static constexpr std::array kClasses = {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer"};
  return std::ranges::find(kClasses, tokenizer_class) != kClasses.end();
}

}  // namespace caldera::detail
