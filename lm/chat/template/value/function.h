// Functions of a template, and the arguments they are called with.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lm/chat/template/value/value.h"

namespace caldera::chat {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// Whatever can be called: functions, methods with the value they belong to, macros.
struct Function : Object {
  using Body = std::function<Value(Arguments&)>;

  /// `nesting` is that of the values which the body holds.
  Function(std::string name, Body body, std::size_t nesting = 0);
  std::string type_name() const override { return "function"; }
  std::string repr() const override { return "<function " + name + ">"; }

  std::string name;
  Body body;
};

/// Calls a value. Throws a Fault for what cannot be called.
Value call_value(const Value& callee, Arguments& arguments);

/// Arguments by the names of a function's parameters.
class Parameters {
 public:
  /// Throws a Fault where one of the first `required` is missing, and for arguments that the function does
  /// not take.
  Parameters(std::string_view function, Arguments& arguments, std::initializer_list<std::string_view> names,
             std::size_t required = 0);

  bool has(std::size_t i) const { return values_[i] != nullptr; }
  const Value& operator[](std::size_t i) const { return *values_[i]; }
  /// The argument, or what holds where it is missing.
  Value get(std::size_t i, const Value& otherwise) const { return has(i) ? *values_[i] : otherwise; }
  bool truth_of(std::size_t i, bool otherwise) const { return has(i) ? truth(*values_[i]) : otherwise; }
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  std::string text(std::size_t i, std::string_view otherwise) const;

 private:
  std::string_view function_;
  std::vector<const Value*> values_;
};

}  // namespace caldera::chat
