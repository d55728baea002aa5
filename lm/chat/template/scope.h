// The variables that a part of a template sees.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lm/chat/template/value/value.h"

namespace caldera::chat {

/// Loops, macros and blocks have scopes of their own; branches have not. A variable is set in the innermost
/// scope, and read from the innermost that has it.
struct Scope {
  explicit Scope(std::shared_ptr<Scope> outer) : parent(std::move(outer)), charge(sizeof(Scope)) {}

  /// The names, which live as long as the template does, begin as undefined.
  Scope(std::shared_ptr<Scope> outer, const std::vector<std::string>& unset) : Scope(std::move(outer)) {
    begin(unset);
  }

  void begin(const std::vector<std::string>& unset) {
    variables.clear();
    for (const std::string& name : unset) set(name, Value::undefined("'" + name + "' is undefined"));
  }

  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
      step(scope->variables.size() / 8);
      for (const auto& [key, value] : scope->variables) {
        if (key == name) return &value;
      }
    }
    return nullptr;
  }

  /// `name` lives as long as the template does.
  void set(std::string_view name, Value value) {
    step(variables.size() / 8);
    for (auto& [key, old] : variables) {
      if (key == name) {
        std::swap(old, value);
        return;
      }
    }
    charge.resize(sizeof(Scope) + (variables.size() + 1) * 2 * sizeof(variables[0]));
    variables.emplace_back(name, std::move(value));
  }

  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables;
  Charge charge;
  bool kept = false;  ///< a macro refers to it
};

}  // namespace caldera::chat
