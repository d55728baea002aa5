#include "training/text/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "engine/tensor/error.h"
#include "training/io/json_file.h"
#include "training/text/added_tokens.h"
#include "training/text/bpe.h"
#include "training/text/decoder.h"
#include "training/text/normalizer.h"
#include "training/text/post_processor.h"
#include "training/text/pre_tokenizer.h"
#include "training/text/utf8.h"

namespace caldera {
namespace {

using detail::AddedToken;
using detail::JsonFields;
using detail::TokenFinder;

/// A stage's configuration; absent is null.
const nlohmann::json& stage(const nlohmann::json& root, const char* name) {
  static const nlohmann::json kNull;
  const auto it = root.find(name);
  return it == root.end() ? kNull : *it;
}

std::vector<AddedToken> read_added_tokens(const nlohmann::json& list, const std::string& where) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  if (!list.is_array()) throw FileError(fmt::format("{}: field 'added_tokens' must be a list", where));
  for (const auto& entry : list) {
    const std::string entry_where = where + ": added_tokens";
    const JsonFields fields(entry, entry_where);
    const std::int64_t id = fields.require_integer("id");
    if (id < 0 || id > detail::kMaxTokenId) fields.fail("id", fmt::format("is {}, out of range", id));
    // Word boundaries are a matter of BERT-like tokenizers; ignoring the flag would give wrong ids.
    if (fields.boolean("single_word").value_or(false))
      fields.fail("single_word", "is true, which is not supported");
    tokens.push_back({.id = static_cast<std::int32_t>(id),
                      .content = fields.require_string("content"),
                      .lstrip = fields.boolean("lstrip").value_or(false),
                      .rstrip = fields.boolean("rstrip").value_or(false),
                      .normalized = fields.boolean("normalized").value_or(false),
                      .special = fields.boolean("special").value_or(false)});
  }
  return tokens;
}

}  // namespace

struct TokenizerJson::Impl {
  Impl(const nlohmann::json& root, const std::string& where, Options opts)
      : options(opts),
        added(read_added_tokens(stage(root, "added_tokens"), where)),
        normalizer(detail::make_normalizer(stage(root, "normalizer"), where + ": normalizer")),
        pre_tokenizer(detail::make_pre_tokenizer(stage(root, "pre_tokenizer"), where + ": pre_tokenizer")),
        model(stage(root, "model"), where + ": model"),
        post_processor(
            detail::make_post_processor(stage(root, "post_processor"), where + ": post_processor")),
        decoder(detail::make_decoder(stage(root, "decoder"), where + ": decoder")),
        raw_finder(patterns(false)),
        normalized_finder(patterns(true)),
        size(model.size()) {
    for (const auto& token : added) {
      const auto* in_model = model.token_of(token.id);
      if ((in_model != nullptr && *in_model != token.content) ||
          !added_by_id.emplace(token.id, &token).second) {
        throw FileError(fmt::format("{}: added token '{}' has id {}, which another token has too", where,
                                    detail::printable(token.content), token.id));
      }
      size = std::max<std::int64_t>(size, token.id + 1);
    }
    for (const auto* side : {&post_processor.prefix, &post_processor.suffix}) {
      for (const auto id : *side) {
        if (id >= size)
          throw FileError(fmt::format("{}: post_processor uses token id {}, which no token has", where, id));
      }
    }
  }

  /// What to look for: contents as they are, or, for tokens sought in normalised text, as the normalizer
  /// leaves them.
  std::vector<TokenFinder::Pattern> patterns(bool normalized) const {
    std::vector<TokenFinder::Pattern> list;
    for (const auto& token : added) {
      if (token.normalized != normalized) continue;
      list.push_back(
          {normalized && normalizer ? normalizer->normalize(token.content) : token.content, &token});
    }
    return list;
  }

  void encode_normalized(std::string_view text, std::vector<std::int32_t>& ids) const {
    if (!pre_tokenizer) return model.encode(text, ids);
    for (const auto& word : pre_tokenizer->split(text)) model.encode(word, ids);
  }

  Options options;
  std::vector<AddedToken> added;
  std::unordered_map<std::int32_t, const AddedToken*> added_by_id;
  std::unique_ptr<detail::Normalizer> normalizer;
  std::unique_ptr<detail::PreTokenizer> pre_tokenizer;
  detail::BpeModel model;
  detail::PostProcessor post_processor;
  std::unique_ptr<detail::Decoder> decoder;
  TokenFinder raw_finder;
  TokenFinder normalized_finder;
  std::int64_t size = 0;
};

TokenizerJson::TokenizerJson(std::string_view json, const std::string& where)
    : TokenizerJson(json, where, Options{}) {}

TokenizerJson::TokenizerJson(std::string_view json, const std::string& where, Options options) {
  const auto root = detail::parse_json(json, where);
  if (!root.is_object()) throw FileError(fmt::format("{}: the JSON root is not an object", where));
  impl_ = std::make_unique<Impl>(root, where, options);
}

TokenizerJson::~TokenizerJson() = default;

std::vector<std::int32_t> TokenizerJson::encode(std::string_view text, bool add_special) const {
  std::vector<std::int32_t> ids;
  if (add_special) ids = impl_->post_processor.prefix;

  const auto push_token = [&](const AddedToken& token) { ids.push_back(token.id); };
  const auto encode_text = [&](std::string_view part) { impl_->encode_normalized(part, ids); };
  // Each stretch between added tokens is normalised on its own: a Prepend acts on every one of them.
  const auto normalize_and_encode = [&](std::string_view part) {
    if (!impl_->normalizer) return impl_->normalized_finder.split(part, encode_text, push_token);
    impl_->normalized_finder.split(impl_->normalizer->normalize(std::string(part)), encode_text, push_token);
  };
  if (detail::is_utf8(text)) {
    impl_->raw_finder.split(text, normalize_and_encode, push_token);
  } else {
    impl_->raw_finder.split(detail::to_utf8(text), normalize_and_encode, push_token);
  }

  if (add_special)
    ids.insert(ids.end(), impl_->post_processor.suffix.begin(), impl_->post_processor.suffix.end());
  return ids;
}

std::string TokenizerJson::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  const std::int64_t limit = std::max(impl_->size, impl_->options.model_vocab_size);
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= limit) {
      throw ValueError(fmt::format("decode: token id {} is outside of the vocabulary of {}", id, limit));
    }
    const auto added = impl_->added_by_id.find(id);
    if (added != impl_->added_by_id.end()) {
      if (!(skip_special && added->second->special)) tokens.push_back(added->second->content);
    } else if (const auto* token = impl_->model.token_of(id)) {
      tokens.push_back(*token);
    }
  }
  std::string text;
  if (!impl_->decoder) return fmt::format("{}", fmt::join(tokens, " "));
  for (const auto& part : impl_->decoder->decode(std::move(tokens))) text += part;
  return text;
}

std::int64_t TokenizerJson::vocab_size() const { return impl_->size; }
std::optional<std::int32_t> TokenizerJson::bos_id() const { return impl_->options.bos_id; }
std::optional<std::int32_t> TokenizerJson::eos_id() const { return impl_->options.eos_id; }

bool TokenizerJson::is_special(std::int32_t id) const {
  const auto found = impl_->added_by_id.find(id);
  return found != impl_->added_by_id.end() && found->second->special;
}

std::string TokenizerJson::token_bytes(std::int32_t id) const {
  const std::int32_t alone[] = {id};
  return id < 0 || id >= impl_->size ? std::string() : decode(alone, true);
}

std::optional<std::int32_t> TokenizerJson::token_to_id(std::string_view token) const {
  for (const auto& added : impl_->added) {
    if (added.content == token) return added.id;
  }
  return impl_->model.id_of(token);
}

void TokenizerJson::set_specials(std::optional<std::int32_t> bos_id, std::optional<std::int32_t> eos_id) {
  impl_->options.bos_id = bos_id;
  impl_->options.eos_id = eos_id;
}

}  // namespace caldera
