#include "lm/tokenizers/byte_tokenizer.h"

#include <fmt/format.h>

#include "engine/base/error.h"
#include "lm/base/unicode/utf8.h"

namespace caldera {

std::vector<std::int32_t> ByteTokenizer::encode(std::string_view text, bool add_special) const {
  std::vector<std::int32_t> ids;
  ids.reserve(text.size() + 1);
  if (add_special && with_specials_) ids.push_back(kBos);
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocab_size()) {
      throw ValueError(
          fmt::format("decode: token id {} is outside of the vocabulary of {}", id, vocab_size()));
    }
    if (id < kBos)
      bytes += static_cast<char>(id);
    else if (!skip_special)
      bytes += id == kBos ? "<s>" : "</s>";
  }
  return detail::to_utf8(bytes);
}

std::optional<std::int32_t> ByteTokenizer::token_to_id(std::string_view text) const {
  if (text.size() == 1) return static_cast<unsigned char>(text.front());
  if (with_specials_ && text == "<s>") return kBos;
  if (with_specials_ && text == "</s>") return kEos;
  return std::nullopt;
}

std::string ByteTokenizer::token_bytes(std::int32_t id) const {
  return id >= 0 && id < kBos ? std::string(1, static_cast<char>(id)) : std::string();
}

std::optional<std::int32_t> ByteTokenizer::bos_id() const {
  return with_specials_ ? std::optional(kBos) : std::nullopt;
}
std::optional<std::int32_t> ByteTokenizer::eos_id() const {
  return with_specials_ ? std::optional(kEos) : std::nullopt;
}

}  // namespace caldera
