#include "lm/chat/template/value/function.h"

#include <algorithm>

namespace caldera::chat {

Function::Function(std::string of, Body does, std::size_t nesting)
    : Object(ObjectKind::function, nesting), name(std::move(of)), body(std::move(does)) {}

Value call_value(const Value& callee, Arguments& arguments) {
  require_defined(callee);
  if (!callee.is_object(ObjectKind::function)) fail("'{}' object is not callable", type_name(callee));
  step();
  check_stack();
  // Held by this call: the name it was reached by may be given another value inside of it.
  const Value held = callee;  // NOLINT(performance-unnecessary-copy-initialization)
  return held.as<Function>().body(arguments);
}

Parameters::Parameters(std::string_view function, Arguments& arguments,
                       std::initializer_list<std::string_view> names, std::size_t required)
    : function_(function), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names.size()) {
    fail("{}() takes at most {} argument(s) ({} given)", function, names.size(), arguments.positional.size());
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto* place = std::find(names.begin(), names.end(), name);
    if (place == names.end()) fail("{}() got an unexpected keyword argument '{}'", function, name);
    const auto i = static_cast<std::size_t>(place - names.begin());
    if (values_[i] != nullptr) fail("{}() got multiple values for argument '{}'", function, name);
    values_[i] = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) fail("{}() missing required argument: '{}'", function, *(names.begin() + i));
  }
}

std::int64_t Parameters::integer(std::size_t i, std::int64_t otherwise) const {
  return has(i) ? require_integer((*this)[i], std::string(function_) + "() argument") : otherwise;
}

std::string Parameters::text(std::size_t i, std::string_view otherwise) const {
  return has(i) ? require_text((*this)[i], std::string(function_) + "() argument") : std::string(otherwise);
}

}  // namespace caldera::chat
