#include "lm/generate/grammar/gbnf.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/error.h"
#include "lm/base/unicode/utf8.h"
#include "lm/generate/grammar/json_text.h"
#include "lm/generate/grammar/pattern.h"

namespace caldera::grammar {
namespace {

constexpr std::size_t kMostGbnfBytes = std::size_t{1} << 20;
constexpr std::size_t kMostGbnfRepeats = 2000;
constexpr int kMostGbnfDepth = 60;
constexpr char32_t kLastGbnfCode = 0x10FFFF;

/// A piece of a rule's right side.
struct GbnfItem {
  enum class Kind : std::uint8_t { text, set, rule, group } kind = Kind::text;
  std::string text;                            // a text, or a rule's name
  std::vector<CodeRange> ranges;               // of a set
  std::vector<std::vector<GbnfItem>> choices;  // of a group
  std::size_t least = 1;
  std::optional<std::size_t> most = 1;  // none: any number
  int line = 0;
};

using Choices = std::vector<std::vector<GbnfItem>>;

class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : text_(text) {
    if (text.size() > kMostGbnfBytes) throw ValueError("grammar: it is larger than a megabyte");
  }

  struct Definition {
    std::string name;
    Choices choices;
  };

  std::vector<Definition> parse() {
    std::vector<Definition> definitions;
    for (skip_blanks(true); !at_end(); skip_blanks(true)) {
      std::string name = this->name();
      skip_blanks(false);
      if (!text_.substr(at_).starts_with("::=")) fail("'::=' is expected behind a rule's name");
      at_ += 3;
      skip_blanks(true);
      Choices choices = read_choices(0);
      if (!at_end() && text_[at_] != '\n' && text_[at_] != '\r') fail("a rule goes on with what is none");
      definitions.push_back({std::move(name), std::move(choices)});
    }
    return definitions;
  }

  [[noreturn]] static void fail(int line, const std::string& problem) {
    throw ValueError(fmt::format("grammar: line {}: {}", line, problem));
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const { fail(line_, problem); }
  bool at_end() const { return at_ >= text_.size(); }
  bool at(char c) const { return !at_end() && text_[at_] == c; }

  static bool is_of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }

  /// `lines`: over the ends of lines as well.
  void skip_blanks(bool lines) {
    for (; !at_end(); ++at_) {
      if (at('#')) {
        while (!at_end() && !at('\n')) ++at_;
        if (at_end() || !lines) return;
      }
      const bool is_end = at('\n') || at('\r');
      if (!(at(' ') || at('\t') || (lines && is_end))) return;
      if (at('\n')) ++line_;
    }
  }

  std::string name() {
    const std::size_t begin = at_;
    while (!at_end() && is_of_name(text_[at_])) ++at_;
    if (at_ == begin) fail("the name of a rule is expected");
    return std::string(text_.substr(begin, at_ - begin));
  }

  Choices read_choices(int depth) {
    if (depth > kMostGbnfDepth) fail("groups nest too deep");
    Choices choices;
    for (;;) {
      choices.push_back(read_sequence(depth));
      if (!at('|')) return choices;
      ++at_;
      skip_blanks(true);
    }
  }

  std::vector<GbnfItem> read_sequence(int depth) {
    std::vector<GbnfItem> items;
    for (;;) {
      skip_blanks(depth > 0);
      GbnfItem item;
      item.line = line_;
      if (at('"')) {
        item.text = read_text();
      } else if (at('[')) {
        item.kind = GbnfItem::Kind::set;
        item.ranges = read_class();
      } else if (at('.')) {
        ++at_;
        item.kind = GbnfItem::Kind::set;
        item.ranges = {{0, kLastGbnfCode}};
      } else if (at('(')) {
        ++at_;
        skip_blanks(true);
        item.kind = GbnfItem::Kind::group;
        item.choices = read_choices(depth + 1);
        if (!at(')')) fail("a '(' has no ')'");
        ++at_;
      } else if (!at_end() && is_of_name(text_[at_])) {
        item.kind = GbnfItem::Kind::rule;
        item.text = name();
      } else {
        return items;
      }
      read_repeats(item);
      items.push_back(std::move(item));
    }
  }

  void read_repeats(GbnfItem& item) {
    while (at('*') || at('+') || at('?') || at('{')) {
      // Of what is repeated already, a group is repeated.
      if (item.least != 1 || item.most != std::size_t{1}) {
        GbnfItem group;
        group.kind = GbnfItem::Kind::group;
        group.line = item.line;
        group.choices.push_back({std::move(item)});
        item = std::move(group);
        if (++repeats_ > kMostGbnfDepth) fail("too many repetitions of repetitions");
      }
      const char sign = text_[at_++];
      item.least = sign == '+' ? 1 : 0;
      item.most = sign == '?' ? std::optional<std::size_t>(1) : std::nullopt;
      if (sign == '{') read_bounds(item);
    }
    repeats_ = 0;
  }

  void read_bounds(GbnfItem& item) {
    skip_blanks(false);
    if (!at(',')) item.least = number();
    item.most = item.least;
    skip_blanks(false);
    if (at(',')) {
      ++at_;
      skip_blanks(false);
      item.most = at('}') ? std::nullopt : std::optional(number());
      skip_blanks(false);
    }
    if (!at('}')) fail("a '{' is no repetition");
    ++at_;
    if (item.most && *item.most < item.least) fail("the bounds of a repetition are out of order");
  }

  std::size_t number() {
    std::size_t value = 0;
    const std::size_t begin = at_;
    while (!at_end() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + static_cast<std::size_t>(text_[at_++] - '0');
      if (value > kMostGbnfRepeats) fail(fmt::format("more than {} repetitions", kMostGbnfRepeats));
    }
    if (at_ == begin) fail("a '{' is no repetition");
    return value;
  }

  std::string read_text() {
    std::string text;
    for (++at_; !at('"');) {
      if (at_end() || at('\n')) fail("a '\"' has no end");
      detail::append_character(text, character());
    }
    ++at_;
    return text;
  }

  std::vector<CodeRange> read_class() {
    ++at_;
    const bool negated = at('^');
    if (negated) ++at_;
    std::vector<CodeRange> ranges;
    while (!at(']')) {
      if (at_end() || at('\n')) fail("a '[' has no ']'");
      CodeRange range;
      range.low = range.high = character();
      if (at('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        range.high = character();
        if (range.high < range.low) fail("a range is out of order");
      }
      ranges.push_back(range);
    }
    ++at_;
    return negated ? opposite_ranges(ranges, kLastGbnfCode) : ranges;
  }

  char32_t character() {
    if (!at('\\')) {
      const detail::Character c = detail::first_character(text_.substr(at_));
      at_ += c.bytes;
      return c.value;
    }
    ++at_;
    if (at_end()) fail("an escape has no end");
    const char c = text_[at_++];
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      case 'U':
        return hex(8);
      default:
        break;
    }
    constexpr std::string_view kThemselves = "\\\"[]-^/";
    if (kThemselves.find(c) == std::string_view::npos) fail("an escape is not known");
    return static_cast<unsigned char>(c);
  }

  char32_t hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = at_end() ? '\0' : text_[at_++];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("an escape is malformed");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > kLastGbnfCode || (value >= 0xD800 && value < 0xE000)) fail("an escape is no character");
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int repeats_ = 0;
};

/// Writes what was parsed as states. What comes last leads to the end itself, so that a rule that ends with
/// itself takes no place to return to.
class GbnfWriter {
 public:
  explicit GbnfWriter(Rules& rules) : rules_(rules) {}

  RuleId write(const std::vector<GbnfParser::Definition>& definitions) {
    for (const GbnfParser::Definition& definition : definitions) {
      const RuleId rule = rules_.add_rule();
      rules_.set_nests(rule);
      if (!rules_of_.emplace(definition.name, rule).second)
        throw ValueError(fmt::format("grammar: the rule '{}' is there twice", definition.name.substr(0, 60)));
    }
    for (const GbnfParser::Definition& definition : definitions) {
      const StateId end = rules_.add_state();
      rules_.accept(end);
      add(definition.choices, rules_.begin(rules_of_.at(definition.name)), end);
    }
    const auto root = rules_of_.find("root");
    if (root == rules_of_.end()) throw ValueError("grammar: there is no rule 'root'");
    return root->second;
  }

 private:
  void add(const Choices& choices, StateId from, StateId to) {
    for (const std::vector<GbnfItem>& items : choices) {
      StateId state = from;
      for (std::size_t i = 0; i < items.size(); ++i) {
        const StateId next = i + 1 == items.size() ? to : rules_.add_state();
        add_repeated(items[i], state, next);
        state = next;
      }
      if (items.empty()) rules_.skip(from, to);
    }
  }

  void add_repeated(const GbnfItem& item, StateId from, StateId to) {
    if (item.least == 1 && item.most == std::size_t{1}) return add_once(item, from, to);
    for (std::size_t i = 0; i < item.least; ++i) {
      const StateId next = rules_.add_state();
      add_once(item, from, next);
      from = next;
    }
    if (!item.most) {
      const StateId loop = rules_.add_state();
      rules_.skip(from, loop);
      add_once(item, loop, loop);
      return rules_.skip(loop, to);
    }
    for (std::size_t i = item.least; i < *item.most; ++i) {
      rules_.skip(from, to);
      const StateId next = rules_.add_state();
      add_once(item, from, next);
      from = next;
    }
    rules_.skip(from, to);
  }

  void add_once(const GbnfItem& item, StateId from, StateId to) {
    switch (item.kind) {
      case GbnfItem::Kind::text:
        rules_.text(from, item.text, to);
        return;
      case GbnfItem::Kind::set:
        for (const CodeRange range : item.ranges) add_utf8(rules_, from, range, to);
        return;
      case GbnfItem::Kind::group:
        return add(item.choices, from, to);
      case GbnfItem::Kind::rule:
        break;
    }
    const auto found = rules_of_.find(item.text);
    if (found == rules_of_.end())
      GbnfParser::fail(item.line, fmt::format("there is no rule '{}'", item.text.substr(0, 60)));
    rules_.call(from, found->second, to);
  }

  Rules& rules_;
  std::unordered_map<std::string, RuleId> rules_of_;
};

}  // namespace

RuleId add_gbnf(Rules& rules, std::string_view text) {
  return GbnfWriter(rules).write(GbnfParser(text).parse());
}

}  // namespace caldera::grammar
