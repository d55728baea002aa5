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

 protected:
  Tokenizer() = default;
};

}  // namespace caldera
