#include "lm/base/regex/translate_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "lm/base/regex/character_class.h"
#include "lm/base/regex/expression_reader.h"

namespace caldera::detail {
namespace {

constexpr std::string_view kWordClass = R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}])";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A quantifier {n}, {n,}, {,m} or {n,m}.
struct Interval {
  std::string text;
  bool exact = false;  ///< {n}
};

class Translator {
 public:
  explicit Translator(std::string_view expression) : in_(expression) {}

  std::string run() {
    while (!in_.done()) {
      if (out_.size() > kMaxTranslatedBytes) throw ExpressionProblem{"becomes too long"};
      step();
    }
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kMaxTranslatedBytes = 1 << 20;

  void atom(std::string_view text) {
    atom_ = out_.size();
    out_ += text;
  }

  void step() {
    switch (in_.peek()) {
      case '\\':
        return escape();
      case '[':
        return atom(translate_class(in_));
      case '(':
        return open_group();
      case ')':
        out_ += in_.take();
        atom_ = groups_.empty() ? 0 : groups_.back();
        if (!groups_.empty()) groups_.pop_back();
        return;
      case '{':
        return interval();
      case '*':
      case '+':
      case '?':
        out_ += in_.take();
        return;
      case '|':
      case '^':
      case '$':
        atom(std::string(1, in_.take()));
        return;
      default:
        atom(in_.take_character());
    }
  }

  void open_group() {
    groups_.push_back(out_.size());
    if (in_.starts_with("(*"))
      throw ExpressionProblem{"uses a verb or call-out '(*', which is not supported"};
    if (in_.starts_with("(?~"))
      throw ExpressionProblem{"uses an absent operator '(?~', which is not supported"};
    out_ += in_.take();
    if (in_.done() || in_.peek() != '?') return;
    out_ += in_.take();
    if (in_.starts_with("<") || in_.starts_with("P<") || in_.starts_with("'"))
      return;  // look-behinds and names
    // Options: letters up to ':' or ')'. The letter m means here what s means in PCRE2.
    while (!in_.done() && (in_.peek() == '-' || (in_.peek() >= 'a' && in_.peek() <= 'z'))) {
      const char c = in_.take();
      if (c != '-' && c != 'i' && c != 'm' && c != 's' && c != 'x') {
        throw ExpressionProblem{fmt::format("uses the option '{}', which is not supported", c)};
      }
      out_ += c == 'm' ? 's' : c;
    }
    if (!in_.done() && in_.peek() == ')') {  // options for what follows: no group
      out_ += in_.take();
      groups_.pop_back();
    } else if (!in_.done()) {
      out_ += in_.take();  // one of : = ! > #
    }
  }

  std::optional<Interval> read_interval() {
    const auto start = in_.position();
    in_.take();
    std::string low;
    std::string high;
    while (!in_.done() && is_digit(in_.peek())) low += in_.take();
    const bool comma = !in_.done() && in_.peek() == ',';
    if (comma) {
      in_.take();
      while (!in_.done() && is_digit(in_.peek())) high += in_.take();
    }
    if (in_.done() || in_.peek() != '}' || (low.empty() && high.empty())) {
      in_.seek(start);
      return std::nullopt;
    }
    in_.take();
    if (!comma) return Interval{"{" + low + "}", true};
    return Interval{fmt::format("{{{},{}}}", low.empty() ? "0" : low, high), false};
  }

  void interval() {
    const auto found = read_interval();
    if (!found) {
      in_.take();
      return atom("\\{");
    }
    const char next = in_.done() ? '\0' : in_.peek();
    if (next != '+' && !(next == '?' && found->exact)) {
      out_ += found->text;
      return;
    }
    in_.take();
    out_.insert(atom_, "(?:");
    out_ += found->text + ")" + next;
  }

  void escape() {
    const auto start = in_.position();
    in_.take();
    if (in_.done()) throw ExpressionProblem{"ends with a backslash"};
    const char c = in_.peek();
    if (c == 'b' || c == 'B') {
      in_.take();
      const char* form =
          c == 'b' ? "(?:(?<={0})(?!{0})|(?<!{0})(?={0}))" : "(?:(?<={0})(?={0})|(?<!{0})(?!{0}))";
      return atom(fmt::format(fmt::runtime(form), kWordClass));
    }
    if (std::string_view("AzZGKRXkg").find(c) != std::string_view::npos || (c >= '1' && c <= '9')) {
      in_.take();
      return atom(std::string("\\") + c);
    }
    if (c == 'O') {
      in_.take();
      return atom("(?s:.)");
    }
    if (c == 'N') {
      in_.take();
      return atom("[^\\n]");
    }
    if (c == 'y' || c == 'Y') throw ExpressionProblem{"uses \\y, which is not supported"};
    in_.seek(start);
    atom(translate_class_escape(in_));
  }

  ExpressionReader in_;
  std::string out_;
  std::size_t atom_ = 0;             ///< where the last thing that can be quantified begins in out_
  std::vector<std::size_t> groups_;  ///< where the open groups begin in out_
};

}  // namespace

TranslatedExpression translate_expression(std::string_view expression) {
  try {
    return {Translator(expression).run(), ""};
  } catch (const ExpressionProblem& problem) {
    return {"", problem.text};
  }
}

}  // namespace caldera::detail
