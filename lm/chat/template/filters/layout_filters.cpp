// Filters that lay a text out in lines.
#include <algorithm>

#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/filters/filters.h"
#include "lm/chat/template/methods/text_methods.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/operators.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {
namespace {

using View = std::string_view;

const std::string& text_to_lay_out(const Value& subject) {
  require_defined(subject);
  return require_text(subject, "the value to lay out");
}

Value indent(const Value& subject, Arguments& arguments) {
  const Parameters given("indent", arguments, {"width", "first", "blank"});
  const std::string text = text_to_lay_out(subject) + "\n";
  const Value spaces = given.has(0) && given[0].is_text()
                           ? given[0]
                           : arithmetic(Value(" "), Arithmetic::multiply, given.get(0, std::int64_t{4}));
  const bool blank = given.truth_of(2, false);
  TextBuilder out;
  bool first = true;
  for (const View line : lines_of(text, false)) {
    const bool indented = first ? given.truth_of(1, false) : blank || !line.empty();
    if (!first) out.add('\n');
    if (indented) out.add(spaces.text());
    out.add(line);
    first = false;
  }
  return out.finish();
}

Value truncate(const Value& subject, Arguments& arguments) {
  const Parameters given("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const std::int64_t length = given.integer(0, 255);
  const Value end = given.get(2, Value("..."));
  const std::int64_t leeway = given.has(3) && !given[3].is_none() ? given.integer(3, 5) : 5;
  if (length < length_of(end)) fail("expected length >= {}, got {}", length_of(end), length);
  if (leeway < 0) fail("expected leeway >= 0, got {}", leeway);
  if (length_of(subject) - length <= leeway) return subject;
  const View text = text_to_lay_out(subject);
  View kept = text.substr(0, byte_offset(text, static_cast<std::size_t>(length - length_of(end))));
  if (!given.truth_of(1, false)) {
    const std::size_t space = kept.rfind(' ');
    kept = kept.substr(0, space);
  }
  TextBuilder out;
  out.add(kept);
  out.add(require_text(end, "end"));
  return out.finish();
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The pieces between which a line may be broken: runs of whitespace, words, and the parts of words at
/// hyphens.
ViewList pieces_of(View line, bool at_hyphens) {
  ViewList pieces;
  while (!line.empty()) {
    std::size_t end = 0;
    const bool blank = is_blank(line[0]);
    while (end < line.size() && is_blank(line[end]) == blank) {
      ++end;
      const bool hyphen = at_hyphens && !blank && end >= 3 && end + 1 < line.size() && line[end - 1] == '-';
      const auto letter = [&](std::size_t i) {
        return is_alpha(first_character(line.substr(i)).value) || static_cast<signed char>(line[i]) < 0;
      };
      if (hyphen && letter(end - 2) && letter(end - 3) && letter(end) && letter(end + 1)) break;
    }
    pieces.add(line.substr(0, end));
    line.remove_prefix(end);
  }
  return pieces;
}

struct Wrapping {
  std::size_t width;
  bool break_words;
  bool at_hyphens;
};

/// Gives each line that a paragraph becomes to `emit`.
template <class Emit>
void wrap(View paragraph, const Wrapping& how, Emit emit) {
  ViewList list = pieces_of(paragraph, how.at_hyphens);
  std::vector<View>& pieces = list.views();
  std::vector<std::size_t> widths;
  const Charge charge(pieces.size() * sizeof(std::size_t));
  widths.reserve(pieces.size());
  for (const View piece : pieces) widths.push_back(code_point_count(piece));
  bool any = false;
  for (std::size_t at = 0; at < pieces.size();) {
    // A line does not begin with whitespace, except the first one.
    if (any && is_blank(pieces[at][0])) {
      ++at;
      continue;
    }
    std::size_t used = 0;
    const std::size_t begin = at;
    while (at < pieces.size() && used + widths[at] <= how.width) used += widths[at++];
    std::string line;
    for (std::size_t i = begin; i < at; ++i) line += pieces[i];
    if (at < pieces.size() && widths[at] > how.width) {
      const std::size_t room = std::max<std::size_t>(how.width - used, at == begin ? 1 : 0);
      if (how.break_words && room > 0) {
        const std::size_t cut = byte_offset(pieces[at], room);
        line += pieces[at].substr(0, cut);
        pieces[at].remove_prefix(cut);
        widths[at] -= room;
      } else if (at == begin) {
        line += pieces[at++];
      }
    }
    step(1 + line.size() / 16);
    const View kept = strip_right(line);
    if (!kept.empty()) {
      emit(kept);
      any = true;
    }
  }
}

Value word_wrap(const Value& subject, Arguments& arguments) {
  const Parameters given("wordwrap", arguments,
                         {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  const std::int64_t width = given.integer(0, 79);
  if (width <= 0) fail("invalid width {} (must be > 0)", width);
  const std::string between = given.has(2) && !given[2].is_none() ? given.text(2, "\n") : "\n";
  const Wrapping how{static_cast<std::size_t>(width), given.truth_of(1, true), given.truth_of(3, true)};
  TextBuilder out;
  bool first = true;
  for (const View paragraph : lines_of(text_to_lay_out(subject), false)) {
    if (!first) out.add(between);
    first = false;
    bool first_line = true;
    wrap(paragraph, how, [&](View line) {
      if (!first_line) out.add(between);
      first_line = false;
      out.add(line);
    });
  }
  return out.finish();
}

}  // namespace

const FilterTable& layout_filters() {
  static const FilterTable kTable = {{"indent", indent}, {"truncate", truncate}, {"wordwrap", word_wrap}};
  return kTable;
}

}  // namespace caldera::chat
