// A tokenizer as a tokenizer.json describes it (format: https://github.com/huggingface/tokenizers).
#pragma once

#include <memory>

#include "lm/tokenizers/tokenizer.h"

namespace caldera {

/// The pipeline added tokens -> normalizer -> pre-tokenizer -> model -> post-processor, and the decoder back.
/// Gives the ids and texts that Hugging Face's library gives; docs/guide/tokenizers.md lists the components.
/// The file's `truncation` and `padding` change nothing.
class TokenizerJson final : public Tokenizer {
 public:
  struct Options {
    std::optional<std::int32_t> bos_id;
    std::optional<std::int32_t> eos_id;
    /// Rows of the model's vocabulary, where that is larger than the tokenizer's: ids between have no token,
    /// and decode to nothing.
    std::int64_t model_vocab_size = 0;
  };

  /// `where` begins every error message. Throws FileError for text that is no tokenizer.json, or asks for
  /// something that is not supported.
  TokenizerJson(std::string_view json, const std::string& where);
  TokenizerJson(std::string_view json, const std::string& where, Options options);
  ~TokenizerJson() override;

  std::vector<std::int32_t> encode(std::string_view text, bool add_special = true) const override;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const override;
  std::int64_t vocab_size() const override;
  std::optional<std::int32_t> bos_id() const override;
  std::optional<std::int32_t> eos_id() const override;

  std::optional<std::int32_t> token_to_id(std::string_view text) const override;
  bool is_special(std::int32_t id) const override;
  std::string token_bytes(std::int32_t id) const override;

  /// Returns what token_to_id returns.
  std::optional<std::int32_t> id_of(std::string_view token) const { return token_to_id(token); }
  void set_specials(std::optional<std::int32_t> bos_id, std::optional<std::int32_t> eos_id);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caldera
