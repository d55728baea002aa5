#include "lm/chat/template/methods/text_search.h"

#include <algorithm>

#include "lm/chat/template/base/needle.h"
#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/value/builders.h"

namespace caldera::chat {
namespace {

using View = std::string_view;

/// The pieces of a text between whitespace, at most `most` cuts being made from the left or from the right.
ViewList split_whitespace(View text, std::int64_t most, bool from_right) {
  ViewList pieces;
  text = strip_left(strip_right(text));
  const auto space_at = [&](std::size_t at) {
    const Character c = first_character(text.substr(at));
    return c.valid && is_space(c.value);
  };
  while (!text.empty()) {
    std::size_t cut = from_right ? text.size() : 0;
    if (most != 0 && from_right) {
      while (cut > 0) {
        const std::size_t before = cut - last_character(text.substr(0, cut)).bytes;
        if (space_at(before)) break;
        cut = before;
      }
    } else if (most != 0) {
      while (cut < text.size() && !space_at(cut)) cut += first_character(text.substr(cut)).bytes;
    } else {
      cut = from_right ? 0 : text.size();
    }
    pieces.add(from_right ? text.substr(cut) : text.substr(0, cut));
    text = from_right ? strip_right(text.substr(0, cut)) : strip_left(text.substr(cut));
    if (most > 0) --most;
  }
  if (from_right) std::reverse(pieces.views().begin(), pieces.views().end());
  return pieces;
}

ViewList split_by(View text, View separator, std::int64_t most, bool from_right) {
  if (separator.empty()) fail("empty separator");
  ViewList pieces;
  const Needle needle(separator);
  while (most != 0) {
    const std::size_t at = from_right ? needle.find_last(text) : needle.find(text);
    if (at == View::npos) break;
    const View behind = text.substr(at + separator.size());
    pieces.add(from_right ? behind : text.substr(0, at));
    text = from_right ? text.substr(0, at) : behind;
    --most;
  }
  pieces.add(text);
  if (from_right) std::reverse(pieces.views().begin(), pieces.views().end());
  return pieces;
}

Value split_text(const Value& self, Arguments& arguments, bool from_right) {
  const Parameters given(from_right ? "rsplit" : "split", arguments, {"sep", "maxsplit"});
  const std::int64_t most = given.integer(1, -1);
  const View text = self.bytes();
  step(text.size() / 16);
  const bool whitespace = !given.has(0) || given[0].is_none();
  const ViewList pieces = whitespace ? split_whitespace(text, most, from_right)
                                     : split_by(text, given.text(0, ""), most, from_right);
  ListBuilder list;
  for (const View piece : pieces) list.add(piece);
  return list.finish();
}

Value part(const Value& self, Arguments& arguments, bool from_right) {
  const Parameters given("partition", arguments, {"sep"}, 1);
  const std::string separator = given.text(0, "");
  if (separator.empty()) fail("empty separator");
  const View text = self.bytes();
  const Needle needle(separator);
  const std::size_t at = from_right ? needle.find_last(text) : needle.find(text);
  if (at == View::npos) {
    return from_right ? make_tuple({Value(""), Value(""), self}) : make_tuple({self, Value(""), Value("")});
  }
  return make_tuple({text.substr(0, at), Value(separator), text.substr(at + separator.size())});
}

/// The part of a text that the arguments start and end of a search leave.
struct Range {
  View text;
  std::size_t begin = 0;  ///< in bytes
  std::size_t first = 0;  ///< in characters
  bool empty = false;     ///< the start is behind the end: not even an empty text is found
};

Range range_of(const Value& self, const Value& start, const Value& end) {
  const auto length = static_cast<std::int64_t>(self.text().length);
  const auto place = [&](const Value& given, std::int64_t otherwise) {
    if (given.is_none()) return otherwise;
    std::int64_t at = require_integer(given, "slice indices");
    if (at < 0) at = std::max<std::int64_t>(0, at < -length ? 0 : at + length);
    return at;
  };
  const std::int64_t from = place(start, 0);
  const std::int64_t to = std::min(place(end, length), length);
  Range range;
  if (from > to) {
    range.empty = true;
    return range;
  }
  const View text = self.bytes();
  step(text.size() / 64);
  range.first = static_cast<std::size_t>(from);
  range.begin = byte_offset(text, range.first);
  range.text =
      text.substr(range.begin, byte_offset(text.substr(range.begin), static_cast<std::size_t>(to - from)));
  return range;
}

std::int64_t search(const Value& self, Arguments& arguments, const char* name, bool last, bool must) {
  const Parameters given(name, arguments, {"sub", "start", "end"}, 1);
  const std::string wanted = given.text(0, "");
  const Range range = range_of(self, given.get(1, Value()), given.get(2, Value()));
  const Needle needle(wanted);
  const std::size_t at = range.empty ? View::npos
                         : last      ? needle.find_last(range.text)
                                     : needle.find(range.text);
  if (at == View::npos && must) fail("substring not found");
  if (at == View::npos) return -1;
  return static_cast<std::int64_t>(range.first + code_point_count(range.text.substr(0, at)));
}

bool affixed(const Value& self, Arguments& arguments, const char* name, bool at_end) {
  const Parameters given(name, arguments, {"prefix", "start", "end"}, 1);
  const Range range = range_of(self, given.get(1, Value()), given.get(2, Value()));
  const auto fits = [&](const Value& affix) {
    if (!affix.is_text()) fail("{} first arg must be str or a tuple of str, not {}", name, type_name(affix));
    step();
    return !range.empty &&
           (at_end ? range.text.ends_with(affix.bytes()) : range.text.starts_with(affix.bytes()));
  };
  if (!given[0].is_tuple()) return fits(given[0]);
  return std::any_of(given[0].items().begin(), given[0].items().end(), fits);
}

}  // namespace

Value split(const Value& self, Arguments& arguments) { return split_text(self, arguments, false); }
Value split_from_right(const Value& self, Arguments& arguments) { return split_text(self, arguments, true); }
Value partition(const Value& self, Arguments& arguments) { return part(self, arguments, false); }
Value partition_from_right(const Value& self, Arguments& arguments) { return part(self, arguments, true); }
Value find(const Value& self, Arguments& arguments) { return search(self, arguments, "find", false, false); }
Value find_last(const Value& self, Arguments& arguments) {
  return search(self, arguments, "rfind", true, false);
}
Value index_of(const Value& self, Arguments& arguments) {
  return search(self, arguments, "index", false, true);
}
Value last_index_of(const Value& self, Arguments& arguments) {
  return search(self, arguments, "rindex", true, true);
}
Value starts_with(const Value& self, Arguments& arguments) {
  return affixed(self, arguments, "startswith", false);
}
Value ends_with(const Value& self, Arguments& arguments) {
  return affixed(self, arguments, "endswith", true);
}

Value count_of(const Value& self, Arguments& arguments) {
  const Parameters given("count", arguments, {"sub", "start", "end"}, 1);
  const std::string wanted = given.text(0, "");
  const Range range = range_of(self, given.get(1, Value()), given.get(2, Value()));
  if (range.empty) return std::int64_t{0};
  if (wanted.empty()) return static_cast<std::int64_t>(code_point_count(range.text)) + 1;
  const Needle needle(wanted);
  std::int64_t count = 0;
  for (View rest = range.text; true; ++count) {
    const std::size_t at = needle.find(rest);
    if (at == View::npos) break;
    step();
    rest.remove_prefix(at + wanted.size());
  }
  return count;
}

}  // namespace caldera::chat
