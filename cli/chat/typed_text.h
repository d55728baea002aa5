// TypedText: what a terminal sends for keys and for what is pasted.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace caldera::cli {

/// Tell a terminal to put marks around what is pasted ("bracketed paste"), and to do so no longer.
inline constexpr std::string_view kMarkPastes = "\x1b[?2004h";
inline constexpr std::string_view kMarkNoPastes = "\x1b[?2004l";

/// Makes characters of the bytes that a terminal with UTF-8 sends. In what is pasted the ends of lines become
/// a sign that a line editor shows, as do tabs; other control characters are left out.
class TypedText {
 public:
  /// Takes bytes. Where they end within what may be the beginning of a mark or of a character, that is held
  /// back until more come, or flush().
  void push(std::string_view bytes);
  /// Gives what is held back as it is: nothing more comes soon.
  void flush();
  bool holds_back() const { return !held_.empty(); }
  /// Whether something is pasted whose end has not come.
  bool pasting() const { return pasting_; }

  bool empty() const { return characters_.empty(); }
  /// The next character; not of an empty one.
  char32_t take();

 private:
  std::size_t take_one(std::string_view bytes);
  void add(char32_t character);

  std::deque<char32_t> characters_;
  std::string held_;
  bool pasting_ = false;
  bool after_return_ = false;  // a line feed behind it is the same end of a line
};

/// Puts the ends of lines and the tabs where their signs stand. Without those at the text's end.
std::string with_line_ends(std::string_view text);

}  // namespace caldera::cli
