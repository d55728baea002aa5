// Added tokens: texts that become one token each before the tokenizer's model sees the rest. Private to
// training/text.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace caldera::detail {

/// One entry of `added_tokens` in a tokenizer.json.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool lstrip = false;      ///< takes white space before it along
  bool rstrip = false;      ///< takes white space after it along
  bool normalized = false;  ///< is looked for in the normalised text (in its own normalised form)
  bool special = false;     ///< decode leaves it out on request
};

/// Finds tokens in a text: the leftmost first, the longest of those, never overlapping.
class TokenFinder {
 public:
  struct Pattern {
    std::string text;
    const AddedToken* token = nullptr;  ///< must outlive the finder
  };

  explicit TokenFinder(std::vector<Pattern> patterns);
  TokenFinder(const TokenFinder&) = delete;  // it points into itself
  TokenFinder& operator=(const TokenFinder&) = delete;

  /// Calls `on_text` for each non-empty stretch between tokens and `on_token` for each token, in order.
  void split(std::string_view text, const std::function<void(std::string_view)>& on_text,
             const std::function<void(const AddedToken&)>& on_token) const;

 private:
  const Pattern* match(std::string_view rest) const;

  std::vector<Pattern> patterns_;
  /// By first byte: the patterns that begin with it, the longest first.
  std::array<std::vector<const Pattern*>, 256> by_first_byte_;
};

}  // namespace caldera::detail
