// Goes through the items of a value, one after the other.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "lm/chat/template/value/value.h"

namespace caldera::chat {

/// Gives the items of whatever can be iterated, one after the other.
class Iteration {
 public:
  /// Throws a Fault for what cannot be iterated.
  explicit Iteration(Value over);
  bool next(Value& item);

 private:
  Value over_;
  std::size_t at_ = 0;
};

/// A generator: what filters such as map give. It can be gone through once.
struct Iterator final : Object {
  /// `nesting` is that of what it draws from.
  Iterator(std::string name, std::size_t nesting, std::function<bool(Value&)> next);
  std::string type_name() const override { return "generator"; }
  std::string repr() const override;
  bool next(Value& item);

  std::string name;
  std::function<bool(Value&)> step_on;
};

}  // namespace caldera::chat
