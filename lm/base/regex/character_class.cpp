#include "lm/base/regex/character_class.h"

#include <fmt/format.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "lm/base/unicode/characters.h"

namespace caldera::detail {
namespace {

/// Deepest nesting of classes.
constexpr int kMaxClassDepth = 32;

/// A set of characters: what stands between brackets in PCRE2, or an expression that matches one of them.
struct Set {
  std::string items;       ///< of a class in PCRE2
  bool negated = false;    ///< all but the items
  std::string expression;  ///< where it is not empty: this instead, which is not negated
};

std::string to_expression(const Set& set) {
  if (!set.expression.empty()) return set.expression;
  if (set.items.empty()) return set.negated ? "(?s:.)" : "(?!)";
  // A property that stands alone is quicker than a class that holds it.
  const bool property = set.items.starts_with("\\p{") && set.items.find('}') + 1 == set.items.size();
  if (property) return (set.negated ? "\\P" : "\\p") + set.items.substr(2);
  return (set.negated ? "[^" : "[") + set.items + "]";
}

Set complement(Set set) {
  if (set.expression.empty()) {
    set.negated = !set.negated;
    return set;
  }
  return {"", false, "(?:(?!" + set.expression + ")(?s:.))"};
}

Set unite(const Set& a, const Set& b) {
  const auto plain = [](const Set& s) { return s.expression.empty() && !s.negated; };
  if (plain(a) && plain(b)) return {a.items + b.items, false, ""};
  if (plain(a) && a.items.empty()) return b;
  if (plain(b) && b.items.empty()) return a;
  return {"", false, "(?:" + to_expression(a) + "|" + to_expression(b) + ")"};
}

Set intersect(const Set& a, const Set& b) {
  return {"", false, "(?:(?=" + to_expression(a) + ")" + to_expression(b) + ")"};
}

std::string quote(char32_t c) {
  if (c < 0x80 && ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))) {
    return std::string(1, static_cast<char>(c));
  }
  return fmt::format("\\x{{{:x}}}", static_cast<std::uint32_t>(c));
}

/// The classes that POSIX names, which are also names of properties: items of a class in PCRE2.
std::optional<std::string> posix_class(std::string_view name) {
  struct Entry {
    std::string_view name;
    std::string_view items;
  };
  static constexpr Entry kEntries[] = {{"alnum", R"(\p{Alphabetic}\p{Nd})"},
                                       {"alpha", R"(\p{Alphabetic})"},
                                       {"ascii", R"(\x00-\x7f)"},
                                       {"blank", R"(\p{Zs}\t)"},
                                       {"cntrl", R"(\p{Cc})"},
                                       {"digit", R"(\p{Nd})"},
                                       {"graph", R"([:graph:])"},
                                       {"lower", R"(\p{Lowercase})"},
                                       {"print", R"([:print:])"},
                                       {"punct", R"(\p{P}$+<=>^`|~)"},
                                       {"space", R"(\p{White_Space})"},
                                       {"upper", R"(\p{Uppercase})"},
                                       {"word", R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})"},
                                       {"xdigit", R"(0-9A-Fa-f)"}};
  std::string lower;
  for (const char c : name) append_lower_case(lower, static_cast<unsigned char>(c));
  const auto* found = std::ranges::find(kEntries, lower, &Entry::name);
  return found == std::end(kEntries) ? std::nullopt : std::optional(std::string(found->items));
}

/// A general category or a script, by any of its names, as an item for PCRE2.
std::optional<std::string> category_item(const std::string& name) {
  const auto value = u_getPropertyValueEnum(UCHAR_GENERAL_CATEGORY_MASK, name.c_str());
  if (value == UCHAR_INVALID_CODE) return std::nullopt;
  const char* text = u_getPropertyValueName(UCHAR_GENERAL_CATEGORY_MASK, value, U_SHORT_PROPERTY_NAME);
  if (text == nullptr) return std::nullopt;
  return fmt::format("\\p{{{}}}", std::string_view(text) == "LC" ? "L&" : text);
}

std::optional<std::string> script_item(const std::string& name, std::string_view property) {
  const auto value = u_getPropertyValueEnum(UCHAR_SCRIPT, name.c_str());
  if (value == UCHAR_INVALID_CODE) return std::nullopt;
  const char* text = u_getPropertyValueName(UCHAR_SCRIPT, value, U_LONG_PROPERTY_NAME);
  return text == nullptr ? std::nullopt : std::optional(fmt::format("\\p{{{}:{}}}", property, text));
}

/// The property between the braces of \p{...}.
Set property(std::string_view braced, bool negated) {
  if (braced.starts_with('^')) {
    negated = !negated;
    braced.remove_prefix(1);
  }
  const std::string name(braced);
  std::optional<std::string> items;
  if (const auto equals = name.find_first_of("=:"); equals != std::string::npos) {
    const std::string value = name.substr(equals + 1);
    switch (u_getPropertyEnum(name.substr(0, equals).c_str())) {
      case UCHAR_GENERAL_CATEGORY:
        items = category_item(value);
        break;
      case UCHAR_SCRIPT:
        items = script_item(value, "sc");
        break;
      case UCHAR_SCRIPT_EXTENSIONS:
        items = script_item(value, "scx");
        break;
      default:
        break;
    }
  } else if (name == "Any" || name == "any") {
    items = R"(\x00-\x{10ffff})";
  } else if (name == "Assigned") {
    items = R"(\P{Cn})";
  } else if (!(items = posix_class(name)) && !(items = category_item(name)) &&
             !(items = script_item(name, "sc"))) {
    const auto binary = u_getPropertyEnum(name.c_str());
    const char* text = binary >= UCHAR_BINARY_START && binary < UCHAR_BINARY_LIMIT
                           ? u_getPropertyName(binary, U_LONG_PROPERTY_NAME)
                           : nullptr;
    if (text != nullptr) items = fmt::format("\\p{{{}}}", text);
  }
  if (!items) throw ExpressionProblem{fmt::format("uses the property '{}', which is not known", name)};
  return {std::move(*items), negated, ""};
}

/// A character by its number: \xHH, \x{H...}, \uHHHH, \ooo.
char32_t by_number(ExpressionReader& in, char kind) {
  std::string digits;
  int base = 16;
  if (kind == 'x' && in.starts_with("{")) {
    in.take();
    digits = std::string(in.take_until("}"));
  } else {
    const std::size_t most = kind == 'x' ? 2 : kind == 'u' ? 4 : 3;
    if (kind == '0') base = 8;
    while (digits.size() < most && !in.done() && std::isxdigit(static_cast<unsigned char>(in.peek())) != 0) {
      if (base == 8 && in.peek() > '7') break;
      digits += in.take();
    }
  }
  if (kind == '0' && digits.empty()) return 0;
  const bool valid = !digits.empty() && digits.size() <= 8 &&
                     std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c) != 0; });
  const auto value = valid ? std::stoul(digits, nullptr, base) : 0x110000UL;
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
    throw ExpressionProblem{"names a character by a number that is none"};
  }
  return static_cast<char32_t>(value);
}

/// What an escape stands for: a set, or one character, which may begin a range.
struct Escape {
  Set set;
  std::optional<char32_t> character;
};

Escape character(char32_t c) { return {{quote(c), false, ""}, c}; }

Escape read_escape(ExpressionReader& in, bool in_class) {
  in.take();
  if (in.done()) throw ExpressionProblem{"ends with a backslash"};
  const auto text = in.take_character();
  const auto set = [](std::string_view items, bool negated) {
    return Escape{{std::string(items), negated, ""}, std::nullopt};
  };
  if (text.size() > 1) return character(first_character(text).value);
  const char c = text.front();
  switch (c) {
    case 'p':
    case 'P':
      if (!in.starts_with("{")) {
        return {property(std::string_view(in.take_character()), c == 'P'), std::nullopt};
      }
      in.take();
      return {property(in.take_until("}"), c == 'P'), std::nullopt};
    case 's':
    case 'S':
      return set(R"(\p{White_Space})", c == 'S');
    case 'd':
    case 'D':
      return set(R"(\p{Nd})", c == 'D');
    case 'w':
    case 'W':
      return set(R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})", c == 'W');
    case 'h':
    case 'H':
      return set("0-9A-Fa-f", c == 'H');
    case 'x':
    case 'u':
      return character(by_number(in, c));
    case '0':
      return character(by_number(in, '0'));
    case 'n':
      return character('\n');
    case 'r':
      return character('\r');
    case 't':
      return character('\t');
    case 'f':
      return character('\f');
    case 'v':
      return character('\v');
    case 'a':
      return character('\a');
    case 'e':
      return character(0x1B);
    case 'b':
      if (in_class) return character('\b');
      return character('b');
    case 'c':
    case 'C':
    case 'M':
      throw ExpressionProblem{fmt::format("uses \\{}, which is not supported", c)};
    default:
      return character(static_cast<unsigned char>(c));
  }
}

Set read_class(ExpressionReader& in, int depth);

/// An element of a class that is no range: a set, or a character that may begin one.
Escape read_element(ExpressionReader& in, int depth) {
  if (in.starts_with("[:")) {
    const auto start = in.position();
    in.seek(start + 2);
    const bool negated = in.starts_with("^");
    if (negated) in.take();
    std::string name;
    while (!in.done() && in.peek() >= 'a' && in.peek() <= 'z') name += in.take();
    const auto items = posix_class(name);
    if (items && in.starts_with(":]")) {
      in.seek(in.position() + 2);
      return {{*items, negated, ""}, std::nullopt};
    }
    in.seek(start);
  }
  if (in.peek() == '[') return {read_class(in, depth + 1), std::nullopt};
  if (in.peek() == '\\') return read_escape(in, true);
  return character(first_character(in.take_character()).value);
}

/// Reads from '[' to its ']'.
Set read_class(ExpressionReader& in, int depth) {
  if (depth > kMaxClassDepth) throw ExpressionProblem{"nests character classes too deep"};
  in.take();
  const bool negated = in.starts_with("^");
  if (negated) in.take();
  Set set;
  std::optional<Set> left;  // of an intersection
  for (bool first = true;; first = false) {
    if (in.done()) throw ExpressionProblem{"has a character class without its ']'"};
    if (in.peek() == ']' && !first) break;
    if (in.starts_with("&&")) {
      in.seek(in.position() + 2);
      left = left ? intersect(*left, set) : set;
      set = {};
      continue;
    }
    Escape element = read_element(in, depth);
    if (element.character && in.starts_with("-") && !in.starts_with("-]")) {
      const auto dash = in.position();
      in.take();
      // A dash before a set is a dash.
      const auto high = in.done() || in.peek() == '[' ? Escape{} : read_element(in, depth);
      if (!high.character) {
        in.seek(dash);
      } else if (*high.character < *element.character) {
        throw ExpressionProblem{"has a range that ends before it begins"};
      } else {
        element.set.items += "-" + quote(*high.character);
      }
    }
    set = unite(set, element.set);
  }
  in.take();
  if (left) set = intersect(*left, set);
  return negated ? complement(std::move(set)) : set;
}

}  // namespace

std::string translate_class(ExpressionReader& in) { return to_expression(read_class(in, 0)); }

std::string translate_class_escape(ExpressionReader& in) {
  const Escape escape = read_escape(in, false);
  return escape.character ? escape.set.items : to_expression(escape.set);
}

}  // namespace caldera::detail
