// What every value has: a type, a truth, equality and a hash.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "lm/chat/template/value/value.h"

namespace caldera::chat {
namespace {

using Kind = Value::Kind;

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = find_key(b, entry.first);
    return other != nullptr && equal(entry.second, *other);
  });
}

bool equal_sequences(const Value& a, const Value& b) {
  if (&a.sequence() == &b.sequence()) return true;
  const bool both_tuples = a.is_tuple() && b.is_tuple();
  if (!both_tuples && a.sequence().kind != b.sequence().kind) return false;
  if (a.is_sequence(SequenceKind::dict_values) || a.items().size() != b.items().size()) return false;
  for (std::size_t i = 0; i < a.items().size(); ++i) {
    if (!equal(a.items()[i], b.items()[i])) return false;
  }
  return true;
}

/// Spreads what std::hash gives, in a way that no template knows beforehand: else one could choose keys that
/// all fall into one bucket.
std::size_t spread(std::size_t hash) {
  static const std::uint64_t kSecret = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  std::uint64_t x = hash ^ kSecret;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return static_cast<std::size_t>(x ^ (x >> 31));
}

}  // namespace

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) {
    return a.integral() < b.integral() ? -1 : static_cast<int>(a.integral() > b.integral());
  }
  if (a.is_integral() != b.is_integral()) {
    const bool swapped = b.is_integral();
    const std::int64_t whole = swapped ? b.integral() : a.integral();
    const double real = swapped ? a.real() : b.real();
    if (std::isnan(real)) return 2;
    int result = 0;
    if (real >= 9223372036854775808.0) {
      result = -1;
    } else if (real < -9223372036854775808.0) {
      result = 1;
    } else {
      const auto floored = static_cast<std::int64_t>(std::floor(real));
      result = whole < floored ? -1 : whole > floored ? 1 : real > std::floor(real) ? -1 : 0;
    }
    return swapped ? -result : result;
  }
  if (std::isnan(a.real()) || std::isnan(b.real())) return 2;
  return a.real() < b.real() ? -1 : static_cast<int>(a.real() > b.real());
}

std::string type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::text:
      return "str";
    case Kind::dict:
      return "dict";
    case Kind::object:
      return value.object().type_name();
    case Kind::sequence:
      break;
  }
  constexpr const char* kNames[] = {"list",      "tuple",       "range",     "_GroupTuple",
                                    "dict_keys", "dict_values", "dict_items"};
  return kNames[static_cast<std::size_t>(value.sequence().kind)];
}

void require_defined(const Value& value) {
  if (value.is_undefined()) throw Fault{value.missing().message};
}

std::int64_t require_integer(const Value& value, std::string_view what) {
  require_defined(value);
  if (!value.is_integral()) fail("{} must be an int, not '{}'", what, type_name(value));
  return value.integral();
}

const std::string& require_text(const Value& value, std::string_view what) {
  if (!value.is_text()) fail("{} must be str, not {}", what, type_name(value));
  return value.bytes();
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return value.boolean();
    case Kind::integer:
      return value.integral() != 0;
    case Kind::real:
      return value.real() != 0;
    case Kind::text:
      return !value.bytes().empty();
    case Kind::sequence:
      return !value.items().empty();
    case Kind::dict:
      return !value.dict().entries.empty();
    case Kind::object:
      return true;
  }
  return false;
}

bool equal(const Value& a, const Value& b) {
  step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::text:
      step(a.bytes().size() / 64);
      return a.bytes() == b.bytes();
    case Kind::sequence:
      check_stack();
      return equal_sequences(a, b);
    case Kind::dict:
      check_stack();
      return &a.dict() == &b.dict() || equal_dicts(a.dict(), b.dict());
    case Kind::object:
      if (a.is_object(ObjectKind::large_integer) && b.is_object(ObjectKind::large_integer))
        return a.as<LargeInteger>().digits == b.as<LargeInteger>().digits;
      return &a.object() == &b.object();
    default:
      return true;
  }
}

std::size_t hash_of(const Value& value) {
  step();
  switch (value.kind()) {
    case Kind::undefined:
      return 1;
    case Kind::none:
      return 2;
    case Kind::boolean:
    case Kind::integer:
      return spread(std::hash<std::int64_t>{}(value.integral()));
    case Kind::real: {
      const double x = value.real();
      const bool whole = x == std::floor(x) && x >= -9.2e18 && x <= 9.2e18;
      return spread(whole ? std::hash<std::int64_t>{}(static_cast<std::int64_t>(x)) : std::hash<double>{}(x));
    }
    case Kind::text:
      step(value.bytes().size() / 64);
      return spread(std::hash<std::string>{}(value.bytes()));
    case Kind::object:
      if (value.is_object(ObjectKind::large_integer))
        return spread(std::hash<std::string>{}(value.as<LargeInteger>().digits));
      return std::hash<const void*>{}(&value.object());
    case Kind::dict:
      fail("unhashable type: 'dict'");
    case Kind::sequence:
      break;
  }
  if (!value.is_tuple() && !value.is_sequence(SequenceKind::range))
    fail("unhashable type: '{}'", type_name(value));
  check_stack();
  std::size_t hash = value.is_tuple() ? 77 : 78;
  for (const Value& item : value.items()) hash = hash * 1000003 + hash_of(item);
  return hash;
}

const Value* find_key(const Dict& dict, const Value& key) {
  const auto [first, last] = dict.places.equal_range(hash_of(key));
  for (auto place = first; place != last; ++place) {
    const auto& entry = dict.entries[place->second];
    if (equal(entry.first, key)) return &entry.second;
  }
  return nullptr;
}

}  // namespace caldera::chat
