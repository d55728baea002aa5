#include "lm/generate/grammar/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lm/base/unicode/utf8.h"

namespace caldera::grammar {
namespace {

constexpr char32_t kLastTextCode = 0x10FFFF;
constexpr int kMostIndent = 24;
// So that numbers fit the integers and doubles of those who read them.
constexpr int kMostDigits = 17;

std::string utf8(char32_t code) {
  std::string text;
  detail::append_character(text, code);
  return text;
}

// The bytes between those of two code points of equal length, from byte `at` on.
void add_between(Rules& rules, StateId from, const std::string& low, const std::string& high, std::size_t at,
                 StateId to) {
  const auto l = static_cast<std::uint8_t>(low[at]);
  const auto h = static_cast<std::uint8_t>(high[at]);
  if (at + 1 == low.size()) {
    rules.bytes(from, l, h, to);
    return;
  }
  const std::size_t rest = low.size() - at - 1;
  const std::string least = low.substr(0, at + 1) + std::string(rest, '\x80');
  const std::string most = low.substr(0, at + 1) + std::string(rest, '\xBF');
  if (l == h) {
    add_between(rules, rules.bytes(from, l, l), low, high, at + 1, to);
    return;
  }
  int first = l;
  int last = h;
  if (low != least) {
    add_between(rules, rules.bytes(from, l, l), low, most, at + 1, to);
    ++first;
  }
  if (high.substr(at + 1) != std::string(rest, '\xBF')) {
    add_between(rules, rules.bytes(from, h, h), least, high, at + 1, to);
    --last;
  }
  if (first > last) return;
  const StateId next = rules.bytes(from, static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last));
  add_between(rules, next, least, most, at + 1, to);
}

// How a character is written that cannot stand in a string as it is; empty for one that can.
std::string escaped(char32_t code) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return code < 0x20 ? fmt::format("\\u{:04x}", static_cast<unsigned>(code)) : "";
  }
}

void add_hex(Rules& rules, StateId from, StateId to) {
  rules.bytes(from, '0', '9', to);
  rules.bytes(from, 'a', 'f', to);
  rules.bytes(from, 'A', 'F', to);
}

}  // namespace

void add_utf8(Rules& rules, StateId from, CodeRange range, StateId to) {
  struct Piece {
    char32_t low, high;
  };
  // Code points of one length each, without the surrogates.
  constexpr std::array<Piece, 5> kPieces{
      {{0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, kLastTextCode}}};
  for (const Piece& piece : kPieces) {
    const char32_t low = std::max(range.low, piece.low);
    const char32_t high = std::min(range.high, piece.high);
    if (low <= high) add_between(rules, from, utf8(low), utf8(high), 0, to);
  }
}

RuleId JsonText::make(std::optional<RuleId>& rule) {
  rule = rules_.add_rule();
  return *rule;
}

StateId JsonText::blanks(StateId from) {
  if (!blanks_) {
    StateId state = rules_.begin(make(blanks_));
    rules_.accept(state);
    rules_.accept(rules_.bytes(state, ' ', ' '));
    state = rules_.bytes(state, '\n', '\n');
    rules_.accept(state);
    for (int i = 0; i < kMostIndent; ++i) {
      state = rules_.bytes(state, ' ', ' ');
      rules_.accept(state);
    }
  }
  return rules_.call(from, *blanks_);
}

RuleId JsonText::character() {
  if (character_) return *character_;
  const StateId from = rules_.begin(make(character_));
  const StateId to = rules_.add_state();
  rules_.accept(to);
  for (const CodeRange range : {CodeRange{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, kLastTextCode}})
    add_utf8(rules_, from, range, to);
  const StateId escape = rules_.bytes(from, '\\', '\\');
  for (const char c : std::string_view("\"\\/bfnrt"))
    rules_.bytes(escape, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(c), to);
  // \uXXXX: not a surrogate, or a pair of them.
  const StateId u = rules_.bytes(escape, 'u', 'u');
  const StateId three = rules_.add_state();
  const StateId two = rules_.add_state();
  const StateId one = rules_.add_state();
  rules_.bytes(u, '0', '9', three);
  for (const char c : std::string_view("abcefABCEF"))
    rules_.bytes(u, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(c), three);
  add_hex(rules_, three, two);
  add_hex(rules_, two, one);
  add_hex(rules_, one, to);
  const StateId d = rules_.bytes(u, 'd', 'd');
  rules_.bytes(u, 'D', 'D', d);
  rules_.bytes(d, '0', '7', two);
  const StateId high = rules_.add_state();  // the first of a pair
  rules_.bytes(d, '8', '9', high);
  rules_.bytes(d, 'a', 'b', high);
  rules_.bytes(d, 'A', 'B', high);
  const StateId high_one = rules_.add_state();
  const StateId high_end = rules_.add_state();
  add_hex(rules_, high, high_one);
  add_hex(rules_, high_one, high_end);
  const StateId low_u = rules_.text(high_end, "\\u");
  const StateId low_d = rules_.bytes(low_u, 'd', 'd');
  rules_.bytes(low_u, 'D', 'D', low_d);
  rules_.bytes(low_d, 'c', 'f', two);
  rules_.bytes(low_d, 'C', 'F', two);
  return *character_;
}

RuleId JsonText::string() {
  if (string_) return *string_;
  const StateId from = rules_.begin(make(string_));
  const StateId within = rules_.text(from, "\"");
  rules_.call(within, character(), within);
  rules_.accept(rules_.text(within, "\""));
  return *string_;
}

StateId JsonText::characters(StateId from, const std::vector<CodeRange>& ranges, StateId to) {
  if (to == kNone) to = rules_.add_state();
  for (CodeRange range : ranges) {
    // What must be escaped is below 0x20 and two more.
    for (char32_t code = range.low; code <= std::min<char32_t>(range.high, '\\'); ++code) {
      const std::string text = escaped(code);
      if (!text.empty()) rules_.text(from, text, to);
    }
    for (const CodeRange plain : {CodeRange{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, kLastTextCode}}) {
      const CodeRange part{std::max(range.low, plain.low), std::min(range.high, plain.high)};
      if (part.low <= part.high) add_utf8(rules_, from, part, to);
    }
  }
  return to;
}

RuleId JsonText::other_key(const std::vector<std::string>& names) {
  const RuleId rule = rules_.add_rule();
  const StateId begin = rules_.text(rules_.begin(rule), "\"");
  // Names that need escapes cannot be met: a key here has none.
  std::vector<std::string> sorted;
  for (const std::string& name : names) {
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
    });
    if (plain) sorted.push_back(name);
  }
  std::sort(sorted.begin(), sorted.end());
  const StateId any = rules_.add_state();  // it differs from all names
  const StateId end = rules_.text(any, "\"");
  rules_.accept(end);
  constexpr std::array<CodeRange, 3> kPlain{
      {{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, kLastTextCode}}};
  for (const CodeRange range : kPlain) add_utf8(rules_, any, range, any);

  // Follows the names by characters; a character that no name goes on with leads to `any`.
  struct Branch {
    StateId state;
    std::size_t first, last;  // names with this beginning
    std::size_t at;
  };
  std::vector<Branch> open{{begin, 0, sorted.size(), 0}};
  while (!open.empty()) {
    const Branch branch = open.back();
    open.pop_back();
    std::size_t i = branch.first;
    bool is_name = false;
    for (; i < branch.last && sorted[i].size() == branch.at; ++i) is_name = true;
    if (!is_name) rules_.text(branch.state, "\"", end);
    std::vector<char32_t> taken;
    while (i < branch.last) {
      const detail::Character c = detail::first_character(std::string_view(sorted[i]).substr(branch.at));
      std::size_t last = i;
      while (last < branch.last &&
             sorted[last].compare(branch.at, c.bytes, sorted[i], branch.at, c.bytes) == 0)
        ++last;
      const StateId next = rules_.add_state();
      add_utf8(rules_, branch.state, {c.value, c.value}, next);
      open.push_back({next, i, last, branch.at + c.bytes});
      taken.push_back(c.value);
      i = last;
    }
    std::sort(taken.begin(), taken.end());
    for (const CodeRange range : kPlain) {
      char32_t low = range.low;
      for (const char32_t code : taken) {
        if (code < low || code > range.high) continue;
        if (low < code) add_utf8(rules_, branch.state, {low, code - 1}, any);
        low = code + 1;
      }
      if (low <= range.high) add_utf8(rules_, branch.state, {low, range.high}, any);
    }
  }
  return rule;
}

void JsonText::add_number(StateId from, bool fraction, StateId to) {
  const StateId sign = rules_.bytes(from, '-', '-');
  const StateId whole = rules_.add_state();  // behind the whole part
  for (const StateId begin : {from, sign}) rules_.bytes(begin, '0', '0', whole);
  StateId digits = rules_.bytes(from, '1', '9');
  rules_.bytes(sign, '1', '9', digits);
  for (int i = 1; i < kMostDigits; ++i) {
    rules_.skip(digits, whole);
    digits = rules_.bytes(digits, '0', '9');
  }
  rules_.skip(digits, whole);
  rules_.skip(whole, to);
  if (!fraction) return;
  const StateId exponent = rules_.add_state();
  StateId decimals = rules_.text(whole, ".");
  for (int i = 0; i < kMostDigits; ++i) {
    decimals = rules_.bytes(decimals, '0', '9');
    rules_.skip(decimals, to);
    rules_.skip(decimals, exponent);
  }
  rules_.skip(whole, exponent);
  const StateId e = rules_.bytes(exponent, 'e', 'e');
  rules_.bytes(exponent, 'E', 'E', e);
  const StateId signed_e = rules_.bytes(e, '+', '+');
  rules_.bytes(e, '-', '-', signed_e);
  rules_.skip(e, signed_e);
  const StateId two = rules_.bytes(signed_e, '0', '9');
  rules_.skip(two, to);
  rules_.bytes(two, '0', '9', to);
}

RuleId JsonText::number() {
  if (number_) return *number_;
  const StateId from = rules_.begin(make(number_));
  const StateId to = rules_.add_state();
  rules_.accept(to);
  add_number(from, true, to);
  return *number_;
}

RuleId JsonText::integer() {
  if (integer_) return *integer_;
  const StateId from = rules_.begin(make(integer_));
  const StateId to = rules_.add_state();
  rules_.accept(to);
  add_number(from, false, to);
  return *integer_;
}

StateId JsonText::separated(StateId from, RuleId item) {
  const StateId inner = blanks(from);
  const StateId after = rules_.call(inner, item);
  rules_.call(blanks(rules_.text(after, ",")), item, after);
  const StateId end = blanks(after);
  rules_.skip(inner, end);
  return end;
}

RuleId JsonText::value() {
  if (value_) return *value_;
  const StateId from = rules_.begin(make(value_));
  const StateId to = rules_.add_state();
  rules_.accept(to);
  for (const std::string_view word : {"null", "true", "false"}) rules_.text(from, word, to);
  for (const RuleId rule : {string(), number(), object(), array()}) rules_.call(from, rule, to);
  return *value_;
}

RuleId JsonText::object() {
  if (object_) return *object_;
  const StateId from = rules_.begin(make(object_));
  rules_.set_nests(*object_);
  const RuleId member = rules_.add_rule();
  const StateId key = rules_.call(rules_.begin(member), string());
  const StateId colon = blanks(rules_.text(key, ":"));
  rules_.accept(rules_.call(colon, value()));
  rules_.accept(rules_.text(separated(rules_.text(from, "{"), member), "}"));
  return *object_;
}

RuleId JsonText::array() {
  if (array_) return *array_;
  const StateId from = rules_.begin(make(array_));
  rules_.set_nests(*array_);
  rules_.accept(rules_.text(separated(rules_.text(from, "["), value()), "]"));
  return *array_;
}

}  // namespace caldera::grammar
