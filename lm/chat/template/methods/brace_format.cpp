#include "lm/chat/template/methods/brace_format.h"

#include <algorithm>

#include "lm/chat/template/base/number_text.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/format_spec.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {
namespace {

constexpr int kDeepest = 2;  // a specification may have fields, and they none

class BraceFormat {
 public:
  BraceFormat(const Arguments& arguments, const FieldLookup& lookup)
      : arguments_(arguments), lookup_(lookup) {}

  void add(TextBuilder& out, std::string_view format, int level) {
    if (level >= kDeepest + 1) fail("Max string recursion exceeded");
    while (!format.empty()) {
      const std::size_t brace = std::min(format.find_first_of("{}"), format.size());
      out.add(format.substr(0, brace));
      format.remove_prefix(brace);
      if (format.empty()) return;
      if (format.size() > 1 && format[0] == format[1]) {
        out.add(format[0]);
        format.remove_prefix(2);
      } else if (format[0] == '}') {
        fail("Single '}}' encountered in format string");
      } else {
        format.remove_prefix(1);
        add_field(out, field_text(format), level);
      }
    }
  }

 private:
  /// The text up to the brace that closes the field; goes on behind it.
  static std::string_view field_text(std::string_view& format) {
    std::size_t depth = 1;
    bool in_brackets = false;
    for (std::size_t i = 0; i < format.size(); ++i) {
      const char c = format[i];
      if (c == '[') in_brackets = true;
      if (c == ']') in_brackets = false;
      if (!in_brackets && c == '{') ++depth;
      if (!in_brackets && c == '}' && --depth == 0) {
        const std::string_view field = format.substr(0, i);
        format.remove_prefix(i + 1);
        return field;
      }
    }
    fail("expected '}}' before end of string");
  }

  void add_field(TextBuilder& out, std::string_view field, int level) {
    std::size_t end = 0;
    for (bool in_brackets = false; end < field.size(); ++end) {
      if (field[end] == '[') in_brackets = true;
      if (field[end] == ']') in_brackets = false;
      if (!in_brackets && (field[end] == '!' || field[end] == ':')) break;
      if (field[end] == '{') fail("unexpected '{{' in field name");
    }
    Value value = look_up(field.substr(0, end));
    std::string_view rest = field.substr(end);
    if (rest.starts_with('!')) {
      if (rest.size() < 2) fail("unmatched '{{' in format spec");
      value = converted(value, rest[1]);
      rest.remove_prefix(2);
      if (!rest.empty() && rest[0] != ':') fail("expected ':' after conversion specifier");
    }
    if (rest.starts_with(':')) rest.remove_prefix(1);
    TextBuilder spec;
    add(spec, rest, level + 1);
    if (value.is_text() && spec.bytes().empty()) return out.add(value.text());
    out.add(format_value(value, spec.bytes()));
  }

  static Value converted(const Value& value, char conversion) {
    switch (conversion) {
      case 's':
        return text_of(value);
      case 'r':
        return repr_of(value);
      case 'a': {
        TextBuilder out;
        if (!value.is_text()) return repr_of(value);
        add_text_repr(out, value.bytes(), true);
        return out.finish();
      }
      default:
        fail("Unknown conversion specifier {}", conversion);
    }
  }

  Value look_up(std::string_view path) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = first(path.substr(0, end));
    path.remove_prefix(end);
    while (!path.empty()) {
      if (path[0] == '.') {
        path.remove_prefix(1);
        const std::size_t next = std::min(path.find_first_of(".["), path.size());
        if (next == 0) fail("Empty attribute in format string");
        value = lookup_.attribute(value, std::string(path.substr(0, next)));
        path.remove_prefix(next);
      } else if (path[0] == '[') {
        const std::size_t close = path.find(']');
        if (close == std::string_view::npos) fail("Missing ']' in format string");
        const std::string_view key = path.substr(1, close - 1);
        if (key.empty()) fail("Empty attribute in format string");
        value = lookup_.item(value, is_number(key) ? Value(parse_integer(key, 10).value_or(0)) : Value(key));
        path.remove_prefix(close + 1);
      } else {
        fail("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  static bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  }

  Value first(std::string_view name) {
    if (name.empty() || is_number(name)) {
      const bool automatic = name.empty();
      if (numbered_ != Numbering::none && (numbered_ == Numbering::automatic) != automatic) {
        fail("cannot switch between manual field specification and automatic field numbering");
      }
      numbered_ = automatic ? Numbering::automatic : Numbering::manual;
      const std::size_t i =
          automatic ? next_++ : static_cast<std::size_t>(parse_integer(name, 10).value_or(0));
      if (i >= arguments_.positional.size()) {
        fail("Replacement index {} out of range for positional args tuple", i);
      }
      return arguments_.positional[i];
    }
    for (const auto& [key, value] : arguments_.named) {
      step();
      if (key == name) return value;
    }
    fail("no argument named '{}' for the format", name);
  }

  enum class Numbering : std::uint8_t { none, automatic, manual };

  const Arguments& arguments_;
  const FieldLookup& lookup_;
  std::size_t next_ = 0;
  Numbering numbered_ = Numbering::none;
};

}  // namespace

Value brace_format(std::string_view format, const Arguments& arguments, const FieldLookup& lookup) {
  TextBuilder out;
  BraceFormat(arguments, lookup).add(out, format, 0);
  return out.finish();
}

}  // namespace caldera::chat
