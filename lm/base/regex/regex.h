// Regular expressions, run by PCRE2. Private to lm/ and training/.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace caldera::detail {

/// A compiled expression. Immutable; find may be called from several threads at once.
class Regex {
 public:
  enum class Syntax : std::uint8_t {
    oniguruma,  ///< as tokenizer.json has them (see translate_expression)
    pcre        ///< as PCRE2 has them, with Unicode's character classes
  };

  /// Throws FileError, beginning with `where`, for what is no expression or asks for what is not supported.
  Regex(std::string_view expression, Syntax syntax, const std::string& where);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  /// Calls `on_match(Match)` for the matches in `text`, which must be UTF-8, from left to right. A match
  /// begins where the one before ended or later; an empty one does not touch the one before. Throws
  /// ValueError where the expression needs more steps than any that tokenizers use does: it backtracks
  /// without end.
  template <typename OnMatch>
  void for_each_match(std::string_view text, OnMatch&& on_match) const {
    std::string changed;
    text = as_it_is_known(text, changed);
    std::size_t from = 0;
    bool any = false;
    std::size_t last_end = 0;
    for (Match match; from <= text.size() && find(text, from, match);) {
      from = match.end;
      if (match.begin == match.end && any && match.end == last_end) {
        from = next_character(text, from);
        continue;
      }
      any = true;
      last_end = match.end;
      on_match(match);
    }
  }

 private:
  struct Impl;
  bool find(std::string_view text, std::size_t from, Match& match) const;
  /// A text of the same length, whose characters PCRE2 knows.
  std::string_view as_it_is_known(std::string_view text, std::string& changed) const;
  static std::size_t next_character(std::string_view text, std::size_t at);

  std::unique_ptr<Impl> impl_;
};

}  // namespace caldera::detail
