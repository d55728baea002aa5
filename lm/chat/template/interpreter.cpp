#include "lm/chat/template/interpreter.h"

#include "lm/chat/template/filters/filters.h"
#include "lm/chat/template/value/iteration.h"
#include "lm/chat/template/value/operators.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {

namespace {

/// What a loop with a filter goes on with: the variables that an item has been taken apart into.
Value taken_apart(const Expr& target, const Scope& scope) {
  if (target.kind == ExprKind::name) return *scope.find(target.name);
  ListBuilder parts;
  for (const Expr* part : target.children) parts.add(taken_apart(*part, scope));
  return parts.finish(SequenceKind::tuple);
}

}  // namespace

Interpreter::Interpreter(const Program& program, Budget& budget, const Variables& variables, LocalTime now)
    : program_(program),
      budget_(budget),
      variables_(variables),
      now_(now),
      root_(std::make_shared<Scope>(nullptr)) {}

Interpreter::~Interpreter() {
  for (const ScopePointer& scope : closures_) scope->variables.clear();
}

void Interpreter::run(TextBuilder& out) {
  root_->begin(program_.unset);
  execute(program_.body, root_, out);
}

Interpreter::Flow Interpreter::execute(const Body& body, const ScopePointer& scope, TextBuilder& out) {
  for (const Stmt* statement : body) {
    const Flow flow = execute(*statement, scope, out);
    if (flow != Flow::onward) return flow;
  }
  return Flow::onward;
}

Interpreter::Flow Interpreter::execute(const Stmt& statement, const ScopePointer& scope, TextBuilder& out) {
  budget_.step();
  budget_.check_stack();
  at_ = statement.at;
  switch (statement.kind) {
    case StmtKind::text:
      print(statement.text, out);
      break;
    case StmtKind::print:
      for (const Expr* expr : statement.exprs) print(evaluate(*expr, *scope), out);
      break;
    case StmtKind::condition:
      return execute_condition(statement, scope, out);
    case StmtKind::loop:
      run_loop(statement, scope, evaluate(*statement.exprs[0], *scope), 0, out);
      break;
    case StmtKind::assign: {
      Value value = evaluate(*statement.exprs[0], *scope);
      at_ = statement.at;
      assign(*statement.target, std::move(value), *scope);
      break;
    }
    case StmtKind::assign_block:
    case StmtKind::filter:
      return execute_captured(statement, scope, out);
    case StmtKind::macro:
      scope->set(statement.name, make_macro(statement, scope));
      break;
    case StmtKind::call: {
      const Value caller = make_macro(statement, scope);
      print(evaluate_call(*statement.exprs[0], *scope, &caller), out);
      break;
    }
    case StmtKind::with:
      execute_with(statement, scope, out);
      break;
    case StmtKind::block:
      execute(statement.body, std::make_shared<Scope>(statement.recursive ? scope : root_, statement.unset),
              out);
      break;
    case StmtKind::generation:
      execute_generation(statement, scope, out);
      break;
    case StmtKind::break_loop:
      return Flow::break_loop;
    case StmtKind::continue_loop:
      return Flow::continue_loop;
  }
  return Flow::onward;
}

void Interpreter::check_output(const TextBuilder& out) const {
  if (out.size() > budget_.limits().max_output_bytes) {
    fail("the text is longer than its limit of {} bytes (max_output_bytes)",
         budget_.limits().max_output_bytes);
  }
}

void Interpreter::print(const Value& value, TextBuilder& out) {
  add_text(out, value);
  check_output(out);
}

Interpreter::Flow Interpreter::execute_condition(const Stmt& statement, const ScopePointer& scope,
                                                 TextBuilder& out) {
  for (const Branch& branch : statement.branches) {
    if (branch.test == nullptr || truth(evaluate(*branch.test, *scope)))
      return execute(branch.body, scope, out);
  }
  return Flow::onward;
}

void Interpreter::execute_with(const Stmt& statement, const ScopePointer& scope, TextBuilder& out) {
  const auto inner = std::make_shared<Scope>(scope, statement.unset);
  for (std::size_t i = 0; i < statement.exprs.size(); ++i) {
    assign(*statement.targets[i], evaluate(*statement.exprs[i], *scope), *inner);
  }
  execute(statement.body, inner, out);
}

Interpreter::Flow Interpreter::execute_captured(const Stmt& statement, const ScopePointer& scope,
                                                TextBuilder& out) {
  const auto inner = std::make_shared<Scope>(scope, statement.unset);
  TextBuilder captured;
  const Flow flow = execute(statement.body, inner, captured);
  if (flow != Flow::onward) return flow;
  Value text = captured.finish();
  if (statement.exprs[0] != nullptr) {
    const Value* before = std::exchange(captured_, &text);
    Value filtered = evaluate(*statement.exprs[0], *inner);
    captured_ = before;
    text = std::move(filtered);
  }
  if (statement.kind == StmtKind::filter) {
    print(text, out);
  } else {
    assign(*statement.target, std::move(text), *scope);
  }
  return Flow::onward;
}

void Interpreter::execute_generation(const Stmt& statement, const ScopePointer& scope, TextBuilder& out) {
  const std::size_t begin = out.size();
  const std::size_t spans = out.spans().size();
  execute(statement.body, std::make_shared<Scope>(scope, statement.unset), out);
  out.mark(begin, spans);
}

Value Interpreter::filtered_items(const Stmt& statement, const ScopePointer& scope, const Value& over) {
  return Value(std::make_shared<Iterator>(
      "filter", over.depth(), [this, &statement, scope, items = Iteration(over)](Value& item) mutable {
        while (items.next(item)) {
          Scope inner(scope);
          assign(*statement.target, item, inner);
          if (!truth(evaluate(*statement.filter, inner))) continue;
          item = taken_apart(*statement.target, inner);
          return true;
        }
        return false;
      }));
}

void Interpreter::run_loop(const Stmt& statement, const ScopePointer& scope, const Value& over,
                           std::int64_t level, TextBuilder& out) {
  budget_.check_stack();
  Function::Body recurse;
  if (statement.recursive) {
    recurse = [this, &statement, scope, level](Arguments& arguments) {
      const Parameters given("loop", arguments, {"iterable"}, 1);
      TextBuilder inner;
      run_loop(statement, scope, given[0], level + 1, inner);
      return inner.finish();
    };
  }
  const Value items = statement.filter != nullptr ? filtered_items(statement, scope, over) : over;
  const auto loop = std::make_shared<Loop>(items, level, std::move(recurse), keep_);
  bool completed = false;  // as in the original, an iteration that `continue` ends does not count
  ScopePointer inner;
  Value item;
  while (loop->next(item)) {
    if (inner == nullptr || inner.use_count() > 1) {
      inner = std::make_shared<Scope>(scope, statement.unset);
    } else {
      inner->begin(statement.unset);
    }
    inner->set("loop", Value(std::shared_ptr<Object>(loop)));
    assign(*statement.target, std::move(item), *inner);
    const Flow flow = execute(statement.body, inner, out);
    if (flow == Flow::break_loop) break;
    if (flow == Flow::onward) completed = true;
  }
  if (!completed && !statement.otherwise.empty())
    execute(statement.otherwise, std::make_shared<Scope>(scope, statement.unset_otherwise), out);
}

void Interpreter::assign(const Expr& target, Value value, Scope& scope) {
  if (target.kind == ExprKind::name) return scope.set(target.name, std::move(value));
  if (target.kind == ExprKind::member) {
    const Value* found = scope.find(target.name);
    if (found == nullptr || !found->is_object(ObjectKind::name_space)) {
      fail("cannot assign attribute on non-namespace object");
    }
    return found->as<Namespace>().set(target.attribute, std::move(value));
  }
  const bool iterable = value.is_text() || value.is_sequence() || value.is_dict() || value.is_undefined() ||
                        value.is_object(ObjectKind::iterator);
  if (!iterable) fail("cannot unpack non-iterable {} object", type_name(value));
  Iteration items(value);
  std::vector<Value> parts(target.children.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!items.next(parts[i])) fail("not enough values to unpack (expected {}, got {})", parts.size(), i);
  }
  Value more;
  if (items.next(more)) fail("too many values to unpack (expected {})", parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) assign(*target.children[i], std::move(parts[i]), scope);
}

}  // namespace caldera::chat
