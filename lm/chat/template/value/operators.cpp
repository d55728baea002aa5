#include "lm/chat/template/value/operators.h"

#include <algorithm>
#include <cmath>

#include "lm/chat/template/base/needle.h"
#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/iteration.h"
#include "lm/chat/template/value/percent_format.h"

namespace caldera::chat {
namespace {

using Kind = Value::Kind;

[[noreturn]] void unsupported(const char* symbol, const Value& a, const Value& b) {
  require_defined(a);
  require_defined(b);
  fail("unsupported operand type(s) for {}: '{}' and '{}'", symbol, type_name(a), type_name(b));
}

constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

std::int64_t checked(bool overflow, std::int64_t result) {
  if (overflow) fail("an integer would not fit into 64 bits");
  return result;
}

std::int64_t floor_division(std::int64_t a, std::int64_t b) {
  if (b == 0) fail("integer division or modulo by zero");
  if (b == -1) {
    std::int64_t result = 0;
    const bool overflow = __builtin_sub_overflow(std::int64_t{0}, a, &result);
    return checked(overflow, result);
  }
  const std::int64_t quotient = a / b;
  return quotient - static_cast<std::int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

std::int64_t modulo(std::int64_t a, std::int64_t b) {
  if (b == 0) fail("integer modulo by zero");
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  std::int64_t result = 1;
  bool overflow = false;
  while (exponent > 0) {
    if ((exponent & 1) != 0) overflow = __builtin_mul_overflow(result, base, &result) || overflow;
    exponent >>= 1;
    if (exponent > 0) overflow = __builtin_mul_overflow(base, base, &base) || overflow;
    if (overflow && base != 0) checked(true, 0);
  }
  return checked(overflow, result);
}

Value integer_arithmetic(std::int64_t a, Arithmetic how, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (how) {
    case Arithmetic::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Arithmetic::subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Arithmetic::multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Arithmetic::divide:
      if (b == 0) fail("division by zero");
      return static_cast<double>(a) / static_cast<double>(b);
    case Arithmetic::floor_divide:
      result = floor_division(a, b);
      break;
    case Arithmetic::modulo:
      result = modulo(a, b);
      break;
    case Arithmetic::power:
      return integer_power(a, b);
  }
  return checked(overflow, result);
}

double float_modulo(double a, double b) {
  if (b == 0) fail("float modulo");
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return rest == 0 ? std::copysign(0.0, b) : rest;
}

double float_floor_division(double a, double b) {
  if (b == 0) fail("float floor division by zero");
  const double rest = float_modulo(a, b);
  const double quotient = (a - rest) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value float_arithmetic(double a, Arithmetic how, double b) {
  switch (how) {
    case Arithmetic::add:
      return a + b;
    case Arithmetic::subtract:
      return a - b;
    case Arithmetic::multiply:
      return a * b;
    case Arithmetic::divide:
      if (b == 0) fail("float division by zero");
      return a / b;
    case Arithmetic::floor_divide:
      return float_floor_division(a, b);
    case Arithmetic::modulo:
      return float_modulo(a, b);
    case Arithmetic::power:
      break;
  }
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(b) && b != std::floor(b)) fail("a power that is a complex number");
  const double power = std::pow(a, b);
  if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) fail("the result of a power is too large");
  return power;
}

Value repeat(const Value& what, std::int64_t count) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  if (what.is_text()) {
    TextBuilder text;
    text.repeat(what.bytes(), times);
    return text.finish();
  }
  ListBuilder list;
  const auto& items = what.items();
  for (std::size_t i = 0; i < times && !items.empty(); ++i) {
    for (const Value& item : items) list.add(item);
  }
  return list.finish(what.is_list() ? SequenceKind::list : SequenceKind::tuple);
}

Value join_sequences(const Value& a, const Value& b) {
  ListBuilder list;
  for (const Value& item : a.items()) list.add(item);
  for (const Value& item : b.items()) list.add(item);
  return list.finish(a.is_list() ? SequenceKind::list : SequenceKind::tuple);
}

bool repeatable(const Value& value) { return value.is_text() || value.is_list() || value.is_tuple(); }

template <class T>
bool in_order(const T& a, Ordering how, const T& b) {
  switch (how) {
    case Ordering::less:
      return a < b;
    case Ordering::less_equal:
      return a <= b;
    case Ordering::greater:
      return a > b;
    case Ordering::greater_equal:
      return a >= b;
  }
  return false;
}

}  // namespace

bool ordered(const Value& a, Ordering how, const Value& b) {
  step();
  if (a.is_number() && b.is_number()) {
    const int order = compare_numbers(a, b);
    return order != 2 && in_order(order, how, 0);
  }
  // UTF-8 sorts as its code points do.
  if (a.is_text() && b.is_text()) return in_order(a.bytes().compare(b.bytes()), how, 0);
  if ((a.is_list() && b.is_list()) || (a.is_tuple() && b.is_tuple())) {
    check_stack();
    const std::size_t common = std::min(a.items().size(), b.items().size());
    for (std::size_t i = 0; i < common; ++i) {
      if (!equal(a.items()[i], b.items()[i])) return ordered(a.items()[i], how, b.items()[i]);
    }
    return in_order(a.items().size(), how, b.items().size());
  }
  require_defined(a);
  require_defined(b);
  constexpr const char* kNames[] = {"<", "<=", ">", ">="};
  fail("'{}' not supported between instances of '{}' and '{}'", kNames[static_cast<std::size_t>(how)],
       type_name(a), type_name(b));
}

Value arithmetic(const Value& a, Arithmetic how, const Value& b) {
  if (how == Arithmetic::modulo && a.is_text()) return percent_format(a, b);
  if (a.is_integral() && b.is_integral()) return integer_arithmetic(a.integral(), how, b.integral());
  if (a.is_number() && b.is_number()) return float_arithmetic(a.real(), how, b.real());
  if (how == Arithmetic::add) {
    if (a.is_text() && b.is_text()) {
      TextBuilder text;
      text.add(a.text());
      text.add(b.text());
      return text.finish();
    }
    if ((a.is_list() && b.is_list()) || (a.is_tuple() && b.is_tuple())) return join_sequences(a, b);
    if (a.is_text() && !b.is_undefined()) fail("can only concatenate str (not \"{}\") to str", type_name(b));
    if (a.is_list() && !b.is_undefined())
      fail("can only concatenate list (not \"{}\") to list", type_name(b));
  }
  if (how == Arithmetic::multiply) {
    if (repeatable(a) && b.is_integral()) return repeat(a, b.integral());
    if (repeatable(b) && a.is_integral()) return repeat(b, a.integral());
  }
  unsupported(kSymbols[static_cast<std::size_t>(how)], a, b);
}

Value negative(const Value& value) {
  if (value.is_integral()) return integer_arithmetic(0, Arithmetic::subtract, value.integral());
  if (value.kind() == Kind::real) return -value.real();
  require_defined(value);
  fail("bad operand type for unary -: '{}'", type_name(value));
}

Value positive(const Value& value) {
  if (value.is_integral()) return value.integral();
  if (value.kind() == Kind::real) return value;
  require_defined(value);
  fail("bad operand type for unary +: '{}'", type_name(value));
}

bool contains(const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::text:
      if (!item.is_text()) fail("'in <string>' requires string as left operand, not {}", type_name(item));
      return Needle(item.bytes()).find(container.bytes()) != std::string::npos;
    case Kind::dict:
      return find_key(container.dict(), item) != nullptr;
    case Kind::undefined:
      return false;
    default:
      break;
  }
  const bool iterable = container.is_sequence() || container.is_object(ObjectKind::iterator);
  if (!iterable) fail("argument of type '{}' is not iterable", type_name(container));
  Iteration iteration(container);
  Value each;
  while (iteration.next(each)) {
    if (each.same_as(item) || equal(each, item)) return true;
  }
  return false;
}

std::int64_t length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::text:
      return static_cast<std::int64_t>(value.text().length);
    case Kind::sequence:
      return static_cast<std::int64_t>(value.items().size());
    case Kind::dict:
      return static_cast<std::int64_t>(value.dict().entries.size());
    case Kind::object:
      if (const std::int64_t length = value.object().length(); length >= 0) return length;
      break;
    default:
      break;
  }
  fail("object of type '{}' has no len()", type_name(value));
}

bool place_of(std::int64_t index, std::size_t length, std::size_t& place) {
  const auto size = static_cast<std::int64_t>(length);
  if (index < 0) index += size;
  place = static_cast<std::size_t>(index);
  return index >= 0 && index < size;
}

}  // namespace caldera::chat
