#include "lm/chat/template/value/repr.h"

#include <fmt/format.h>

#include "lm/chat/template/base/number_text.h"
#include "lm/chat/template/base/unicode.h"

namespace caldera::chat {
namespace {

using Kind = Value::Kind;

std::string escaped(char32_t c) {
  const auto value = static_cast<unsigned>(c);
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (c < 0x100) return fmt::format("\\x{:02x}", value);
  if (c < 0x10000) return fmt::format("\\u{:04x}", value);
  return fmt::format("\\U{:08x}", value);
}

void add_items(TextBuilder& out, const std::vector<Value>& items) {
  bool first = true;
  for (const Value& item : items) {
    if (!first) out.add(", ");
    first = false;
    add_repr(out, item);
  }
}

void add_sequence(TextBuilder& out, const Sequence& sequence) {
  switch (sequence.kind) {
    case SequenceKind::range:
      out.add(fmt::format("range({}, {}", sequence.start, sequence.stop));
      out.add(sequence.stride == 1 ? std::string(")") : fmt::format(", {})", sequence.stride));
      return;
    case SequenceKind::tuple:
    case SequenceKind::group:
      out.add('(');
      add_items(out, sequence.items);
      out.add(sequence.items.size() == 1 ? ",)" : ")");
      return;
    case SequenceKind::list:
      out.add('[');
      break;
    case SequenceKind::dict_keys:
      out.add("dict_keys([");
      break;
    case SequenceKind::dict_values:
      out.add("dict_values([");
      break;
    case SequenceKind::dict_items:
      out.add("dict_items([");
      break;
  }
  add_items(out, sequence.items);
  out.add(sequence.kind == SequenceKind::list ? "]" : "])");
}

void add_dict(TextBuilder& out, const Dict& dict) {
  out.add('{');
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!first) out.add(", ");
    first = false;
    add_repr(out, key);
    out.add(": ");
    add_repr(out, value);
  }
  out.add('}');
}

}  // namespace

void add_text_repr(TextBuilder& out, std::string_view text, bool ascii) {
  const bool single = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = single ? '"' : '\'';
  out.add(quote);
  while (!text.empty()) {
    const Character c = first_character(text);
    if (c.value == '\\' || c.value == static_cast<unsigned char>(quote)) {
      out.add('\\');
      out.add(text.substr(0, 1));
    } else if (c.valid && is_printable(c.value) && !(ascii && c.value >= 0x80)) {
      out.add(text.substr(0, c.bytes));
    } else {
      out.add(escaped(c.value));
    }
    text.remove_prefix(c.bytes);
  }
  out.add(quote);
}

void add_repr(TextBuilder& out, const Value& value) {
  step();
  switch (value.kind()) {
    case Kind::undefined:
      return out.add("Undefined");
    case Kind::text:
      return add_text_repr(out, value.bytes());
    case Kind::sequence:
      check_stack();
      return add_sequence(out, value.sequence());
    case Kind::dict:
      check_stack();
      return add_dict(out, value.dict());
    case Kind::object:
      check_stack();
      return out.add(value.object().repr());
    default:
      return add_text(out, value);
  }
}

void add_text(TextBuilder& out, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return;
    case Kind::none:
      return out.add("None");
    case Kind::boolean:
      return out.add(value.boolean() ? "True" : "False");
    case Kind::integer:
      return out.add(fmt::format("{}", value.integral()));
    case Kind::real:
      return out.add(float_repr(value.real()));
    case Kind::text:
      return out.add(value.text());
    default:
      return add_repr(out, value);
  }
}

Value text_of(const Value& value) {
  if (value.is_text()) return value;
  TextBuilder out;
  add_text(out, value);
  return out.finish();
}

std::string bytes_of(const Value& value) {
  if (value.is_text()) return value.bytes();
  TextBuilder out;
  add_text(out, value);
  return out.take();
}

std::string repr_of(const Value& value) {
  TextBuilder out;
  add_repr(out, value);
  return out.take();
}

}  // namespace caldera::chat
