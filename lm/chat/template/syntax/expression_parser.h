// Parses expressions, by recursive descent. Beside each rule, its part of the grammar
// (docs/guide/chat-templates.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lm/chat/template/base/budget.h"
#include "lm/chat/template/syntax/ast.h"
#include "lm/chat/template/syntax/lexer.h"

namespace caldera::chat {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, const ChatTemplateLimits& limits);

 protected:
  /// Counts a level of nesting while it lives.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token take();
  bool skip(std::string_view symbol);
  bool skip_name(std::string_view name);
  void expect(std::string_view symbol);
  void expect(TokenKind kind);
  void expect_word(std::string_view name);
  std::string expect_name();
  [[noreturn]] void error(const std::string& message) const { error(message, current().at); }
  [[noreturn]] static void error(const std::string& message, Position at);

  Expr& make(ExprKind kind, Position at);
  const Expr* expression(bool with_conditional = true);
  /// One expression, or a tuple of several without parentheses. `end_word` may end it.
  const Expr* tuple(bool with_conditional = true, std::string_view end_word = {},
                    bool in_parentheses = false);
  /// Parses what can be assigned to: a name, several, or, `with_members`, x.y.
  const Expr* target(std::string_view end_word, bool with_members);
  /// Filters behind `subject`, which is nullptr in a filter block; the first may lack its bar.
  const Expr* filters(const Expr* subject, bool starts_here);

  /// Which of the names that a macro is given unasked have been read.
  struct SpecialNames {
    bool caller = false;
    bool kwargs = false;
    bool varargs = false;
  };

  Program program_;
  bool soft_ = false;  ///< inside of a branch: filters are looked up when they are used
  SpecialNames read_;

 private:
  const Expr* or_expression();
  const Expr* and_expression();
  const Expr* not_expression();
  const Expr* comparison();
  const Expr* sum();
  const Expr* concatenation();
  const Expr* product();
  const Expr* power();
  const Expr* unary(bool with_filters);
  const Expr* primary(bool with_members = false);
  const Expr* literal();
  const Expr* postfix(const Expr* subject);
  const Expr* filters_and_tests(const Expr* subject);
  const Expr* subscript(const Expr* subject);
  const Expr* call(const Expr* callee);
  const Expr* test(const Expr* subject);
  const Expr* list();
  const Expr* dict();
  CallArguments call_arguments();
  std::string dotted_name();
  void check_target(const Expr& target) const;
  const Expr* binary(Arithmetic operation, const Expr* left, const Expr* right);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::size_t max_depth_;
  StackLimit stack_;
};

}  // namespace caldera::chat
