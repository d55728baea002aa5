// The tests behind `is`.
#include <algorithm>

#include "lm/chat/template/filters/filters.h"
#include "lm/chat/template/methods/text_methods.h"
#include "lm/chat/template/value/operators.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {
namespace {

void expect_none(Arguments& arguments) { const Parameters none("test", arguments, {}); }

/// The one argument of a test.
Value operand(Arguments& arguments) { return Parameters("test", arguments, {"other"}, 1)[0]; }

std::int64_t remainder(const Value& subject, const Value& divisor, bool& whole) {
  const Value rest = arithmetic(subject, Arithmetic::modulo, divisor);
  whole = rest.is_number();
  return whole ? static_cast<std::int64_t>(rest.real() == 0 ? 0 : rest.real() == 1 ? 1 : 2) : 2;
}

template <std::int64_t Rest>
bool parity(const Value& subject, Arguments& arguments) {
  expect_none(arguments);
  bool whole = false;
  return remainder(subject, std::int64_t{2}, whole) == Rest && whole;
}

bool divisible_by(const Value& subject, Arguments& arguments) {
  bool whole = false;
  return remainder(subject, operand(arguments), whole) == 0 && whole;
}

template <bool (*Is)(const Value&)>
bool kind(const Value& subject, Arguments& arguments) {
  expect_none(arguments);
  return Is(subject);
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_boolean(const Value& v) { return v.is_bool(); }
bool is_true(const Value& v) { return v.is_bool() && v.boolean(); }
bool is_false(const Value& v) { return v.is_bool() && !v.boolean(); }
bool is_integer(const Value& v) {
  return v.kind() == Value::Kind::integer || v.is_object(ObjectKind::large_integer);
}
bool is_float(const Value& v) { return v.kind() == Value::Kind::real; }
bool is_number(const Value& v) { return v.is_number() || v.is_object(ObjectKind::large_integer); }
bool is_string(const Value& v) { return v.is_text(); }
bool is_mapping(const Value& v) { return v.is_dict(); }
bool is_escaped(const Value& /*v*/) { return false; }
bool is_view(const Value& v) {
  return v.is_sequence(SequenceKind::dict_keys) || v.is_sequence(SequenceKind::dict_values) ||
         v.is_sequence(SequenceKind::dict_items);
}
bool is_sequence(const Value& v) {
  return v.is_text() || v.is_dict() || v.is_undefined() || (v.is_sequence() && !is_view(v));
}
bool is_iterable(const Value& v) {
  return v.is_text() || v.is_dict() || v.is_undefined() || v.is_sequence() ||
         v.is_object(ObjectKind::iterator) || v.is_object(ObjectKind::loop);
}
bool is_callable(const Value& v) {
  return v.is_undefined() || v.is_object(ObjectKind::function) || v.is_object(ObjectKind::loop);
}

template <bool Upper>
bool has_case(const Value& subject, Arguments& arguments) {
  expect_none(arguments);
  Arguments none;
  return find_text_method(Upper ? "isupper" : "islower")(text_of(subject), none).boolean();
}

bool is_filter(const Value& subject, Arguments& arguments) {
  expect_none(arguments);
  hash_of(subject);  // what has no hash cannot be a name
  return subject.is_text() && find_filter(subject.bytes()) != nullptr;
}

bool is_test(const Value& subject, Arguments& arguments) {
  expect_none(arguments);
  hash_of(subject);  // what has no hash cannot be a name
  return subject.is_text() && find_test(subject.bytes()) != nullptr;
}

bool same_as(const Value& subject, Arguments& arguments) { return subject.same_as(operand(arguments)); }
bool in(const Value& subject, Arguments& arguments) { return contains(operand(arguments), subject); }
bool equal_to(const Value& subject, Arguments& arguments) { return equal(subject, operand(arguments)); }
bool unequal_to(const Value& subject, Arguments& arguments) { return !equal(subject, operand(arguments)); }

template <Ordering How>
bool compares(const Value& subject, Arguments& arguments) {
  return ordered(subject, How, operand(arguments));
}

}  // namespace

Test find_test(std::string_view name) {
  static const std::unordered_map<std::string_view, Test> kTable = {
      {"odd", parity<1>},
      {"even", parity<0>},
      {"divisibleby", divisible_by},
      {"defined", kind<is_defined>},
      {"undefined", kind<is_undefined>},
      {"none", kind<is_none>},
      {"boolean", kind<is_boolean>},
      {"true", kind<is_true>},
      {"false", kind<is_false>},
      {"integer", kind<is_integer>},
      {"float", kind<is_float>},
      {"number", kind<is_number>},
      {"string", kind<is_string>},
      {"mapping", kind<is_mapping>},
      {"sequence", kind<is_sequence>},
      {"iterable", kind<is_iterable>},
      {"callable", kind<is_callable>},
      {"escaped", kind<is_escaped>},
      {"upper", has_case<true>},
      {"lower", has_case<false>},
      {"filter", is_filter},
      {"test", is_test},
      {"sameas", same_as},
      {"in", in},
      {"==", equal_to},
      {"eq", equal_to},
      {"equalto", equal_to},
      {"!=", unequal_to},
      {"ne", unequal_to},
      {"<", compares<Ordering::less>},
      {"lt", compares<Ordering::less>},
      {"lessthan", compares<Ordering::less>},
      {"<=", compares<Ordering::less_equal>},
      {"le", compares<Ordering::less_equal>},
      {">", compares<Ordering::greater>},
      {"gt", compares<Ordering::greater>},
      {"greaterthan", compares<Ordering::greater>},
      {">=", compares<Ordering::greater_equal>},
      {"ge", compares<Ordering::greater_equal>},
  };
  const auto found = kTable.find(name);
  return found == kTable.end() ? nullptr : found->second;
}

}  // namespace caldera::chat
