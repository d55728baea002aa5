// ByteTokenizer: needs no file, and makes each byte a token.
#pragma once

#include "lm/tokenizers/tokenizer.h"

namespace caldera {

/// Ids 0..255 are the bytes; with specials, 256 is bos ("<s>") and 257 is eos ("</s>"). encode adds the bos
/// where it is asked for special tokens, as Llama's tokenizers do; it does not look for special tokens in the
/// text.
class ByteTokenizer final : public Tokenizer {
 public:
  explicit ByteTokenizer(bool with_specials = true) : with_specials_(with_specials) {}

  std::vector<std::int32_t> encode(std::string_view text, bool add_special = true) const override;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const override;
  std::int64_t vocab_size() const override { return with_specials_ ? kBos + 2 : kBos; }
  std::optional<std::int32_t> bos_id() const override;
  std::optional<std::int32_t> eos_id() const override;
  /// A byte's text is that byte, whether or not it is a character.
  std::optional<std::int32_t> token_to_id(std::string_view text) const override;
  bool is_special(std::int32_t id) const override { return id >= kBos && id < vocab_size(); }
  std::string token_bytes(std::int32_t id) const override;

 private:
  static constexpr std::int32_t kBos = 256;
  static constexpr std::int32_t kEos = 257;
  bool with_specials_;
};

}  // namespace caldera
