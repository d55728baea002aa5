#include "lm/chat/template/syntax/parser.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "lm/chat/template/base/chat_template_error.h"
#include "lm/chat/template/syntax/expression_parser.h"
#include "lm/chat/template/syntax/unset_names.h"

namespace caldera::chat {
namespace {

using Words = std::vector<std::string_view>;

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Program run() {
    program_.body = body({});
    if (current().kind != TokenKind::end) error("unexpected tag");
    find_unset_names(program_);
    return std::move(program_);
  }

 private:
  /// What holds for the statements inside of a construct, set back when it ends.
  class Inside {
   public:
    Inside(Parser& parser, bool soft, std::size_t loops)
        : parser_(parser),
          soft_(std::exchange(parser.soft_, soft)),
          loops_(std::exchange(parser.loops_, loops)) {}
    ~Inside() {
      parser_.soft_ = soft_;
      parser_.loops_ = loops_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Parser& parser_;
    bool soft_;
    std::size_t loops_;
  };

  Stmt& make_statement(StmtKind kind, Position at) {
    Stmt& made = program_.statements.emplace_back();
    made.kind = kind;
    made.at = at;
    return made;
  }

  /// Statements up to a tag that is one of `ends`, whose word is then the current token.
  Body body(const Words& ends) {
    const Level level(*this);
    Body statements;
    while (current().kind != TokenKind::end) {
      const Token token = take();
      if (token.kind == TokenKind::text) {
        Stmt& text = make_statement(StmtKind::text, token.at);
        text.text = Value(token.text);
        statements.push_back(&text);
      } else if (token.kind == TokenKind::print_begin) {
        Stmt& print = make_statement(StmtKind::print, token.at);
        print.exprs = {tuple()};
        expect(TokenKind::print_end);
        statements.push_back(&print);
      } else {
        const bool ended = current().kind == TokenKind::name &&
                           std::find(ends.begin(), ends.end(), current().text) != ends.end();
        if (ended) return statements;
        Stmt* made = statement(ends);
        expect(TokenKind::block_end);
        statements.push_back(made);
      }
    }
    if (!ends.empty()) error("unexpected end of template; expected the tag " + joined(ends));
    return statements;
  }

  static std::string joined(const Words& ends) {
    std::string text;
    for (const std::string_view end : ends) text += (text.empty() ? "'" : " or '") + std::string(end) + "'";
    return text;
  }

  /// The rest of an opening tag, the statements, and the word of the tag that ends them.
  Body block_body(const Words& ends) {
    skip(":");
    expect(TokenKind::block_end);
    return body(ends);
  }

  Stmt* statement(const Words& ends) {
    if (current().kind != TokenKind::name) error("tag name expected");
    const Token tag = take();
    const std::string_view name = tag.text;
    if (name == "if") return condition(tag);
    if (name == "for") return loop(tag);
    if (name == "set") return assignment(tag);
    if (name == "macro") return macro(tag);
    if (name == "call") return call_block(tag);
    if (name == "filter") return filter_block(tag);
    if (name == "with") return with(tag);
    if (name == "generation") return generation(tag);
    if (name == "block") return block(tag);
    if (name == "print") return print(tag);
    if (name == "break" || name == "continue") {
      if (loops_ == 0) error("'" + tag.text + "' outside of a loop", tag.at);
      return &make_statement(name == "break" ? StmtKind::break_loop : StmtKind::continue_loop, tag.at);
    }
    if (name == "include" || name == "import" || name == "from" || name == "extends") {
      error("a chat template cannot " + tag.text + " another template", tag.at);
    }
    if (name == "autoescape") error("autoescape is not supported", tag.at);
    error("unknown tag '" + tag.text + "'" + (ends.empty() ? "" : "; expected " + joined(ends)), tag.at);
  }

  // "if" tuple … ("elif" tuple …)* ["else" …] "endif"
  Stmt* condition(const Token& tag) {
    const Inside inside(*this, true, loops_);
    Stmt& made = make_statement(StmtKind::condition, tag.at);
    while (true) {
      Branch branch;
      branch.test = tuple(false);
      branch.body = block_body({"elif", "else", "endif"});
      made.branches.push_back(std::move(branch));
      const std::string end = take().text;
      if (end == "elif") continue;
      if (end == "else") {
        made.branches.push_back({nullptr, block_body({"endif"})});
        take();
      }
      return &made;
    }
  }

  // "for" target "in" tuple ["if" expression] ["recursive"] … ["else" …] "endfor"
  Stmt* loop(const Token& tag) {
    Stmt& made = make_statement(StmtKind::loop, tag.at);
    made.target = target("in", false);
    refuse_loop(*made.target);
    expect_word("in");
    made.exprs = {tuple(false, "recursive")};
    const Inside inside(*this, false, loops_ + 1);
    if (skip_name("if")) made.filter = expression();
    made.recursive = skip_name("recursive");
    made.body = block_body({"endfor", "else"});
    if (take().text == "else") {
      const Inside otherwise(*this, false, loops_ - 1);
      made.otherwise = block_body({"endfor"});
      take();
    }
    return &made;
  }

  void refuse_loop(const Expr& target) const {
    if (target.kind == ExprKind::name && target.name == "loop") {
      error("Can't assign to special loop variable in for-loop target", target.at);
    }
    if (target.kind != ExprKind::tuple) return;
    for (const Expr* part : target.children) refuse_loop(*part);
  }

  // "set" target "=" tuple | "set" target filter* … "endset"
  Stmt* assignment(const Token& tag) {
    const Expr* assigned = target({}, true);
    if (loops_ > 0) refuse_loop(*assigned);
    if (skip("=")) {
      Stmt& made = make_statement(StmtKind::assign, tag.at);
      made.target = assigned;
      made.exprs = {tuple()};
      return &made;
    }
    Stmt& made = make_statement(StmtKind::assign_block, tag.at);
    made.target = assigned;
    const Inside inside(*this, false, loops_);
    made.exprs = {filters(nullptr, false)};
    made.body = block_body({"endset"});
    take();
    return &made;
  }

  // "(" [name ["=" expression] ("," …)*] ")"
  Signature signature() {
    Signature made;
    std::unordered_set<std::string> names;
    expect("(");
    while (!current().is(")")) {
      if (!made.names.empty()) expect(",");
      const Position at = current().at;
      std::string name = expect_name();
      if (!names.insert(name).second) error("a macro has two arguments named " + name, at);
      if (skip("=")) {
        made.defaults.push_back(expression());
      } else if (!made.defaults.empty()) {
        error("non-default argument follows default argument", at);
      }
      made.names.push_back(std::move(name));
    }
    expect(")");
    return made;
  }

  /// The body of a macro, and what of the special names it reads.
  void macro_body(Stmt& made, std::string_view end) {
    const Inside inside(*this, false, 0);
    const SpecialNames before = std::exchange(read_, {});
    made.body = block_body({end});
    take();
    const auto named = [&](std::string_view name) {
      return std::find(made.signature.names.begin(), made.signature.names.end(), name) !=
             made.signature.names.end();
    };
    made.signature.uses_caller = read_.caller;
    made.signature.uses_kwargs = read_.kwargs && !named("kwargs");
    made.signature.uses_varargs = read_.varargs && !named("varargs");
    if (read_.caller && named("caller")) {
      const auto place = std::find(made.signature.names.begin(), made.signature.names.end(), "caller");
      const auto left = static_cast<std::size_t>(made.signature.names.end() - place);
      if (left > made.signature.defaults.size()) {
        error("the special argument 'caller' of a macro must be omitted or have a default", made.at);
      }
    }
    read_ = {before.caller || read_.caller, before.kwargs || read_.kwargs, before.varargs || read_.varargs};
  }

  // "macro" name signature … "endmacro"
  Stmt* macro(const Token& tag) {
    Stmt& made = make_statement(StmtKind::macro, tag.at);
    made.name = expect_name();
    made.signature = signature();
    macro_body(made, "endmacro");
    return &made;
  }

  // "call" [signature] call … "endcall"
  Stmt* call_block(const Token& tag) {
    Stmt& made = make_statement(StmtKind::call, tag.at);
    if (current().is("(")) made.signature = signature();
    const Expr* call = expression();
    if (call->kind != ExprKind::call) error("expected call", tag.at);
    made.exprs = {call};
    macro_body(made, "endcall");
    return &made;
  }

  // "filter" filter ("|" filter)* … "endfilter"
  Stmt* filter_block(const Token& tag) {
    Stmt& made = make_statement(StmtKind::filter, tag.at);
    const Inside inside(*this, false, loops_);
    made.exprs = {filters(nullptr, true)};
    made.body = block_body({"endfilter"});
    take();
    return &made;
  }

  // "with" [target "=" expression ("," …)*] … "endwith"
  Stmt* with(const Token& tag) {
    Stmt& made = make_statement(StmtKind::with, tag.at);
    while (current().kind != TokenKind::block_end) {
      if (!made.targets.empty()) expect(",");
      made.targets.push_back(target({}, false));
      expect("=");
      made.exprs.push_back(expression());
    }
    const Inside inside(*this, false, loops_);
    made.body = block_body({"endwith"});
    take();
    return &made;
  }

  // "generation" … "endgeneration"
  Stmt* generation(const Token& tag) {
    Stmt& made = make_statement(StmtKind::generation, tag.at);
    const Inside inside(*this, false, 0);
    made.body = block_body({"endgeneration"});
    take();
    return &made;
  }

  // "block" name ["scoped"] ["required"] … "endblock" [name]
  Stmt* block(const Token& tag) {
    Stmt& made = make_statement(StmtKind::block, tag.at);
    made.name = expect_name();
    if (!blocks_.insert(made.name).second) error("block '" + made.name + "' defined twice", tag.at);
    made.recursive = skip_name("scoped");
    if (skip_name("required")) error("a required block needs a template that extends this one", tag.at);
    const Inside inside(*this, false, 0);
    made.body = block_body({"endblock"});
    take();
    skip_name(made.name);
    return &made;
  }

  // "print" [expression ("," expression)*]
  Stmt* print(const Token& tag) {
    Stmt& made = make_statement(StmtKind::print, tag.at);
    while (current().kind != TokenKind::block_end) {
      if (!made.exprs.empty()) expect(",");
      made.exprs.push_back(expression());
    }
    return &made;
  }

  std::size_t loops_ = 0;  ///< that a break here could leave
  std::unordered_set<std::string> blocks_;
};

}  // namespace

Program parse_program(std::string_view source, const ChatTemplateLimits& limits) {
  if (source.size() > limits.max_source_bytes) {
    throw ChatTemplateError("the template has " + std::to_string(source.size()) +
                                " bytes, more than its limit of " + std::to_string(limits.max_source_bytes) +
                                " (max_source_bytes)",
                            0, 0);
  }
  return Parser(tokenize(source), limits).run();
}

}  // namespace caldera::chat
