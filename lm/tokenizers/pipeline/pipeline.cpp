#include "lm/tokenizers/pipeline/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/base/unicode/utf8.h"

namespace caldera::detail {

std::optional<std::int32_t> TokenizerParts::id_of(std::string_view token) const {
  for (const auto& entry : added) {
    if (entry.content == token) return entry.id;
  }
  return model->tokens().find(token);
}

/// One call of encode.
class Pipeline::Run {
 public:
  Run(const Pipeline& pipeline, std::vector<std::int32_t>& ids)
      : pipeline_(pipeline), model_(*pipeline.parts_.model), ids_(ids), cache_(pipeline.caches_.take()) {}
  ~Run() { pipeline_.caches_.give_back(std::move(cache_)); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void encode(std::string_view text) {
    const auto on_token = [&](const AddedToken& token) { ids_.push_back(token.id); };
    const auto on_text = [&](std::string_view part) {
      encode_raw(part, part.data() == text.data(), on_token);
    };
    pipeline_.raw_finder_.split(text, on_text, on_token);
  }

 private:
  /// Each stretch between added tokens is normalised on its own: a Prepend acts on every one of them.
  void encode_raw(std::string_view part, bool first, const std::function<void(const AddedToken&)>& on_token) {
    std::string normalized;
    if (pipeline_.parts_.normalizer) {
      normalized = pipeline_.parts_.normalizer->normalize(std::string(part));
      part = normalized;
    }
    const auto on_text = [&](std::string_view rest) {
      encode_normalized({rest, first && rest.data() == part.data()});
    };
    pipeline_.normalized_finder_.split(part, on_text, on_token);
  }

  void encode_normalized(const Piece& piece) {
    if (!pipeline_.parts_.pre_tokenizer) return encode_word(piece.text);
    const auto on_word = [&](const Piece& word) { encode_word(word.text); };
    pipeline_.parts_.pre_tokenizer->split(piece, on_word);
  }

  void encode_word(std::string_view word) {
    if (pipeline_.byte_characters_) return encode_part(word);
    while (!word.empty()) {
      const std::size_t bytes = model_.first_part(word);
      encode_part(word.substr(0, bytes));
      word.remove_prefix(bytes);
    }
  }

  void encode_part(std::string_view word) {
    if (word.size() > WordCache::kMaxWord) return encode_by_model(word);
    const std::uint64_t hash = WordCache::hash_of(word);
    if (const auto known = cache_->find(word, hash)) {
      ids_.insert(ids_.end(), known->begin(), known->end());
      return;
    }
    const std::size_t before = ids_.size();
    encode_by_model(word);
    cache_->insert(word, hash, std::span(ids_).subspan(before));
  }

  void encode_by_model(std::string_view word) {
    if (pipeline_.byte_characters_) return model_.encode_bytes(word, ids_);
    model_.encode(word, ids_);
  }

  const Pipeline& pipeline_;
  const Model& model_;
  std::vector<std::int32_t>& ids_;
  std::unique_ptr<WordCache> cache_;
};

Pipeline::Pipeline(TokenizerParts parts, const std::string& where)
    : parts_(std::move(parts)),
      byte_characters_(parts_.pre_tokenizer && parts_.pre_tokenizer->leave_byte_characters_out()),
      raw_finder_(patterns(false)),
      normalized_finder_(patterns(true)),
      size_(parts_.model->tokens().size()) {
  for (const auto& token : parts_.added) {
    const auto in_model = parts_.model->tokens().text_of(token.id);
    if ((in_model && *in_model != token.content) || !added_by_id_.emplace(token.id, &token).second) {
      throw FileError(fmt::format("{}: added token '{}' has id {}, which another token has too", where,
                                  printable(token.content), token.id));
    }
    size_ = std::max<std::int64_t>(size_, token.id + 1);
  }
  for (const auto* side : {&parts_.post_processor.prefix, &parts_.post_processor.suffix}) {
    for (const auto id : *side) {
      if (id < 0 || id >= size_) {
        throw FileError(fmt::format("{}: post_processor uses token id {}, which no token has", where, id));
      }
    }
  }
}

std::vector<TokenFinder::Pattern> Pipeline::patterns(bool normalized) const {
  std::vector<TokenFinder::Pattern> list;
  for (const auto& token : parts_.added) {
    if (token.normalized != normalized) continue;
    const bool rewrite = normalized && parts_.normalizer;
    list.push_back({rewrite ? parts_.normalizer->normalize(token.content) : token.content, &token});
  }
  return list;
}

void Pipeline::set_specials(std::optional<std::int32_t> bos_id, std::optional<std::int32_t> eos_id) {
  parts_.bos_id = bos_id;
  parts_.eos_id = eos_id;
}

std::vector<std::int32_t> Pipeline::encode(std::string_view text, bool add_special) const {
  std::vector<std::int32_t> ids;
  if (add_special) ids = parts_.post_processor.prefix;
  {
    Run run(*this, ids);
    if (is_utf8(text)) {
      run.encode(text);
    } else {
      run.encode(to_utf8(text));
    }
  }
  if (add_special) {
    ids.insert(ids.end(), parts_.post_processor.suffix.begin(), parts_.post_processor.suffix.end());
  }
  return ids;
}

bool Pipeline::is_special(std::int32_t id) const {
  const auto found = added_by_id_.find(id);
  return found != added_by_id_.end() && found->second->special;
}

std::string Pipeline::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  const std::int64_t limit = std::max(size_, parts_.model_vocab_size);
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= limit) {
      throw ValueError(fmt::format("decode: token id {} is outside of the vocabulary of {}", id, limit));
    }
    const auto added = added_by_id_.find(id);
    if (added != added_by_id_.end()) {
      if (!(skip_special && added->second->special)) tokens.push_back(added->second->content);
    } else if (const auto token = parts_.model->tokens().text_of(id)) {
      tokens.emplace_back(*token);
    }
  }
  if (!parts_.decoder) return fmt::format("{}", fmt::join(tokens, " "));
  std::string text;
  for (const auto& part : parts_.decoder->decode(std::move(tokens))) text += part;
  return text;
}

std::string Pipeline::token_bytes(std::int32_t id) const {
  InnerToken token;
  const auto added = added_by_id_.find(id);
  if (added != added_by_id_.end()) {
    if (added->second->special) return "";
    token.bytes = added->second->content;
  } else if (const auto text = parts_.model->tokens().text_of(id)) {
    token.bytes = std::string(*text);
  } else {
    return "";
  }
  if (!parts_.decoder) return " " + token.bytes;
  parts_.decoder->rewrite_inner(token);
  return std::move(token.bytes);
}

}  // namespace caldera::detail
