// Added tokens: texts that become one token each before the tokenizer's model sees the rest. Private to
// lm/tokenizers/.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lm/base/json_file.h"
#include "lm/tokenizers/vocabulary/byte_trie.h"

namespace caldera::detail {

/// One entry of `added_tokens` in a tokenizer.json.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  ///< only where no word character stands before or after it
  bool lstrip = false;       ///< takes white space before it along
  bool rstrip = false;       ///< takes white space after it along
  bool normalized = false;   ///< is looked for in the normalised text (in its own normalised form)
  bool special = false;      ///< decode leaves it out on request
};

/// Reads an entry's fields; its id is a field of its own or stands elsewhere. Throws FileError.
AddedToken read_added_token(const JsonFields& fields, std::int64_t id);
/// Reads `added_tokens`: a list, or null for none. Throws FileError.
std::vector<AddedToken> read_added_tokens(const nlohmann::json& list, const std::string& where);

/// Finds tokens in a text: the leftmost first, the longest of those, never overlapping.
class TokenFinder {
 public:
  struct Pattern {
    std::string text;
    const AddedToken* token = nullptr;  ///< must outlive the finder
  };

  explicit TokenFinder(std::vector<Pattern> patterns);

  /// Calls `on_text` for each non-empty stretch between tokens and `on_token` for each token, in order.
  void split(std::string_view text, const std::function<void(std::string_view)>& on_text,
             const std::function<void(const AddedToken&)>& on_token) const;

 private:
  std::vector<Pattern> patterns_;
  ByteTrie trie_;  ///< of their texts, with their indices
};

}  // namespace caldera::detail
