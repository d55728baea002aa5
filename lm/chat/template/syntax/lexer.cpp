#include "lm/chat/template/syntax/lexer.h"

#include <algorithm>

#include "lm/chat/template/base/budget.h"
#include "lm/chat/template/base/chat_template_error.h"
#include "lm/chat/template/base/string_literal.h"
#include "lm/chat/template/base/unicode.h"

namespace caldera::chat {
namespace {

/// Newlines of every kind as \n, and without one newline at the very end.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out.push_back(source[i]);
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) next_part();
    add(TokenKind::end, "", at_);
    return std::move(tokens_);
  }

 private:
  std::string_view rest(std::size_t from) const { return std::string_view(source_).substr(from); }
  bool begins(std::size_t at, std::string_view with) const {
    return rest(std::min(at, source_.size())).starts_with(with);
  }
  std::size_t skip_space(std::size_t at) const { return source_.size() - strip_left(rest(at)).size(); }

  /// Line and column of a byte; asked for in rising order, so that the whole takes linear time.
  Position position(std::size_t at) {
    if (at < counted_) {
      counted_ = 0;
      here_ = {1, 1};
    }
    while (counted_ < at) {
      const bool newline = source_[counted_] == '\n';
      here_.column = newline ? 1 : here_.column + 1;
      here_.line += static_cast<std::uint32_t>(newline);
      counted_ += first_character(rest(counted_)).bytes;
    }
    return here_;
  }

  [[noreturn]] void error(std::size_t at, const std::string& message) {
    const Position place = position(at);
    throw ChatTemplateError(message, place.line, place.column);
  }

  void add(TokenKind kind, std::string text, std::size_t at) {
    tokens_.push_back({kind, std::move(text), position(at)});
  }

  /// Where a tag's opening that is no more than whitespace and a word ends, as {% raw %} does; npos if it is
  /// not.
  std::size_t word_tag(std::size_t at, std::string_view word, bool opening) const {
    std::size_t i = at + 2;
    if (begins(i, "-") || begins(i, "+")) ++i;
    i = skip_space(i);
    if (!begins(i, word)) return std::string::npos;
    i = skip_space(i + word.size());
    if (begins(i, "-%}")) return skip_space(i + 3);
    if (!opening && begins(i, "+%}")) return i + 3;
    if (!begins(i, "%}")) return std::string::npos;
    return i + 2 + static_cast<std::size_t>(!opening && begins(i + 2, "\n"));
  }

  /// The text from at_ up to a tag at `tag`, trimmed as the tag's sign says.
  void add_text(std::size_t tag, bool is_print) {
    const std::string_view whole = rest(at_).substr(0, tag - at_);
    std::string_view text = whole;
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (sign == '-') {
      text = strip_right(text);
    } else if (sign != '+' && !is_print) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line > 0 || line_starting_) && strip_left(text.substr(line)).empty()) text = text.substr(0, line);
    }
    if (!text.empty()) add(TokenKind::text, std::string(text), at_);
  }

  void next_part() {
    std::size_t tag = at_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= source_.size()) {
        add(TokenKind::text, source_.substr(at_), at_);
        at_ = source_.size();
        return;
      }
      const char next = source_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
      ++tag;
    }
    const char kind = source_[tag + 1];
    add_text(tag, kind == '{');
    std::size_t inside = tag + 2;
    if (begins(inside, "-") || begins(inside, "+")) ++inside;
    if (kind == '#') return comment(tag, inside);
    if (kind == '%') {
      const std::size_t raw_begin = word_tag(tag, "raw", true);
      if (raw_begin != std::string::npos) return raw(tag, raw_begin);
    }
    add(kind == '{' ? TokenKind::print_begin : TokenKind::block_begin, "", tag);
    at_ = inside;
    code(kind == '{');
  }

  /// Goes on behind a tag that ends at `end`.
  void leave_tag(std::size_t end) {
    at_ = end;
    line_starting_ = end > 0 && source_[end - 1] == '\n';
  }

  void comment(std::size_t tag, std::size_t inside) {
    const std::size_t close = source_.find("#}", inside);
    if (close == std::string::npos) error(tag, "Missing end of comment tag");
    const char sign = close > inside ? source_[close - 1] : '\0';
    std::size_t end = close + 2;
    if (sign == '-') {
      end = skip_space(end);
    } else if (sign != '+' && begins(end, "\n")) {
      ++end;
    }
    leave_tag(end);
  }

  void raw(std::size_t tag, std::size_t inside) {
    line_starting_ = source_[inside - 1] == '\n';
    at_ = inside;
    for (std::size_t close = source_.find("{%", inside); close != std::string::npos;
         close = source_.find("{%", close + 1)) {
      const std::size_t end = word_tag(close, "endraw", false);
      if (end == std::string::npos) continue;
      add_text(close, false);
      return leave_tag(end);
    }
    error(tag, "Missing end of raw directive");
  }

  /// Where the tag's end at `at` leads to; npos if it does not end there.
  std::size_t tag_end(std::size_t at, bool is_print) const {
    const std::string_view close = is_print ? "}}" : "%}";
    if (begins(at, "-") && begins(at + 1, close)) return skip_space(at + 3);
    if (!is_print && begins(at, "+%}")) return at + 3;
    if (!begins(at, close)) return std::string::npos;
    return at + 2 + static_cast<std::size_t>(!is_print && begins(at + 2, "\n"));
  }

  void code(bool is_print) {
    std::string open;  // the brackets that have not been closed
    while (at_ < source_.size()) {
      if (open.empty()) {
        const std::size_t end = tag_end(at_, is_print);
        if (end != std::string::npos) {
          add(is_print ? TokenKind::print_end : TokenKind::block_end, "", at_);
          return leave_tag(end);
        }
      }
      const std::size_t code_begin = skip_space(at_);
      if (code_begin != at_) {
        at_ = code_begin;
        continue;
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const Character c = first_character(rest(at_));
    if (is_ascii_digit(source_[at_])) return number();
    if (c.valid && is_identifier_start(c.value)) return name();
    if (source_[at_] == '\'' || source_[at_] == '"') return string();
    symbol(open);
  }

  void name() {
    std::size_t end = at_;
    while (end < source_.size()) {
      const Character c = first_character(rest(end));
      if (!c.valid || !is_identifier_part(c.value)) break;
      end += c.bytes;
    }
    add(TokenKind::name, source_.substr(at_, end - at_), at_);
    at_ = end;
  }

  /// The end of digits with single underscores between them.
  template <class IsDigit>
  std::size_t digits(std::size_t at, IsDigit is_digit, bool underscore_first = false) const {
    const auto digit = [&](std::size_t i) { return i < source_.size() && is_digit(source_[i]); };
    if (!digit(at) && !(underscore_first && begins(at, "_") && digit(at + 1))) return at;
    while (digit(at) || (begins(at, "_") && digit(at + 1))) ++at;
    return at;
  }

  void number() {
    const std::size_t whole = digits(at_, is_ascii_digit);
    std::size_t end = whole;
    if (at_ == 0 || source_[at_ - 1] != '.') {
      const std::size_t fraction = begins(end, ".") ? digits(end + 1, is_ascii_digit) : end;
      if (fraction > end + 1) end = fraction;
      if (begins(end, "e") || begins(end, "E")) {
        const std::size_t exponent =
            end + 1 + static_cast<std::size_t>(begins(end + 1, "+") || begins(end + 1, "-"));
        const std::size_t last = digits(exponent, is_ascii_digit);
        if (last > exponent) end = last;
      }
    }
    TokenKind kind = TokenKind::real;
    if (end == whole) {
      kind = TokenKind::integer;
      end = integer_end(whole);
    }
    std::string text = source_.substr(at_, end - at_);
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    add(kind, std::move(text), at_);
    at_ = end;
  }

  std::size_t integer_end(std::size_t decimal_end) const {
    if (source_[at_] != '0') return decimal_end;
    const char letter = at_ + 1 < source_.size() ? static_cast<char>(source_[at_ + 1] | 0x20) : '\0';
    std::size_t end = 0;
    if (letter == 'b')
      end = digits(
          at_ + 2, [](char c) { return c == '0' || c == '1'; }, true);
    if (letter == 'o')
      end = digits(
          at_ + 2, [](char c) { return c >= '0' && c <= '7'; }, true);
    if (letter == 'x')
      end = digits(
          at_ + 2, [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }, true);
    if (end > at_ + 2) return end;
    return digits(at_, [](char c) { return c == '0'; });
  }

  void string() {
    const char quote = source_[at_];
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size())
      error(at_, std::string("a string that begins with ") + quote + " does not end");
    try {
      add(TokenKind::string, unescaped(rest(at_ + 1).substr(0, end - at_ - 1)), at_);
    } catch (const Fault& fault) {
      error(at_, fault.message);
    }
    at_ = end + 1;
  }

  void symbol(std::string& open) {
    constexpr std::string_view kLong[] = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view kShort = "+-/*%~[](){}><=.:|,;";
    std::size_t size = 1;
    for (const std::string_view symbol : kLong) size = begins(at_, symbol) ? 2 : size;
    const char c = source_[at_];
    if (size == 1 && kShort.find(c) == std::string_view::npos) {
      error(at_, "unexpected char " + std::string(rest(at_).substr(0, first_character(rest(at_)).bytes)));
    }
    if (c == '(') open.push_back(')');
    if (c == '[') open.push_back(']');
    if (c == '{') open.push_back('}');
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) error(at_, std::string("unexpected '") + c + "'");
      if (open.back() != c) error(at_, std::string("unexpected '") + c + "', expected '" + open.back() + "'");
      open.pop_back();
    }
    add(TokenKind::symbol, source_.substr(at_, size), at_);
    at_ += size;
  }

  std::string source_;
  std::size_t at_ = 0;
  bool line_starting_ = true;  ///< nothing or a newline stands before at_
  std::vector<Token> tokens_;
  std::size_t counted_ = 0;
  Position here_{1, 1};
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalized(source)).run(); }

}  // namespace caldera::chat
