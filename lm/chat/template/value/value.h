// The values that a template computes with: Python's, as far as templates can tell.
//
// Texts, sequences and dicts do not change once made, as the sandbox of the original has it; only a namespace
// does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "lm/chat/template/base/budget.h"

namespace caldera::chat {

class Value;
class Runtime;

/// A part of a text, in bytes, that is in a generation block.
struct ByteSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Holds what an operation on an undefined value says of it.
struct Missing {
  std::string message;
};

struct Text {
  std::string bytes;
  std::size_t length = 0;       ///< in code points
  std::vector<ByteSpan> spans;  ///< sorted and apart from one another
  Charge charge;
};

enum class SequenceKind : std::uint8_t { list, tuple, range, group, dict_keys, dict_values, dict_items };

struct Sequence {
  SequenceKind kind = SequenceKind::list;
  std::size_t depth = 1;  ///< of the nesting of values in one another
  std::vector<Value> items;
  std::int64_t start = 0, stop = 0, stride = 1;  ///< of a range
  Charge charge;
};

struct Dict {
  std::size_t depth = 1;
  std::vector<std::pair<Value, Value>> entries;              ///< in the order of insertion
  std::unordered_multimap<std::size_t, std::size_t> places;  ///< hash of a key -> entry
  Charge charge;
};

enum class ObjectKind : std::uint8_t { function, name_space, iterator, loop, cycler, large_integer };

/// Whatever else a name can mean: functions, namespaces, loops, iterators.
struct Object {
  Object(ObjectKind of, std::size_t nesting);
  virtual ~Object() = default;
  /// Name of the Python type, for messages.
  virtual std::string type_name() const = 0;
  virtual std::string repr() const;
  /// Gives an attribute, as `object.name` asks for it; false where there is none of that name.
  virtual bool attribute(std::string_view name, Value& out);
  /// len(object); -1 where it has none.
  virtual std::int64_t length() { return -1; }
  /// Forgets other values, so that objects which hold one another in a circle can be freed.
  virtual void clear() {}

  ObjectKind kind;
  std::size_t depth;
  Charge charge;
};

/// Holds an integer of a conversation that 64 bits do not: it is written as Python writes it and compared
/// with its like, and not computed with.
struct LargeInteger final : Object {
  explicit LargeInteger(std::string of) : Object(ObjectKind::large_integer, 0), digits(std::move(of)) {}
  std::string type_name() const override { return "int"; }
  std::string repr() const override { return digits; }

  std::string digits;  ///< in decimal, after a minus where it has one
};

class Value {
 public:
  enum class Kind : std::uint8_t { undefined, none, boolean, integer, real, text, sequence, dict, object };

  Value() : data_(std::monostate{}) {}
  Value(bool value) : data_(value) {}                                  // NOLINT(google-explicit-constructor)
  Value(std::int64_t value) : data_(value) {}                          // NOLINT(google-explicit-constructor)
  Value(double value) : data_(value) {}                                // NOLINT(google-explicit-constructor)
  Value(std::string text);                                             // NOLINT(google-explicit-constructor)
  Value(std::string_view text) : Value(std::string(text)) {}           // NOLINT(google-explicit-constructor)
  Value(const char* text) : Value(std::string(text)) {}                // NOLINT(google-explicit-constructor)
  Value(std::shared_ptr<const Text> text) : data_(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  Value(std::shared_ptr<const Sequence> items)
      : data_(std::move(items)) {}                                     // NOLINT(google-explicit-constructor)
  Value(std::shared_ptr<const Dict> dict) : data_(std::move(dict)) {}  // NOLINT(google-explicit-constructor)
  Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}  // NOLINT(google-explicit-constructor)
  static Value undefined(std::string message);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is_undefined() const { return kind() == Kind::undefined; }
  bool is_none() const { return kind() == Kind::none; }
  bool is_bool() const { return kind() == Kind::boolean; }
  bool is_text() const { return kind() == Kind::text; }
  bool is_sequence() const { return kind() == Kind::sequence; }
  bool is_sequence(SequenceKind of) const { return is_sequence() && sequence().kind == of; }
  bool is_list() const { return is_sequence(SequenceKind::list); }
  /// A tuple, be it one with names.
  bool is_tuple() const { return is_sequence(SequenceKind::tuple) || is_sequence(SequenceKind::group); }
  bool is_dict() const { return kind() == Kind::dict; }
  bool is_object() const { return kind() == Kind::object; }
  bool is_object(ObjectKind of) const { return is_object() && object().kind == of; }
  /// An int or a bool, which Python counts among the ints.
  bool is_integral() const { return kind() == Kind::integer || kind() == Kind::boolean; }
  bool is_number() const { return is_integral() || kind() == Kind::real; }

  /// Return what is held. Ask only where the kind is that one.
  const Missing& missing() const { return *std::get<0>(data_); }
  bool boolean() const { return std::get<bool>(data_); }
  std::int64_t integral() const {
    return is_bool() ? static_cast<std::int64_t>(boolean()) : std::get<std::int64_t>(data_);
  }
  double real() const {
    return kind() == Kind::real ? std::get<double>(data_) : static_cast<double>(integral());
  }
  const Text& text() const { return *std::get<std::shared_ptr<const Text>>(data_); }
  const std::string& bytes() const { return text().bytes; }
  const Sequence& sequence() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const std::vector<Value>& items() const { return sequence().items; }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Object& object() const { return *std::get<std::shared_ptr<Object>>(data_); }
  template <class T>
  T& as() const {
    return static_cast<T&>(object());
  }
  const std::shared_ptr<Object>& object_pointer() const { return std::get<std::shared_ptr<Object>>(data_); }

  /// Whether both are one and the same.
  bool same_as(const Value& other) const;
  /// 0 for what holds no other values.
  std::size_t depth() const;

 private:
  std::variant<std::shared_ptr<const Missing>, std::monostate, bool, std::int64_t, double,
               std::shared_ptr<const Text>, std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>,
               std::shared_ptr<Object>>
      data_;
};

/// Throws a Fault where values would nest beyond the limit.
void check_depth(std::size_t depth);

Value make_text(std::string bytes, std::vector<ByteSpan> spans);
/// Name of the value's Python type, as type(x).__name__.
std::string type_name(const Value& value);
bool truth(const Value& value);
bool equal(const Value& a, const Value& b);
/// Throws a Fault for values that have no hash.
std::size_t hash_of(const Value& value);
/// -1, 0 or 1 as number `a` is less than, equal to or greater than `b`, exactly; 2 where one is not a number.
int compare_numbers(const Value& a, const Value& b);
/// The value of a key, or nullptr.
const Value* find_key(const Dict& dict, const Value& key);

/// Throws a Fault with what an undefined value has to say, if the value is one.
void require_defined(const Value& value);
/// The value as an index or count; throws a Fault where it is no int.
std::int64_t require_integer(const Value& value, std::string_view what);
const std::string& require_text(const Value& value, std::string_view what);

}  // namespace caldera::chat
