#include "lm/chat/template/value/iteration.h"

#include <utility>

#include "lm/chat/template/base/unicode.h"

namespace caldera::chat {

Iterator::Iterator(std::string of, std::size_t nesting, std::function<bool(Value&)> next)
    : Object(ObjectKind::iterator, nesting), name(std::move(of)), step_on(std::move(next)) {}

std::string Iterator::repr() const { return "<generator object " + name + ">"; }

bool Iterator::next(Value& item) {
  step();
  check_stack();
  return step_on(item);
}

Iteration::Iteration(Value over) : over_(std::move(over)) {
  const bool can = over_.is_undefined() || over_.is_text() || over_.is_sequence() || over_.is_dict() ||
                   over_.is_object(ObjectKind::iterator);
  if (!can) fail("'{}' object is not iterable", type_name(over_));
}

bool Iteration::next(Value& item) {
  step();
  switch (over_.kind()) {
    case Value::Kind::sequence:
      if (at_ >= over_.items().size()) return false;
      item = over_.items()[at_++];
      return true;
    case Value::Kind::dict:
      if (at_ >= over_.dict().entries.size()) return false;
      item = over_.dict().entries[at_++].first;
      return true;
    case Value::Kind::text: {
      const std::string_view rest = std::string_view(over_.bytes()).substr(at_);
      if (rest.empty()) return false;
      const std::size_t size = first_character(rest).bytes;
      at_ += size;
      item = Value(rest.substr(0, size));
      return true;
    }
    case Value::Kind::object:
      return over_.as<Iterator>().next(item);
    default:
      return false;
  }
}

}  // namespace caldera::chat
