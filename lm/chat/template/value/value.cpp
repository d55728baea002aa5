#include "lm/chat/template/value/value.h"

#include "lm/chat/template/base/unicode.h"

namespace caldera::chat {
namespace {

constexpr std::size_t kTextOverhead = sizeof(Text) + 32;

}  // namespace

Object::Object(ObjectKind of, std::size_t nesting) : kind(of), depth(nesting + 1), charge(96) {
  check_depth(depth);
}
std::string Object::repr() const { return "<" + type_name() + " object>"; }

bool Object::attribute(std::string_view /*name*/, Value& /*out*/) { return false; }

Value::Value(std::string text) : Value(make_text(std::move(text), {})) {}

Value Value::undefined(std::string message) {
  Value value;
  value.data_ = std::make_shared<const Missing>(Missing{std::move(message)});
  return value;
}

bool Value::same_as(const Value& other) const {
  if (kind() != other.kind()) return false;
  switch (kind()) {
    case Kind::sequence:
      return &sequence() == &other.sequence();
    case Kind::dict:
      return &dict() == &other.dict();
    case Kind::object:
      return &object() == &other.object();
    case Kind::undefined:
      return &missing() == &other.missing();
    case Kind::none:
      return true;
    default:
      return equal(*this, other);
  }
}

std::size_t Value::depth() const {
  switch (kind()) {
    case Kind::sequence:
      return sequence().depth;
    case Kind::dict:
      return dict().depth;
    case Kind::object:
      return object().depth;
    default:
      return 0;
  }
}

void check_depth(std::size_t depth) {
  const Budget* budget = Budget::current();
  if (budget != nullptr && depth > budget->limits().max_depth) {
    fail("values nest deeper than the limit of {} (max_depth)", budget->limits().max_depth);
  }
}

Value make_text(std::string bytes, std::vector<ByteSpan> spans) {
  Charge charge(bytes.size() + spans.size() * sizeof(ByteSpan) + kTextOverhead);
  step(bytes.size() / 64);
  const std::size_t length = code_point_count(bytes);
  return {std::make_shared<const Text>(Text{std::move(bytes), length, std::move(spans), std::move(charge)})};
}

}  // namespace caldera::chat
