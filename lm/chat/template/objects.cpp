#include "lm/chat/template/objects.h"

#include <algorithm>

#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/operators.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {

std::string Namespace::repr() const {
  check_stack();
  TextBuilder out;
  out.add("<Namespace {");
  bool first = true;
  for (const auto& [name, value] : entries_) {
    if (!first) out.add(", ");
    first = false;
    add_text_repr(out, name);
    out.add(": ");
    add_repr(out, value);
  }
  out.add("}>");
  return out.take();
}

bool Namespace::attribute(std::string_view name, Value& out) {
  step(entries_.size() / 8);
  for (const auto& [key, value] : entries_) {
    if (key == name) {
      out = value;
      return true;
    }
  }
  return false;
}

void Namespace::set(const std::string& name, Value value) {
  step(1 + entries_.size() / 8);
  const auto place =
      std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.first == name; });
  if (place != entries_.end()) {
    // The old value is freed last: it may hold what leads back here.
    std::swap(place->second, value);
    return;
  }
  charge.resize(96 + (entries_.size() + 1) * 96);
  entries_.emplace_back(name, std::move(value));
}

bool Cycler::attribute(std::string_view name, Value& out) {
  if (name == "current") {
    out = items.items()[at];
  } else if (name == "next" || name == "reset") {
    const bool reset = name == "reset";
    out = Value(std::make_shared<Function>(
        std::string(name),
        [self = shared_from_this(), reset](Arguments& arguments) {
          const Parameters none("next", arguments, {});
          Value value = reset ? Value() : self->items.items()[self->at];
          self->at = reset ? 0 : (self->at + 1) % self->items.items().size();
          return value;
        },
        depth));
  } else {
    return false;
  }
  return true;
}

Loop::Loop(const Value& over, std::int64_t level, Function::Body recursion, Keep& keep)
    : Object(ObjectKind::loop, over.depth()),
      recurse(std::move(recursion)),
      keep_(keep),
      items_(over),
      known_length_(over.is_object() ? -1 : length_of(over)),
      level_(level) {}

std::string Loop::repr() const {
  return fmt::format("<LoopContext {}/{}>", index_, std::max<std::int64_t>(known_length_, 0));
}

bool Loop::peek() {
  if (!ahead_.empty()) return true;
  Value item;
  if (!items_.next(item)) return false;
  ahead_.push_back(std::move(item));
  return true;
}

bool Loop::next(Value& item) {
  if (!peek()) return false;
  previous_ = std::exchange(current_, ahead_.front());
  ahead_.pop_front();
  item = current_;
  ++index_;
  return true;
}

std::int64_t Loop::length() {
  if (known_length_ < 0) {
    Value item;
    while (items_.next(item)) {
      charge.resize(96 + (ahead_.size() + 1) * sizeof(Value));
      ahead_.push_back(std::move(item));
    }
    known_length_ = index_ + static_cast<std::int64_t>(ahead_.size());
  }
  return known_length_;
}

Value Loop::changed(Arguments& arguments) {
  const Value now = make_tuple(arguments.positional);
  if (has_changed_ && equal(now, last_changed_)) return false;
  if (!has_changed_) keep_.add(shared_from_this());
  has_changed_ = true;
  last_changed_ = now;
  return true;
}

bool Loop::position_attribute(std::string_view name, Value& out) {
  if (name == "index") {
    out = index_;
  } else if (name == "index0") {
    out = index_ - 1;
  } else if (name == "first") {
    out = index_ == 1;
  } else if (name == "last") {
    out = !peek();
  } else if (name == "length") {
    out = length();
  } else if (name == "revindex") {
    out = length() - index_ + 1;
  } else if (name == "revindex0") {
    out = length() - index_;
  } else if (name == "depth") {
    out = level_ + 1;
  } else if (name == "depth0") {
    out = level_;
  } else {
    return false;
  }
  return true;
}

bool Loop::attribute(std::string_view name, Value& out) {
  if (position_attribute(name, out)) return true;
  if (name == "previtem") {
    out = index_ == 1 ? Value::undefined("there is no previous item") : previous_;
  } else if (name == "nextitem") {
    out = peek() ? ahead_.front() : Value::undefined("there is no next item");
  } else if (name == "cycle") {
    out = Value(std::make_shared<Function>(
        "cycle",
        [self = shared_from_this()](Arguments& arguments) {
          if (arguments.positional.empty()) fail("no items for cycling given");
          const auto i = static_cast<std::size_t>(self->index_ - 1);
          return arguments.positional[i % arguments.positional.size()];
        },
        depth));
  } else if (name == "changed") {
    out = Value(std::make_shared<Function>(
        "changed", [self = shared_from_this()](Arguments& arguments) { return self->changed(arguments); },
        depth));
  } else {
    return false;
  }
  return true;
}

Keep::~Keep() {
  for (const auto& object : objects_) object->clear();
}

void Keep::add(std::shared_ptr<Object> object) { objects_.push_back(std::move(object)); }

}  // namespace caldera::chat
