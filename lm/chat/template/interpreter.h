// Runs a parsed template.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lm/chat/template/globals.h"
#include "lm/chat/template/objects.h"
#include "lm/chat/template/scope.h"
#include "lm/chat/template/syntax/ast.h"
#include "lm/chat/template/value/builders.h"

namespace caldera::chat {

/// One rendering. What goes wrong is thrown as a Fault or Refusal; position() says where.
class Interpreter {
 public:
  using Variables = std::unordered_map<std::string, Value>;

  /// `budget` is the thread's current one; the three are held by reference.
  Interpreter(const Program& program, Budget& budget, const Variables& variables, LocalTime now);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// Adds the text of the template to `out`.
  void run(TextBuilder& out);
  /// Returns the position of what was evaluated last.
  Position position() const { return at_; }

 private:
  using ScopePointer = std::shared_ptr<Scope>;
  enum class Flow : std::uint8_t { onward, break_loop, continue_loop };

  // Statements (interpreter.cpp).
  Flow execute(const Body& body, const ScopePointer& scope, TextBuilder& out);
  Flow execute(const Stmt& statement, const ScopePointer& scope, TextBuilder& out);
  Flow execute_condition(const Stmt& statement, const ScopePointer& scope, TextBuilder& out);
  void execute_with(const Stmt& statement, const ScopePointer& scope, TextBuilder& out);
  Flow execute_captured(const Stmt& statement, const ScopePointer& scope, TextBuilder& out);
  void execute_generation(const Stmt& statement, const ScopePointer& scope, TextBuilder& out);
  void run_loop(const Stmt& statement, const ScopePointer& scope, const Value& over, std::int64_t level,
                TextBuilder& out);
  Value filtered_items(const Stmt& statement, const ScopePointer& scope, const Value& over);
  void assign(const Expr& target, Value value, Scope& scope);
  void print(const Value& value, TextBuilder& out);
  void check_output(const TextBuilder& out) const;

  // Macros (macros.cpp).
  Value make_macro(const Stmt& statement, const ScopePointer& scope);
  Value call_macro(const Stmt& statement, const ScopePointer& closure, Arguments& arguments);
  void bind_arguments(const Stmt& statement, Arguments& arguments, Scope& scope);

  // Expressions (evaluate.cpp).
  Value evaluate(const Expr& expr, Scope& scope);
  Value evaluate_name(const Expr& expr, const Scope& scope);
  Value evaluate_compare(const Expr& expr, Scope& scope);
  Value evaluate_slice(const Expr& expr, Scope& scope);
  Value evaluate_call(const Expr& expr, Scope& scope, const Value* caller);
  Value evaluate_filter(const Expr& expr, Scope& scope);
  Value evaluate_test(const Expr& expr, Scope& scope);
  Value evaluate_items(const Expr& expr, Scope& scope, SequenceKind kind);
  Value evaluate_dict(const Expr& expr, Scope& scope);
  Value evaluate_concat(const Expr& expr, Scope& scope);
  Value evaluate_conditional(const Expr& expr, Scope& scope);
  Arguments evaluate_arguments(const CallArguments& given, Scope& scope);

  const Program& program_;
  Budget& budget_;
  const Variables& variables_;
  LocalTime now_;
  Position at_;
  /// Holds what a filter block or set block has captured, for its filters.
  const Value* captured_ = nullptr;
  ScopePointer root_;
  Keep keep_;
  /// Scopes that macros refer to. They hold the macros in turn, so that they are emptied at the end.
  std::vector<ScopePointer> closures_;
};

}  // namespace caldera::chat
