#include "lm/chat/template/methods/text_methods.h"

#include <algorithm>
#include <unordered_map>

#include "lm/chat/template/base/needle.h"
#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/methods/text_search.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/iteration.h"
#include "lm/chat/template/value/operators.h"

namespace caldera::chat {
namespace {

template <std::string (*Map)(std::string_view)>
Value mapped_method(const Value& self, Arguments& arguments) {
  const Parameters none("method", arguments, {});
  step(self.bytes().size() / 16);
  return Map(self.bytes());
}

template <Ends Which>
Value strip_method(const Value& self, Arguments& arguments) {
  const Parameters given("strip", arguments, {"chars"});
  return strip(self, given.get(0, Value()), Which);
}

/// Whether all characters are of a kind, and there are any.
template <bool (*Is)(char32_t)>
Value every(const Value& self, Arguments& arguments) {
  const Parameters none("method", arguments, {});
  std::string_view text = self.bytes();
  step(text.size() / 16);
  const bool any = !text.empty();
  while (!text.empty()) {
    const Character c = first_character(text);
    if (!c.valid || !Is(c.value)) return false;
    text.remove_prefix(c.bytes);
  }
  return any;
}

bool is_alphanumeric(char32_t c) { return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric(c); }

Value is_ascii(const Value& self, Arguments& arguments) {
  const Parameters none("isascii", arguments, {});
  return std::all_of(self.bytes().begin(), self.bytes().end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

Value is_printable_text(const Value& self, Arguments& arguments) {
  return self.bytes().empty() ? Value(true) : every<is_printable>(self, arguments);
}

/// Whether there are cased characters and none of the other case.
template <bool (*Is)(char32_t), bool (*IsOther)(char32_t)>
Value cased(const Value& self, Arguments& arguments) {
  const Parameters none("method", arguments, {});
  bool any = false;
  std::string_view text = self.bytes();
  step(text.size() / 16);
  while (!text.empty()) {
    const Character c = first_character(text);
    if (IsOther(c.value) || is_title(c.value)) return false;
    any = any || (c.valid && Is(c.value));
    text.remove_prefix(c.bytes);
  }
  return any;
}

Value is_title_text(const Value& self, Arguments& arguments) {
  const Parameters none("istitle", arguments, {});
  bool any = false;
  bool inside = false;
  std::string_view text = self.bytes();
  step(text.size() / 16);
  while (!text.empty()) {
    const Character c = first_character(text);
    const bool starts = c.valid && (is_upper(c.value) || is_title(c.value));
    const bool goes_on = c.valid && is_lower(c.value);
    if ((starts && inside) || (goes_on && !inside)) return false;
    inside = starts || goes_on;
    any = any || inside;
    text.remove_prefix(c.bytes);
  }
  return any;
}

Value is_identifier(const Value& self, Arguments& arguments) {
  if (self.bytes().empty() || !is_identifier_start(first_character(self.bytes()).value)) return false;
  return every<is_identifier_part>(self, arguments);
}

Value join_method(const Value& self, Arguments& arguments) {
  const Parameters given("join", arguments, {"iterable"}, 1);
  Iteration items(given[0]);
  TextBuilder out;
  Value item;
  for (std::int64_t i = 0; items.next(item); ++i) {
    if (!item.is_text()) fail("sequence item {}: expected str instance, {} found", i, type_name(item));
    if (i > 0) out.add(self.text());
    out.add(item.text());
  }
  return out.finish();
}

Value replace_method(const Value& self, Arguments& arguments) {
  const Parameters given("replace", arguments, {"old", "new", "count"}, 2);
  return replace(self.bytes(), given.text(0, ""), given.text(1, ""), given.integer(2, -1));
}

template <Ends Which>
Value justify(const Value& self, Arguments& arguments) {
  const Parameters given("just", arguments, {"width", "fillchar"}, 1);
  const std::string fill = given.text(1, " ");
  if (code_point_count(fill) != 1) fail("The fill character must be exactly one character long");
  const std::int64_t width = given.integer(0, 0);
  if constexpr (Which == Ends::both) return center(self, width, fill);
  const std::int64_t missing = std::max<std::int64_t>(0, std::max<std::int64_t>(0, width) - length_of(self));
  TextBuilder out;
  if constexpr (Which == Ends::left) out.add(self.text());
  out.repeat(fill, static_cast<std::size_t>(missing));
  if constexpr (Which == Ends::right) out.add(self.text());
  return out.finish();
}

Value zero_fill(const Value& self, Arguments& arguments) {
  const Parameters given("zfill", arguments, {"width"}, 1);
  const std::int64_t missing =
      std::max<std::int64_t>(0, std::max<std::int64_t>(0, given.integer(0, 0)) - length_of(self));
  std::string_view text = self.bytes();
  TextBuilder out;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    out.add(text[0]);
    text.remove_prefix(1);
  }
  out.repeat("0", static_cast<std::size_t>(missing));
  out.add(text);
  return out.finish();
}

template <bool AtEnd>
Value remove_affix(const Value& self, Arguments& arguments) {
  const Parameters given("remove", arguments, {"affix"}, 1);
  const std::string affix = given.text(0, "");
  const std::string_view text = self.bytes();
  if (AtEnd && !affix.empty() && text.ends_with(affix)) return text.substr(0, text.size() - affix.size());
  if (!AtEnd && text.starts_with(affix)) return text.substr(affix.size());
  return self;
}

Value split_lines(const Value& self, Arguments& arguments) {
  const Parameters given("splitlines", arguments, {"keepends"});
  ListBuilder list;
  for (const std::string_view line : lines_of(self.bytes(), given.truth_of(0, false))) list.add(line);
  return list.finish();
}

Value expand_tabs(const Value& self, Arguments& arguments) {
  const Parameters given("expandtabs", arguments, {"tabsize"});
  const std::int64_t size = given.integer(0, 8);
  TextBuilder out;
  std::int64_t column = 0;
  std::string_view text = self.bytes();
  while (!text.empty()) {
    const std::size_t bytes = first_character(text).bytes;
    const char c = text[0];
    if (c == '\t') {
      const std::int64_t spaces = size > 0 ? size - column % size : 0;
      out.repeat(" ", static_cast<std::size_t>(spaces));
      column += spaces;
    } else {
      out.add(text.substr(0, bytes));
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
    text.remove_prefix(bytes);
  }
  return out.finish();
}

}  // namespace

Value strip(const Value& text, const Value& chars, Ends ends) {
  std::string_view rest = text.bytes();
  step(rest.size() / 64);
  if (chars.is_none()) {
    if (ends != Ends::right) rest = strip_left(rest);
    if (ends != Ends::left) rest = strip_right(rest);
  } else {
    if (!chars.is_text()) fail("strip arg must be None or str");
    const std::string_view set = chars.bytes();
    const auto in_set = [&](std::string_view c) {
      step(set.size() / 64);
      return set.find(c) != std::string_view::npos;
    };
    while (ends != Ends::right && !rest.empty() && in_set(rest.substr(0, first_character(rest).bytes))) {
      rest.remove_prefix(first_character(rest).bytes);
    }
    while (ends != Ends::left && !rest.empty() &&
           in_set(rest.substr(rest.size() - last_character(rest).bytes))) {
      rest.remove_suffix(last_character(rest).bytes);
    }
  }
  if (rest.size() == text.bytes().size()) return text;
  std::vector<ByteSpan> spans;
  const auto begin = static_cast<std::size_t>(rest.data() - text.bytes().data());
  for (const ByteSpan& span : text.text().spans) {
    const auto moved = [&](std::size_t at) { return std::clamp(at, begin, begin + rest.size()) - begin; };
    spans.push_back({moved(span.begin), moved(span.end)});
  }
  return make_text(std::string(rest), std::move(spans));
}

Value replace(std::string_view text, std::string_view old, std::string_view with, std::int64_t most) {
  TextBuilder out;
  const Needle needle(old);
  while (most != 0) {
    std::size_t at = needle.find(text);
    if (at == std::string_view::npos) break;
    if (old.empty()) {  // before each character and at the end
      out.add(with);
      if (text.empty()) return out.finish();
      at = first_character(text).bytes;
      out.add(text.substr(0, at));
      text.remove_prefix(at);
    } else {
      out.add(text.substr(0, at));
      out.add(with);
      text.remove_prefix(at + old.size());
    }
    step();
    --most;
  }
  out.add(text);
  return out.finish();
}

Value center(const Value& text, std::int64_t width, std::string_view fill) {
  const std::int64_t missing = std::max<std::int64_t>(0, std::max<std::int64_t>(0, width) - length_of(text));
  // The odd one goes to the left of an odd width, as in Python.
  const std::int64_t left = missing / 2 + (missing & width & 1);
  TextBuilder out;
  out.repeat(fill, static_cast<std::size_t>(left));
  out.add(text.text());
  out.repeat(fill, static_cast<std::size_t>(missing - left));
  return out.finish();
}

ViewList lines_of(std::string_view text, bool keep_ends) {
  const auto ends_line = [](char32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  ViewList lines;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = at;
    std::size_t newline = 0;
    while (end < text.size()) {
      const Character c = first_character(text.substr(end));
      if (c.valid && ends_line(c.value)) {
        newline =
            c.bytes + static_cast<std::size_t>(c.value == '\r' && text.substr(end + 1).starts_with('\n'));
        break;
      }
      end += c.bytes;
    }
    lines.add(text.substr(at, end - at + (keep_ends ? newline : 0)));
    at = end + newline;
  }
  return lines;
}

TextMethod find_text_method(std::string_view name) {
  static const std::unordered_map<std::string_view, TextMethod> kMethods = {
      {"upper", mapped_method<to_upper>},
      {"lower", mapped_method<to_lower>},
      {"title", mapped_method<title_case>},
      {"capitalize", mapped_method<capitalize>},
      {"casefold", mapped_method<fold_case>},
      {"swapcase", mapped_method<swap_case>},
      {"strip", strip_method<Ends::both>},
      {"lstrip", strip_method<Ends::left>},
      {"rstrip", strip_method<Ends::right>},
      {"split", split},
      {"rsplit", split_from_right},
      {"splitlines", split_lines},
      {"partition", partition},
      {"rpartition", partition_from_right},
      {"find", find},
      {"rfind", find_last},
      {"index", index_of},
      {"rindex", last_index_of},
      {"count", count_of},
      {"startswith", starts_with},
      {"endswith", ends_with},
      {"join", join_method},
      {"replace", replace_method},
      {"center", justify<Ends::both>},
      {"ljust", justify<Ends::left>},
      {"rjust", justify<Ends::right>},
      {"zfill", zero_fill},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
      {"expandtabs", expand_tabs},
      {"isalpha", every<is_alpha>},
      {"isalnum", every<is_alphanumeric>},
      {"isdecimal", every<is_decimal>},
      {"isdigit", every<is_digit>},
      {"isnumeric", every<is_numeric>},
      {"isspace", every<is_space>},
      {"isprintable", is_printable_text},
      {"isascii", is_ascii},
      {"isidentifier", is_identifier},
      {"isupper", cased<is_upper, is_lower>},
      {"islower", cased<is_lower, is_upper>},
      {"istitle", is_title_text},
  };
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

}  // namespace caldera::chat
