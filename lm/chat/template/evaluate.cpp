// Expressions.
#include "lm/chat/template/filters/filters.h"
#include "lm/chat/template/interpreter.h"
#include "lm/chat/template/methods/attributes.h"
#include "lm/chat/template/value/iteration.h"
#include "lm/chat/template/value/operators.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {

Value Interpreter::evaluate(const Expr& expr, Scope& scope) {
  budget_.step();
  budget_.check_stack();
  at_ = expr.at;
  const auto child = [&](std::size_t i) -> Value { return evaluate(*expr.children[i], scope); };
  switch (expr.kind) {
    case ExprKind::constant:
      return expr.value;
    case ExprKind::name:
    case ExprKind::member:
      return evaluate_name(expr, scope);
    case ExprKind::attribute: {
      const Value subject = child(0);
      at_ = expr.at;
      return get_attribute(subject, expr.name);
    }
    case ExprKind::item: {
      const Value subject = child(0);
      const Value key = child(1);
      at_ = expr.at;
      return get_item(subject, key);
    }
    case ExprKind::slice:
      return evaluate_slice(expr, scope);
    case ExprKind::call:
      return evaluate_call(expr, scope, nullptr);
    case ExprKind::filter:
      return evaluate_filter(expr, scope);
    case ExprKind::test:
      return evaluate_test(expr, scope);
    case ExprKind::logical_not:
      return !truth(child(0));
    case ExprKind::logical_and: {
      Value left = child(0);
      return truth(left) ? child(1) : left;
    }
    case ExprKind::logical_or: {
      Value left = child(0);
      return truth(left) ? left : child(1);
    }
    case ExprKind::negative:
      return negative(child(0));
    case ExprKind::positive:
      return positive(child(0));
    case ExprKind::arithmetic: {
      const Value left = child(0);
      const Value right = child(1);
      at_ = expr.at;
      return arithmetic(left, expr.operation, right);
    }
    case ExprKind::compare:
      return evaluate_compare(expr, scope);
    case ExprKind::concat:
      return evaluate_concat(expr, scope);
    case ExprKind::conditional:
      return evaluate_conditional(expr, scope);
    case ExprKind::list:
      return evaluate_items(expr, scope, SequenceKind::list);
    case ExprKind::tuple:
      return evaluate_items(expr, scope, SequenceKind::tuple);
    case ExprKind::dict:
      return evaluate_dict(expr, scope);
  }
  return {};
}

Value Interpreter::evaluate_name(const Expr& expr, const Scope& scope) {
  if (const Value* found = scope.find(expr.name)) return *found;
  const auto variable = variables_.find(expr.name);
  if (variable != variables_.end()) return variable->second;
  Value global;
  if (find_global(expr.name, now_, keep_, global)) return global;
  return Value::undefined("'" + expr.name + "' is undefined");
}

Value Interpreter::evaluate_compare(const Expr& expr, Scope& scope) {
  Value left = evaluate(*expr.children[0], scope);
  for (std::size_t i = 0; i < expr.comparisons.size(); ++i) {
    Value right = evaluate(*expr.children[i + 1], scope);
    at_ = expr.at;
    bool holds = false;
    switch (expr.comparisons[i]) {
      case Comparison::equal:
        holds = equal(left, right);
        break;
      case Comparison::unequal:
        holds = !equal(left, right);
        break;
      case Comparison::less:
        holds = ordered(left, Ordering::less, right);
        break;
      case Comparison::less_equal:
        holds = ordered(left, Ordering::less_equal, right);
        break;
      case Comparison::greater:
        holds = ordered(left, Ordering::greater, right);
        break;
      case Comparison::greater_equal:
        holds = ordered(left, Ordering::greater_equal, right);
        break;
      case Comparison::in:
        holds = contains(right, left);
        break;
      case Comparison::not_in:
        holds = !contains(right, left);
        break;
    }
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate_slice(const Expr& expr, Scope& scope) {
  const Value subject = evaluate(*expr.children[0], scope);
  Value bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (expr.children[i + 1] != nullptr) bounds[i] = evaluate(*expr.children[i + 1], scope);
  }
  at_ = expr.at;
  return slice_of(subject, bounds[0], bounds[1], bounds[2]);
}

Arguments Interpreter::evaluate_arguments(const CallArguments& given, Scope& scope) {
  Arguments arguments;
  for (const Expr* expr : given.positional) arguments.positional.push_back(evaluate(*expr, scope));
  if (given.more_positional != nullptr) {
    Iteration items(evaluate(*given.more_positional, scope));
    Value item;
    ListBuilder more;
    while (items.next(item)) more.add(std::move(item));
    arguments.positional.insert(arguments.positional.end(), more.items().begin(), more.items().end());
  }
  for (const auto& [name, expr] : given.named) arguments.named.emplace_back(name, evaluate(*expr, scope));
  if (given.more_named != nullptr) {
    const Value more = evaluate(*given.more_named, scope);
    if (!more.is_dict()) fail("argument after ** must be a mapping, not {}", type_name(more));
    for (const auto& [key, value] : more.dict().entries) {
      step(1 + given.named.size() / 4);
      if (!key.is_text()) fail("keywords must be strings");
      for (const auto& [name, expr] : given.named) {
        if (name == key.bytes()) fail("got multiple values for keyword argument '{}'", name);
      }
      arguments.named.emplace_back(key.bytes(), value);
    }
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Expr& expr, Scope& scope, const Value* caller) {
  const Value callee = evaluate(*expr.children[0], scope);
  Arguments arguments = evaluate_arguments(expr.arguments, scope);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  at_ = expr.at;
  if (callee.is_object(ObjectKind::loop)) {
    const auto& loop = callee.as<Loop>();
    if (!loop.recurse) fail("The loop must have the 'recursive' marker to be called recursively.");
    return loop.recurse(arguments);
  }
  return call_value(callee, arguments);
}

Value Interpreter::evaluate_filter(const Expr& expr, Scope& scope) {
  const Value subject = expr.children[0] != nullptr ? evaluate(*expr.children[0], scope) : *captured_;
  Arguments arguments = evaluate_arguments(expr.arguments, scope);
  at_ = expr.at;
  const Filter filter = find_filter(expr.name);
  if (filter == nullptr) fail("No filter named '{}' found.", expr.name);
  return filter(subject, arguments);
}

Value Interpreter::evaluate_test(const Expr& expr, Scope& scope) {
  const Value subject = evaluate(*expr.children[0], scope);
  Arguments arguments = evaluate_arguments(expr.arguments, scope);
  at_ = expr.at;
  const Test test = find_test(expr.name);
  if (test == nullptr) fail("No test named '{}' found.", expr.name);
  return test(subject, arguments);
}

Value Interpreter::evaluate_items(const Expr& expr, Scope& scope, SequenceKind kind) {
  ListBuilder list;
  for (const Expr* item : expr.children) list.add(evaluate(*item, scope));
  return list.finish(kind);
}

Value Interpreter::evaluate_dict(const Expr& expr, Scope& scope) {
  DictBuilder dict;
  for (std::size_t i = 0; i < expr.children.size(); i += 2) {
    const Value key = evaluate(*expr.children[i], scope);
    dict.set(key, evaluate(*expr.children[i + 1], scope));
  }
  return dict.finish();
}

Value Interpreter::evaluate_concat(const Expr& expr, Scope& scope) {
  TextBuilder text;
  for (const Expr* part : expr.children) add_text(text, evaluate(*part, scope));
  return text.finish();
}

Value Interpreter::evaluate_conditional(const Expr& expr, Scope& scope) {
  if (truth(evaluate(*expr.children[0], scope))) return evaluate(*expr.children[1], scope);
  if (expr.children[2] != nullptr) return evaluate(*expr.children[2], scope);
  return Value::undefined(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was defined.",
                  expr.at.line));
}

}  // namespace caldera::chat
