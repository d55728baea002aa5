#include "lm/chat/template/value/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lm/base/json_integers.h"
#include "lm/chat/template/base/number_text.h"
#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/operators.h"

namespace caldera::chat {
namespace {

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  void add(const Value& value, std::size_t level) {
    step();
    switch (value.kind()) {
      case Value::Kind::text:
        return add_string(value.bytes());
      case Value::Kind::dict:
        check_stack();
        return add_dict(value.dict(), level + 1);
      case Value::Kind::sequence:
        check_stack();
        if (value.is_list() || value.is_tuple()) return add_list(value.items(), level + 1);
        break;
      case Value::Kind::object:
        if (value.is_object(ObjectKind::large_integer)) return out_.add(value.as<LargeInteger>().digits);
        break;
      case Value::Kind::undefined:
        break;
      default:
        return out_.add(scalar(value));
    }
    fail("Object of type {} is not JSON serializable", type_name(value));
  }

  Value finish() { return out_.finish(); }

 private:
  static std::string scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (value.is_bool()) return value.boolean() ? "true" : "false";
    if (value.is_integral()) return fmt::format("{}", value.integral());
    const double x = value.real();
    if (std::isnan(x)) return "NaN";
    if (std::isinf(x)) return x < 0 ? "-Infinity" : "Infinity";
    return float_repr(x);
  }

  void new_line(std::size_t level) {
    if (!style_.indent) return;
    out_.add('\n');
    out_.repeat(*style_.indent, level);
  }

  void add_list(const std::vector<Value>& items, std::size_t level) {
    if (items.empty()) return out_.add("[]");
    out_.add('[');
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.add(style_.item_separator);
      new_line(level);
      add(items[i], level);
    }
    new_line(level - 1);
    out_.add(']');
  }

  void add_dict(const Dict& dict, std::size_t level) {
    if (dict.entries.empty()) return out_.add("{}");
    std::vector<const std::pair<Value, Value>*> entries;
    const Charge charge(dict.entries.size() * sizeof(void*));
    entries.reserve(dict.entries.size());
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
        return ordered(a->first, Ordering::less, b->first);
      });
    }
    out_.add('{');
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_.add(style_.item_separator);
      new_line(level);
      const Value& key = entries[i]->first;
      const bool is_key = key.is_text() || key.is_number() || key.is_none();
      if (!is_key) fail("keys must be str, int, float, bool or None, not {}", type_name(key));
      add_string(key.is_text() ? key.bytes() : scalar(key));
      out_.add(style_.key_separator);
      add(entries[i]->second, level);
    }
    new_line(level - 1);
    out_.add('}');
  }

  void add_string(std::string_view text) {
    out_.add('"');
    while (!text.empty()) {
      // What needs no escape, at once.
      std::size_t plain = 0;
      while (plain < text.size() && is_plain(text[plain])) ++plain;
      out_.add(text.substr(0, plain));
      text.remove_prefix(plain);
      if (text.empty()) break;
      const Character c = first_character(text);
      add_escape(c.value);
      text.remove_prefix(c.bytes);
    }
    out_.add('"');
  }

  bool is_plain(char c) const {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && c != '"' && c != '\\' && !(style_.ascii && byte >= 0x80);
  }

  void add_escape(char32_t c) {
    constexpr std::string_view kFrom = "\"\\\n\r\t\b\f";
    constexpr std::string_view kTo = "\"\\nrtbf";
    const std::size_t i = c < 0x80 ? kFrom.find(static_cast<char>(c)) : std::string_view::npos;
    if (i != std::string_view::npos) {
      out_.add('\\');
      return out_.add(kTo[i]);
    }
    const auto value = static_cast<unsigned>(c);
    if (value > 0xFFFF)
      return out_.add(fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (value >> 10), 0xDC00 + (value & 0x3FF)));
    out_.add(fmt::format("\\u{:04x}", value));
  }

  const JsonStyle& style_;
  TextBuilder out_;
};

}  // namespace

Value json_text(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.add(value, 0);
  return writer.finish();
}

Value value_from_json(const nlohmann::ordered_json& json) {
  step();
  check_stack();
  switch (json.type()) {
    case nlohmann::ordered_json::value_t::boolean:
      return json.get<bool>();
    case nlohmann::ordered_json::value_t::number_integer:
      return json.get<std::int64_t>();
    case nlohmann::ordered_json::value_t::number_unsigned:
    case nlohmann::ordered_json::value_t::binary: {
      std::optional<std::string> digits = detail::large_integer(json);
      if (digits) return {std::shared_ptr<Object>(std::make_shared<LargeInteger>(*std::move(digits)))};
      return json.get<std::int64_t>();
    }
    case nlohmann::ordered_json::value_t::number_float:
      return json.get<double>();
    case nlohmann::ordered_json::value_t::string:
      return json.get_ref<const std::string&>();
    case nlohmann::ordered_json::value_t::array: {
      ListBuilder list;
      for (const auto& item : json) list.add(value_from_json(item));
      return list.finish();
    }
    case nlohmann::ordered_json::value_t::object: {
      DictBuilder dict;
      for (const auto& [key, value] : json.items()) dict.set(Value(key), value_from_json(value));
      return dict.finish();
    }
    default:
      return {};
  }
}

}  // namespace caldera::chat
