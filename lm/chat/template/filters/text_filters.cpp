// Filters that change or measure a text.
#include <algorithm>

#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/filters/filters.h"
#include "lm/chat/template/methods/text_methods.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/iteration.h"
#include "lm/chat/template/value/operators.h"
#include "lm/chat/template/value/percent_format.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {
namespace {

template <std::string (*Map)(std::string_view)>
Value mapped_filter(const Value& subject, Arguments& arguments) {
  const Parameters none("filter", arguments, {});
  const std::string text = bytes_of(subject);
  step(text.size() / 16);
  return Map(text);
}

/// Each word begins with an upper case letter; words end at whitespace and at - ( { [ <.
std::string titled(std::string_view text) {
  std::string out;
  bool starts = true;
  std::size_t word = 0;
  const auto finish_word = [&](std::size_t end) {
    out += to_lower(text.substr(word, end - word));
    word = end;
  };
  for (std::size_t at = 0; at < text.size();) {
    const Character c = first_character(text.substr(at));
    const bool separates =
        (c.valid && is_space(c.value)) ||
        (c.value < 0x80 && std::string_view("-({[<").find(text[at]) != std::string_view::npos);
    if (separates) {
      finish_word(at);
      out += text.substr(at, c.bytes);
      word = at + c.bytes;
      starts = true;
    } else if (starts) {
      step();
      out += to_upper(text.substr(at, c.bytes));
      word = at + c.bytes;
      starts = false;
    }
    at += c.bytes;
  }
  finish_word(text.size());
  return out;
}

Value trim(const Value& subject, Arguments& arguments) {
  const Parameters given("trim", arguments, {"chars"});
  return strip(text_of(subject), given.get(0, Value()), Ends::both);
}

Value replace_filter(const Value& subject, Arguments& arguments) {
  const Parameters given("replace", arguments, {"old", "new", "count"}, 2);
  const std::int64_t most = given.has(2) && !given[2].is_none() ? given.integer(2, -1) : -1;
  return replace(bytes_of(subject), bytes_of(given[0]), bytes_of(given[1]), most);
}

Value center_filter(const Value& subject, Arguments& arguments) {
  const Parameters given("center", arguments, {"width"});
  return center(text_of(subject), given.integer(0, 80), " ");
}

Value format_filter(const Value& subject, Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  const Value format = text_of(subject);
  if (arguments.named.empty()) return percent_format(format, make_tuple(arguments.positional));
  DictBuilder named;
  for (const auto& [name, value] : arguments.named) named.set(Value(name), value);
  return percent_format(format, named.finish());
}

Value word_count(const Value& subject, Arguments& arguments) {
  const Parameters none("wordcount", arguments, {});
  const std::string text = bytes_of(subject);
  step(text.size() / 16);
  std::int64_t count = 0;
  bool inside = false;
  for (std::string_view rest = text; !rest.empty();) {
    const Character c = first_character(rest);
    const bool word = c.valid && is_word(c.value);
    count += static_cast<std::int64_t>(word && !inside);
    inside = word;
    rest.remove_prefix(c.bytes);
  }
  return count;
}

void add_escaped(TextBuilder& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out.add("&amp;");
        break;
      case '<':
        out.add("&lt;");
        break;
      case '>':
        out.add("&gt;");
        break;
      case '"':
        out.add("&#34;");
        break;
      case '\'':
        out.add("&#39;");
        break;
      default:
        out.add(c);
        break;
    }
  }
}

Value escape_filter(const Value& subject, Arguments& arguments) {
  const Parameters none("escape", arguments, {});
  TextBuilder out;
  add_escaped(out, bytes_of(subject));
  return out.finish();
}

Value to_text(const Value& subject, Arguments& arguments) {
  const Parameters none("string", arguments, {});
  return text_of(subject);
}

Value xml_attributes(const Value& subject, Arguments& arguments) {
  const Parameters given("xmlattr", arguments, {"autospace"});
  if (!subject.is_dict()) fail("xmlattr needs a dict, not {}", type_name(subject));
  TextBuilder out;
  for (const auto& [key, value] : subject.dict().entries) {
    if (value.is_none() || value.is_undefined()) continue;
    const std::string& name = require_text(key, "attribute name");
    if (name.find_first_of(" \t\n\r\f\v/>=") != std::string::npos)
      fail("Invalid character in attribute name: {}", repr_of(key));
    if (out.size() > 0 || given.truth_of(0, true)) out.add(' ');
    add_escaped(out, name);
    out.add("=\"");
    add_escaped(out, bytes_of(value));
    out.add('"');
  }
  return out.finish();
}

void add_quoted(TextBuilder& out, std::string_view text, bool for_query) {
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view(for_query ? "_.-~" : "_.-~/").find(c) != std::string_view::npos;
    if (plain) {
      out.add(c);
    } else if (for_query && c == ' ') {
      out.add('+');
    } else {
      out.add(fmt::format("%{:02X}", static_cast<unsigned char>(c)));
    }
  }
}

Value url_encode(const Value& subject, Arguments& arguments) {
  const Parameters none("urlencode", arguments, {});
  TextBuilder out;
  const bool pairs = subject.is_dict() || subject.is_sequence() || subject.is_object(ObjectKind::iterator) ||
                     subject.is_undefined();
  if (!pairs) {
    add_quoted(out, bytes_of(subject), false);
    return out.finish();
  }
  Iteration items(subject);
  Value item;
  while (items.next(item)) {
    const bool is_pair = item.is_sequence() && item.items().size() == 2;
    if (!subject.is_dict() && !is_pair) fail("urlencode needs pairs of keys and values");
    if (out.size() > 0) out.add('&');
    add_quoted(out, bytes_of(subject.is_dict() ? item : item.items()[0]), true);
    out.add('=');
    add_quoted(out, bytes_of(subject.is_dict() ? *find_key(subject.dict(), item) : item.items()[1]), true);
  }
  return out.finish();
}

Value strip_tags(const Value& subject, Arguments& arguments) {
  const Parameters none("striptags", arguments, {});
  const std::string text = bytes_of(subject);
  std::string plain;
  step(text.size() / 16);
  for (std::size_t at = 0; at < text.size();) {
    const bool comment = text.compare(at, 4, "<!--") == 0;
    const std::size_t end = text[at] != '<' ? std::string::npos : text.find(comment ? "-->" : ">", at);
    if (end == std::string::npos) {
      if (text[at] == '<') step(text.size() / 16);
      plain.push_back(text[at++]);
    } else {
      at = end + (comment ? 3 : 1);
    }
  }
  TextBuilder out;
  std::string_view rest = strip_right(plain);
  while (!(rest = strip_left(rest)).empty()) {
    std::size_t end = 0;
    while (end < rest.size() && !is_space(first_character(rest.substr(end)).value)) {
      end += first_character(rest.substr(end)).bytes;
    }
    if (out.size() > 0) out.add(' ');
    out.add(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  std::string unescaped = out.take();
  constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"&lt;", "<"}, {"&gt;", ">"}, {"&#34;", "\""}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};
  for (const auto& [entity, meaning] : kEntities) unescaped = replace(unescaped, entity, meaning, -1).bytes();
  return unescaped;
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable kTable = {
      {"upper", mapped_filter<to_upper>},
      {"lower", mapped_filter<to_lower>},
      {"capitalize", mapped_filter<capitalize>},
      {"title", mapped_filter<titled>},
      {"trim", trim},
      {"replace", replace_filter},
      {"center", center_filter},
      {"format", format_filter},
      {"wordcount", word_count},
      {"escape", escape_filter},
      {"e", escape_filter},
      {"forceescape", escape_filter},
      {"safe", to_text},
      {"string", to_text},
      {"xmlattr", xml_attributes},
      {"urlencode", url_encode},
      {"striptags", strip_tags},
  };
  return kTable;
}

}  // namespace caldera::chat
