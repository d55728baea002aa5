#include "lm/chat/template/methods/attributes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lm/chat/template/methods/brace_format.h"
#include "lm/chat/template/methods/text_methods.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/function.h"
#include "lm/chat/template/value/operators.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {
namespace {

/// A function that goes with the value it was asked of.
template <class Body>
Value method(const Value& self, std::string_view name, Body body) {
  return {std::make_shared<Function>(
      std::string(name), [self, body](Arguments& arguments) { return body(self, arguments); }, self.depth())};
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value forbidden(const Value& of, std::string_view name) {
  return Value::undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(of)));
}

std::string described(const Value& value) {
  return value.is_none() ? std::string("None") : type_name(value) + " object";
}

Value format_method(const Value& self, Arguments& arguments) {
  return brace_format(self.bytes(), arguments, {get_attribute, get_item});
}

Value format_map(const Value& self, Arguments& arguments) {
  const Parameters given("format_map", arguments, {"mapping"}, 1);
  if (!given[0].is_dict()) fail("format_map() needs a mapping, not {}", type_name(given[0]));
  Arguments named;
  for (const auto& [key, value] : given[0].dict().entries) {
    step();
    if (key.is_text()) named.named.emplace_back(key.bytes(), value);
  }
  return brace_format(self.bytes(), named, {get_attribute, get_item});
}

bool text_attribute(const Value& of, std::string_view name, Value& out) {
  if (name == "format" || name == "format_map") {
    out = method(of, name, name == "format" ? format_method : format_map);
    return true;
  }
  if (const TextMethod found = find_text_method(name)) {
    out = method(of, name, found);
    return true;
  }
  if (is_one_of(name, {"encode", "translate", "maketrans"}))
    fail("str.{}() is not supported in chat templates", name);
  return false;
}

Value index_of_item(const Value& self, Arguments& arguments) {
  const Parameters given("index", arguments, {"value", "start", "stop"}, 1);
  const auto length = static_cast<std::int64_t>(self.items().size());
  const auto bound = [&](std::size_t i, std::int64_t otherwise) {
    const std::int64_t at = given.integer(i, otherwise);
    return std::clamp<std::int64_t>(at < 0 ? (at < -length ? 0 : at + length) : at, 0, length);
  };
  const std::int64_t stop = bound(2, length);
  for (std::int64_t i = bound(1, 0); i < stop; ++i) {
    if (equal(self.items()[static_cast<std::size_t>(i)], given[0])) return i;
  }
  fail("{} is not in {}", repr_of(given[0]), type_name(self));
}

Value count_items(const Value& self, Arguments& arguments) {
  const Parameters given("count", arguments, {"value"}, 1);
  return static_cast<std::int64_t>(std::count_if(self.items().begin(), self.items().end(),
                                                 [&](const Value& item) { return equal(item, given[0]); }));
}

Value itself(const Value& self, Arguments& arguments) {
  const Parameters none("copy", arguments, {});
  return self;  // values do not change, so that a copy cannot be told from them
}

bool sequence_attribute(const Value& of, std::string_view name, Value& out) {
  const Sequence& sequence = of.sequence();
  const SequenceKind kind = sequence.kind;
  if (kind == SequenceKind::dict_keys || kind == SequenceKind::dict_values ||
      kind == SequenceKind::dict_items) {
    return false;
  }
  if (kind == SequenceKind::list &&
      is_one_of(name, {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"})) {
    out = forbidden(of, name);
  } else if (kind == SequenceKind::list && name == "copy") {
    out = method(of, name, itself);
  } else if (name == "index") {
    out = method(of, name, index_of_item);
  } else if (name == "count") {
    out = method(of, name, count_items);
  } else if (kind == SequenceKind::range && is_one_of(name, {"start", "stop", "step"})) {
    out = name == "start" ? sequence.start : name == "stop" ? sequence.stop : sequence.stride;
  } else if (kind == SequenceKind::group && (name == "grouper" || name == "list")) {
    out = sequence.items[name == "list" ? 1 : 0];
  } else {
    return false;
  }
  return true;
}

template <SequenceKind Kind>
Value dict_view(const Value& self, Arguments& arguments) {
  const Parameters none("method", arguments, {});
  ListBuilder list;
  for (const auto& [key, value] : self.dict().entries) {
    list.add(Kind == SequenceKind::dict_keys     ? key
             : Kind == SequenceKind::dict_values ? value
                                                 : make_tuple({key, value}));
  }
  return list.finish(Kind);
}

Value dict_get(const Value& self, Arguments& arguments) {
  const Parameters given("get", arguments, {"key", "default"}, 1);
  const Value* found = find_key(self.dict(), given[0]);
  return found != nullptr ? *found : given.get(1, Value());
}

bool dict_attribute(const Value& of, std::string_view name, Value& out) {
  if (name == "get") {
    out = method(of, name, dict_get);
  } else if (name == "items") {
    out = method(of, name, dict_view<SequenceKind::dict_items>);
  } else if (name == "keys") {
    out = method(of, name, dict_view<SequenceKind::dict_keys>);
  } else if (name == "values") {
    out = method(of, name, dict_view<SequenceKind::dict_values>);
  } else if (name == "copy") {
    out = method(of, name, itself);
  } else if (is_one_of(name, {"clear", "pop", "popitem", "setdefault", "update"})) {
    out = forbidden(of, name);
  } else if (name == "fromkeys") {
    fail("dict.fromkeys() is not supported in chat templates");
  } else {
    return false;
  }
  return true;
}

bool number_attribute(const Value& of, std::string_view name, Value& out) {
  if (name == "real" || (of.is_integral() && name == "numerator")) {
    out = of.is_bool() ? Value(of.integral()) : of;
  } else if (name == "imag") {
    out = of.is_integral() ? Value(std::int64_t{0}) : Value(0.0);
  } else if (of.is_integral() && name == "denominator") {
    out = std::int64_t{1};
  } else if (!of.is_integral() && name == "is_integer") {
    out = method(of, name, [](const Value& self, Arguments& arguments) {
      const Parameters none("is_integer", arguments, {});
      return Value(std::isfinite(self.real()) && std::floor(self.real()) == self.real());
    });
  } else {
    return false;
  }
  return true;
}

bool find_subscript(const Value& of, const Value& key, Value& out) {
  if (of.is_dict()) {
    const bool hashable = !key.is_dict() && !key.is_list();
    const Value* found = hashable ? find_key(of.dict(), key) : nullptr;
    if (found != nullptr) out = *found;
    return found != nullptr;
  }
  if (!key.is_integral()) return false;
  std::size_t place = 0;
  if (of.is_text() && place_of(key.integral(), of.text().length, place)) {
    const auto one = static_cast<std::int64_t>(place);
    out = slice_of(of, one, one + 1, Value());
    return true;
  }
  const bool indexed = of.is_list() || of.is_tuple() || of.is_sequence(SequenceKind::range);
  if (!indexed || !place_of(key.integral(), of.items().size(), place)) return false;
  out = of.items()[place];
  return true;
}

}  // namespace

bool find_attribute(const Value& of, const std::string& name, Value& out) {
  require_defined(of);
  if (name.starts_with('_')) return false;
  switch (of.kind()) {
    case Value::Kind::text:
      return text_attribute(of, name, out);
    case Value::Kind::sequence:
      return sequence_attribute(of, name, out);
    case Value::Kind::dict:
      return dict_attribute(of, name, out);
    case Value::Kind::object:
      return of.object().attribute(name, out);
    case Value::Kind::boolean:
    case Value::Kind::integer:
    case Value::Kind::real:
      return number_attribute(of, name, out);
    default:
      return false;
  }
}

Value get_attribute(const Value& of, const std::string& name) {
  Value found;
  if (find_attribute(of, name, found)) return found;
  if (of.is_dict() && find_subscript(of, Value(name), found)) return found;
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", described(of), name));
}

Value get_item(const Value& of, const Value& key) {
  require_defined(of);
  Value found;
  if (find_subscript(of, key, found)) return found;
  if (!key.is_text())
    return Value::undefined(fmt::format("{} has no element {}", described(of), repr_of(key)));
  if (find_attribute(of, key.bytes(), found)) return found;
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", described(of), key.bytes()));
}

}  // namespace caldera::chat
