#include "lm/generate/grammar/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "engine/base/error.h"
#include "lm/base/unicode/utf8.h"

namespace caldera::grammar {
namespace {

constexpr char32_t kLastPatternCode = 0x10FFFF;
constexpr std::size_t kMostRepeats = 2000;
constexpr std::size_t kMostPatternPlaces = 50000;
constexpr int kMostPatternDepth = 60;
constexpr std::size_t kNoEnd = std::numeric_limits<std::size_t>::max();

using Ranges = std::vector<CodeRange>;

/// A parsed expression.
struct Node {
  enum class Kind : std::uint8_t { set, sequence, choice, repeat } kind = Kind::sequence;
  Ranges ranges;
  std::vector<Node> parts;
  std::size_t least = 0;
  std::size_t most = 0;
};

Ranges sorted(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(), [](CodeRange a, CodeRange b) { return a.low < b.low; });
  Ranges result;
  for (const CodeRange range : ranges) {
    if (!result.empty() && range.low <= result.back().high + 1)
      result.back().high = std::max(result.back().high, range.high);
    else
      result.push_back(range);
  }
  return result;
}

}  // namespace

std::vector<CodeRange> opposite_ranges(const std::vector<CodeRange>& ranges, char32_t last) {
  Ranges result;
  char32_t low = 0;
  for (const CodeRange range : sorted(ranges)) {
    if (range.low > last) break;
    if (low < range.low) result.push_back({low, range.low - 1});
    low = range.high + 1;
  }
  if (low <= last) result.push_back({low, last});
  return result;
}

namespace {

const Ranges kDigits{{'0', '9'}};
const Ranges kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpace{{'\t', '\r'}, {' ', ' '}};
// Line ends, of JavaScript's: what "." leaves out.
const Ranges kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

class Parser {
 public:
  Parser(std::string_view text, const std::string& where, bool whole) : whole_(whole), where_(where) {
    while (!text.empty()) {
      const detail::Character c = detail::first_character(text);
      codes_.push_back(c.value);
      text.remove_prefix(c.bytes);
    }
  }

  Node parse() {
    Node node = alternatives(0);
    if (!at_end()) fail("has a ')' without a '('");
    return node;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw ValueError(fmt::format("{}: the pattern {} (at character {})", where_, problem, at_));
  }
  bool at_end() const { return at_ == codes_.size(); }
  bool at(char32_t code) const { return !at_end() && codes_[at_] == code; }
  bool take(char32_t code) {
    if (!at(code)) return false;
    ++at_;
    return true;
  }
  char32_t next() {
    if (at_end()) fail("ends too early");
    return codes_[at_++];
  }

  Node alternatives(int depth) {
    if (depth > kMostPatternDepth) fail("nests too deep");
    Node choice{Node::Kind::choice, {}, {}, 0, 0};
    do choice.parts.push_back(sequence(depth));
    while (take('|'));
    return choice;
  }

  Node sequence(int depth) {
    Node result;
    const Node anything{
        Node::Kind::repeat, {}, {{Node::Kind::set, {{0, kLastPatternCode}}, {}, 0, 0}}, 0, kNoEnd};
    if (depth == 0 && !take('^') && !whole_) result.parts.push_back(anything);
    bool open = depth == 0 && !whole_;
    while (!at_end() && !at('|') && !at(')')) {
      if (depth == 0 && at('$') && (at_ + 1 == codes_.size() || codes_[at_ + 1] == '|')) {
        ++at_;
        open = false;
        break;
      }
      result.parts.push_back(repeated(depth));
    }
    if (open) result.parts.push_back(anything);
    return result;
  }

  Node repeated(int depth) {
    Node node = atom(depth);
    for (;;) {
      std::size_t least = 0;
      std::size_t most = kNoEnd;
      if (take('*')) {
      } else if (take('+')) {
        least = 1;
      } else if (take('?')) {
        most = 1;
      } else if (at('{')) {
        ++at_;
        least = number();
        most = least;
        if (take(',')) most = at('}') ? kNoEnd : number();
        if (!take('}')) fail("has a '{' that is no repetition");
        if (most < least) fail("has a repetition whose bounds are out of order");
      } else {
        return node;
      }
      take('?');  // as few as possible: the same texts
      if (at('+')) fail("has a possessive repetition, which is not supported");
      Node repeat{Node::Kind::repeat, {}, {}, least, most};
      repeat.parts.push_back(std::move(node));
      node = std::move(repeat);
    }
  }

  std::size_t number() {
    std::size_t value = 0;
    const std::size_t begin = at_;
    while (!at_end() && codes_[at_] >= '0' && codes_[at_] <= '9') {
      value = value * 10 + (codes_[at_++] - '0');
      if (value > kMostRepeats) fail(fmt::format("repeats more than {} times", kMostRepeats));
    }
    if (at_ == begin) fail("has a '{' that is no repetition");
    return value;
  }

  Node atom(int depth) {
    const char32_t code = next();
    switch (code) {
      case '(':
        return group(depth);
      case '[':
        return {Node::Kind::set, char_class(), {}, 0, 0};
      case '.':
        return {Node::Kind::set, opposite_ranges(kLineEnds, kLastPatternCode), {}, 0, 0};
      case '\\': {
        bool is_class = false;
        return {Node::Kind::set, escape(is_class), {}, 0, 0};
      }
      case '^':
      case '$':
        fail("has an anchor within, which is not supported");
      case '*':
      case '+':
      case '?':
        fail("has a repetition of nothing");
      case '{':
        fail("has a '{' that is no repetition");
      default:
        return {Node::Kind::set, {{code, code}}, {}, 0, 0};
    }
  }

  Node group(int depth) {
    if (take('?')) {
      if (take(':')) {
      } else if (at('<') && at_ + 1 < codes_.size() && codes_[at_ + 1] != '=' && codes_[at_ + 1] != '!') {
        while (next() != '>') {
        }
      } else {
        fail("has a look-around or a flag, which is not supported");
      }
    }
    Node node = alternatives(depth + 1);
    if (!take(')')) fail("has a '(' without a ')'");
    return node;
  }

  Ranges escape(bool& is_class) {
    const char32_t code = next();
    is_class = true;
    switch (code) {
      case 'd':
        return kDigits;
      case 'w':
        return kWord;
      case 's':
        return kSpace;
      // Of what is not ASCII, engines disagree which characters are digits, letters or blanks.
      case 'D':
        return opposite_ranges(kDigits, 0x7F);
      case 'W':
        return opposite_ranges(kWord, 0x7F);
      case 'S':
        return opposite_ranges(kSpace, 0x7F);
      default:
        break;
    }
    is_class = false;
    switch (code) {
      case 'n':
        return {{'\n', '\n'}};
      case 'r':
        return {{'\r', '\r'}};
      case 't':
        return {{'\t', '\t'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      case 'x':
        return single(hex(2));
      case 'u':
        return single(hex(4));
      default:
        break;
    }
    const bool letter = (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
    if (letter || (code >= '0' && code <= '9'))
      fail(fmt::format("has the escape \\{}, which is not supported", static_cast<char>(code)));
    return single(code);
  }

  static Ranges single(char32_t code) { return {{code, code}}; }

  char32_t hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char32_t c = next();
      if (c >= '0' && c <= '9')
        value = value * 16 + (c - '0');
      else if (c >= 'a' && c <= 'f')
        value = value * 16 + (c - 'a' + 10);
      else if (c >= 'A' && c <= 'F')
        value = value * 16 + (c - 'A' + 10);
      else
        fail("has a malformed escape");
    }
    return value;
  }

  Ranges char_class() {
    const bool negated = take('^');
    Ranges ranges;
    bool has_class = false;
    while (!take(']')) {
      bool is_class = false;
      Ranges low = class_part(is_class);
      has_class = has_class || is_class;
      if (!is_class && at('-') && at_ + 1 < codes_.size() && codes_[at_ + 1] != ']') {
        ++at_;
        const Ranges high = class_part(is_class);
        if (is_class) fail("has a range that ends in a class");
        if (high.front().low < low.front().low) fail("has a range out of order");
        low.front().high = high.front().low;
      }
      ranges.insert(ranges.end(), low.begin(), low.end());
    }
    if (!negated) return sorted(ranges);
    return opposite_ranges(ranges, has_class ? 0x7F : kLastPatternCode);
  }

  Ranges class_part(bool& is_class) {
    is_class = false;
    const char32_t code = next();
    if (code != '\\') return single(code);
    if (at('b')) fail("has the escape \\b, which is not supported");
    return escape(is_class);
  }

  std::vector<char32_t> codes_;
  std::size_t at_ = 0;
  bool whole_;  // no more than the expression is there
  const std::string& where_;
};

/// Thompson's construction.
class Builder {
 public:
  explicit Builder(const std::string& where) : where_(where) {}

  CharacterAutomaton build(const Node& node) {
    const std::size_t end = add(node, place());
    automaton_.places[end].accepts = true;
    return std::move(automaton_);
  }

 private:
  std::size_t place() {
    if (automaton_.places.size() >= kMostPatternPlaces)
      throw ValueError(fmt::format("{}: the pattern is too large", where_));
    automaton_.places.emplace_back();
    return automaton_.places.size() - 1;
  }
  void skip(std::size_t from, std::size_t to) { automaton_.places[from].skips.push_back(to); }

  std::size_t add(const Node& node, std::size_t from) {
    switch (node.kind) {
      case Node::Kind::set: {
        const std::size_t to = place();
        automaton_.places[from].edges.push_back({node.ranges, to});
        return to;
      }
      case Node::Kind::sequence:
        for (const Node& part : node.parts) from = add(part, from);
        return from;
      case Node::Kind::choice: {
        const std::size_t to = place();
        for (const Node& part : node.parts) {
          const std::size_t begin = place();
          skip(from, begin);
          skip(add(part, begin), to);
        }
        return to;
      }
      case Node::Kind::repeat:
        break;
    }
    for (std::size_t i = 0; i < node.least; ++i) from = add(node.parts.front(), from);
    const std::size_t to = place();
    if (node.most == kNoEnd) {
      const std::size_t loop = place();
      skip(from, loop);
      skip(add(node.parts.front(), loop), loop);
      skip(loop, to);
      return to;
    }
    skip(from, to);
    for (std::size_t i = node.least; i < node.most; ++i) {
      from = add(node.parts.front(), from);
      skip(from, to);
    }
    return to;
  }

  const std::string& where_;
  CharacterAutomaton automaton_;
};

}  // namespace

CharacterAutomaton read_pattern(std::string_view pattern, const std::string& where, bool whole) {
  return Builder(where).build(Parser(pattern, where, whole).parse());
}

}  // namespace caldera::grammar
