// Pipeline: a tokenizer made of stages. Private to lm/tokenizers/.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lm/tokenizers/decoders/decoder.h"
#include "lm/tokenizers/models/model.h"
#include "lm/tokenizers/normalizers/normalizer.h"
#include "lm/tokenizers/pipeline/added_tokens.h"
#include "lm/tokenizers/pipeline/word_cache.h"
#include "lm/tokenizers/post_processors/post_processor.h"
#include "lm/tokenizers/pre_tokenizers/pre_tokenizer.h"
#include "lm/tokenizers/tokenizer.h"

namespace caldera::detail {

/// The stages of a tokenizer. All but the model may be missing.
struct TokenizerParts {
  std::vector<AddedToken> added;
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<Model> model;
  PostProcessor post_processor;
  std::unique_ptr<Decoder> decoder;
  std::optional<std::int32_t> bos_id;
  std::optional<std::int32_t> eos_id;
  /// Rows of the model's vocabulary, where that is larger than the tokenizer's: ids between have no token.
  std::int64_t model_vocab_size = 0;

  /// The id of a token by its exact text, added tokens first.
  std::optional<std::int32_t> id_of(std::string_view token) const;
};

/// Added tokens -> normalizer -> pre-tokenizer -> model -> post-processor, and the decoder back.
class Pipeline final : public Tokenizer {
 public:
  /// Throws FileError, beginning with `where`, for added tokens whose ids other tokens have, and for a
  /// post-processor with ids that no token has.
  Pipeline(TokenizerParts parts, const std::string& where);

  std::vector<std::int32_t> encode(std::string_view text, bool add_special = true) const override;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const override;
  std::int64_t vocab_size() const override { return size_; }
  std::optional<std::int32_t> bos_id() const override { return parts_.bos_id; }
  std::optional<std::int32_t> eos_id() const override { return parts_.eos_id; }
  std::optional<std::int32_t> token_to_id(std::string_view text) const override { return parts_.id_of(text); }
  bool is_special(std::int32_t id) const override;
  std::string token_bytes(std::int32_t id) const override;

  void set_specials(std::optional<std::int32_t> bos_id, std::optional<std::int32_t> eos_id);

 private:
  class Run;
  /// Returns what to look for: contents as they are, or, for tokens sought in normalised text, as the
  /// normalizer leaves them.
  std::vector<TokenFinder::Pattern> patterns(bool normalized) const;

  TokenizerParts parts_;
  bool byte_characters_ = false;  ///< words are written in the byte-level alphabet for the model
  std::unordered_map<std::int32_t, const AddedToken*> added_by_id_;
  TokenFinder raw_finder_;
  TokenFinder normalized_finder_;
  std::int64_t size_ = 0;
  mutable WordCachePool caches_;
};

}  // namespace caldera::detail
