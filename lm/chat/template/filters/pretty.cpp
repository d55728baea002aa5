#include "lm/chat/template/filters/pretty.h"

#include <algorithm>

#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/operators.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {
namespace {

constexpr std::size_t kWidth = 80;

using Entries = std::vector<std::pair<Value, Value>>;

Entries sorted_entries(const Dict& dict) {
  Entries entries = dict.entries;
  step(entries.size());
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    const bool comparable =
        (a.first.is_text() && b.first.is_text()) || (a.first.is_number() && b.first.is_number());
    if (comparable) return ordered(a.first, Ordering::less, b.first);
    return type_name(a.first) < type_name(b.first);
  });
  return entries;
}

void add_line(TextBuilder& out, const Value& value);

void add_items(TextBuilder& out, const std::vector<Value>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.add(", ");
    add_line(out, items[i]);
  }
}

/// repr() with sorted keys.
void add_line(TextBuilder& out, const Value& value) {
  check_stack();
  step();
  if (value.is_dict()) {
    out.add('{');
    bool first = true;
    for (const auto& [key, item] : sorted_entries(value.dict())) {
      if (!first) out.add(", ");
      first = false;
      add_line(out, key);
      out.add(": ");
      add_line(out, item);
    }
    out.add('}');
  } else if (value.is_list()) {
    out.add('[');
    add_items(out, value.items());
    out.add(']');
  } else if (value.is_tuple()) {
    out.add('(');
    add_items(out, value.items());
    out.add(value.items().size() == 1 ? ",)" : ")");
  } else {
    add_repr(out, value);
  }
}

/// Adds a value that begins at column `indent`, behind which `reserved` columns are needed.
void add_value(TextBuilder& out, const Value& value, std::size_t indent, std::size_t reserved) {
  check_stack();
  TextBuilder line;
  add_line(line, value);
  const std::size_t width = code_point_count(line.bytes());
  const bool parts = value.is_dict() || value.is_list() || value.is_tuple();
  if (!parts || width + indent + reserved <= kWidth) return out.add(line.bytes());
  const auto separate = [&](std::size_t column) {
    out.add(",\n");
    out.repeat(" ", column);
  };
  if (value.is_dict()) {
    const Entries entries = sorted_entries(value.dict());
    out.add('{');
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) separate(indent + 1);
      const std::string key = repr_of(entries[i].first);
      out.add(key);
      out.add(": ");
      add_value(out, entries[i].second, indent + 3 + code_point_count(key),
                i + 1 == entries.size() ? reserved + 1 : 1);
    }
    return out.add('}');
  }
  const auto& items = value.items();
  const bool alone = value.is_tuple() && items.size() == 1;
  out.add(value.is_list() ? '[' : '(');
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) separate(indent + 1);
    add_value(out, items[i], indent + 1, i + 1 == items.size() ? reserved + (alone ? 2 : 1) : 1);
  }
  out.add(alone ? ",)" : value.is_list() ? "]" : ")");
}

}  // namespace

Value pretty(const Value& value) {
  TextBuilder out;
  add_value(out, value, 0, 0);
  return out.finish();
}

}  // namespace caldera::chat
