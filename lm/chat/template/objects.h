// Defines what the functions namespace() and cycler() and the statement for make.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lm/chat/template/value/function.h"
#include "lm/chat/template/value/iteration.h"

namespace caldera::chat {

/// The one kind of value that changes: {% set ns.x = … %}.
struct Namespace final : Object {
  Namespace() : Object(ObjectKind::name_space, 0) {}
  std::string type_name() const override { return "Namespace"; }
  std::string repr() const override;
  bool attribute(std::string_view name, Value& out) override;
  void set(const std::string& name, Value value);
  void clear() override { entries_.clear(); }

 private:
  std::vector<std::pair<std::string, Value>> entries_;
};

/// Gives its items in turn, again and again.
struct Cycler final : Object, std::enable_shared_from_this<Cycler> {
  explicit Cycler(Value tuple) : Object(ObjectKind::cycler, tuple.depth()), items(std::move(tuple)) {}
  std::string type_name() const override { return "Cycler"; }
  bool attribute(std::string_view name, Value& out) override;

  Value items;
  std::size_t at = 0;
};

/// Objects that might hold one another in a circle; they are emptied when the rendering ends, for otherwise
/// nothing would free them.
class Keep {
 public:
  ~Keep();
  void add(std::shared_ptr<Object> object);

 private:
  std::vector<std::shared_ptr<Object>> objects_;
};

/// The variable `loop`, and what moves the loop on.
struct Loop final : Object, std::enable_shared_from_this<Loop> {
  /// `recurse` renders the loop's body for other items; nothing where the loop is not recursive.
  Loop(const Value& over, std::int64_t level, Function::Body recurse, Keep& keep);
  std::string type_name() const override { return "LoopContext"; }
  std::string repr() const override;
  bool attribute(std::string_view name, Value& out) override;
  void clear() override { last_changed_ = Value::undefined(""); }

  bool next(Value& item);
  std::int64_t length() override;

  Function::Body recurse;

 private:
  bool peek();
  bool position_attribute(std::string_view name, Value& out);
  Value changed(Arguments& arguments);

  Keep& keep_;
  Iteration items_;
  std::int64_t known_length_;  ///< -1 until it has been counted
  std::deque<Value> ahead_;    ///< read from items_ before it was their turn
  Value previous_, current_;
  std::int64_t index_ = 0;  ///< from 1
  std::int64_t level_;
  Value last_changed_;
  bool has_changed_ = false;
};

}  // namespace caldera::chat
