// Macros, and the bodies of call blocks, which are macros without a name.
#include <algorithm>
#include <utility>

#include "lm/chat/template/interpreter.h"

namespace caldera::chat {
namespace {

struct Macro final : Function {
  Macro(const Stmt& defined, Body does) : Function(defined.name, std::move(does)), statement(defined) {}
  std::string type_name() const override { return "Macro"; }
  std::string repr() const override { return name.empty() ? "<Macro anonymous>" : "<Macro '" + name + "'>"; }

  bool attribute(std::string_view of, Value& out) override {
    const Signature& signature = statement.signature;
    if (of == "name") {
      out = name.empty() ? Value() : Value(name);
    } else if (of == "arguments") {
      out = make_tuple({signature.names.begin(), signature.names.end()});
    } else if (of == "caller") {
      out = signature.uses_caller;
    } else if (of == "catch_kwargs") {
      out = signature.uses_kwargs;
    } else if (of == "catch_varargs") {
      out = signature.uses_varargs;
    } else {
      return false;
    }
    return true;
  }

  const Stmt& statement;
};

/// Takes an argument out of those given by name; false where it is not there.
bool take_named(Arguments& arguments, std::string_view name, Value& out) {
  step(arguments.named.size() / 4);
  const auto place = std::find_if(arguments.named.begin(), arguments.named.end(),
                                  [&](const auto& named) { return named.first == name; });
  if (place == arguments.named.end()) return false;
  out = std::move(place->second);
  arguments.named.erase(place);
  return true;
}

}  // namespace

Value Interpreter::make_macro(const Stmt& statement, const ScopePointer& scope) {
  if (!std::exchange(scope->kept, true)) closures_.push_back(scope);
  return Value(std::make_shared<Macro>(statement, [this, &statement, scope](Arguments& arguments) {
    return call_macro(statement, scope, arguments);
  }));
}

Value Interpreter::call_macro(const Stmt& statement, const ScopePointer& closure, Arguments& arguments) {
  const auto scope = std::make_shared<Scope>(closure, statement.unset);
  bind_arguments(statement, arguments, *scope);
  TextBuilder out;
  execute(statement.body, scope, out);
  return out.finish();
}

void Interpreter::bind_arguments(const Stmt& statement, Arguments& arguments, Scope& scope) {
  const Signature& signature = statement.signature;
  const std::size_t count = signature.names.size();
  const std::string& name = statement.name;
  std::vector<bool> missing(count, false);
  bool found_caller = false;
  for (std::size_t i = 0; i < count; ++i) {
    Value value;
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else if (!take_named(arguments, signature.names[i], value)) {
      missing[i] = true;
      value = Value::undefined("parameter '" + signature.names[i] + "' was not provided");
    }
    found_caller = found_caller || signature.names[i] == "caller";
    scope.set(signature.names[i], std::move(value));
  }
  if (signature.uses_caller && !found_caller) {
    Value caller;
    if (!take_named(arguments, "caller", caller) || caller.is_none())
      caller = Value::undefined("No caller defined");
    scope.set("caller", std::move(caller));
  }
  if (signature.uses_kwargs) {
    DictBuilder rest;
    for (auto& [key, value] : arguments.named) rest.set(Value(key), std::move(value));
    scope.set("kwargs", rest.finish());
  } else if (!arguments.named.empty()) {
    fail("macro '{}' takes no keyword argument '{}'", name, arguments.named.front().first);
  }
  if (signature.uses_varargs) {
    ListBuilder rest;
    for (std::size_t i = count; i < arguments.positional.size(); ++i) rest.add(arguments.positional[i]);
    scope.set("varargs", rest.finish(SequenceKind::tuple));
  } else if (arguments.positional.size() > count) {
    fail("macro '{}' takes not more than {} argument(s)", name, count);
  }
  const std::size_t first_default = count - signature.defaults.size();
  for (std::size_t i = first_default; i < count; ++i) {
    if (missing[i]) scope.set(signature.names[i], evaluate(*signature.defaults[i - first_default], scope));
  }
}

}  // namespace caldera::chat
