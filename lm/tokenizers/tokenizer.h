// Tokenizer: turns text into token ids and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

/// A tokenizer. Const methods may be called from several threads at once.
///
/// encode and decode throw ValueError where a regular expression of the tokenizer's file needs more steps
/// than any that a tokenizer in use needs: the file is at fault then, not the text.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// The ids of `text`. With `add_special`, also the special tokens that the model expects around a text (a
  /// bos, say). Names of special tokens within the text become those tokens. Never throws on account of the
  /// text's bytes: a tokenizer of bytes takes them as they are, any other sees U+FFFD where the text is not
  /// UTF-8.
  virtual std::vector<std::int32_t> encode(std::string_view text, bool add_special = true) const = 0;

  /// The text of `ids`, always valid UTF-8 (bytes that form no character become U+FFFD). `skip_special`
  /// leaves special tokens out. Throws ValueError for an id that no token and no row of the model's
  /// vocabulary has.
  virtual std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const = 0;

  /// One more than the largest id that encode may give.
  virtual std::int64_t vocab_size() const = 0;
  virtual std::optional<std::int32_t> bos_id() const = 0;
  virtual std::optional<std::int32_t> eos_id() const = 0;

  // A tokenizer of a program's own may leave these three as they are.

  /// The id of the token with exactly this text, special or not, as the tokenizer's file spells it
  /// ("\u0120the",
  /// "\u2581the", "##ing", "<s>").
  virtual std::optional<std::int32_t> token_to_id(std::string_view text) const {
    (void)text;
    return std::nullopt;
  }

  /// Whether decode leaves `id` out with skip_special. False for an id that no token has.
  virtual bool is_special(std::int32_t id) const {
    (void)id;
    return false;
  }

  /// The bytes that `id` adds to a text that has begun, decoded with skip_special; empty for a special token
  /// and for an id that no token has. They may be part of a character only. A mask of the ids that a grammar
  /// allows is made of these: whatever the tokens before, decode gives these bytes, but for a space that it
  /// may drop at the very beginning of a text.
  virtual std::string token_bytes(std::int32_t id) const {
    const std::int32_t alone[] = {id};
    return decode(alone);
  }

 protected:
  Tokenizer() = default;
};

}  // namespace caldera
