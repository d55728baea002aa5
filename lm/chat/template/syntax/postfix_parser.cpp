// What may stand behind a primary expression: attributes, subscripts, calls, filters and tests.
#include <unordered_set>

#include "lm/chat/template/base/number_text.h"
#include "lm/chat/template/syntax/expression_parser.h"

namespace caldera::chat {

// postfix: ("." name | "." integer | "[" subscript "]" | "(" arguments ")")*
const Expr* ExpressionParser::postfix(const Expr* subject) {
  while (true) {
    if (current().is(".") || current().is("[")) {
      subject = subscript(subject);
    } else if (current().is("(")) {
      subject = call(subject);
    } else {
      return subject;
    }
  }
}

// filters and tests: ("|" filter | "is" test | "(" arguments ")")*
const Expr* ExpressionParser::filters_and_tests(const Expr* subject) {
  while (true) {
    if (current().is("|")) {
      subject = filters(subject, false);
    } else if (current().is_name("is")) {
      subject = test(subject);
    } else if (current().is("(")) {
      subject = call(subject);
    } else {
      return subject;
    }
  }
}

// subscript: expression | [expression] ":" [expression] [":" [expression]]; several with commas make a tuple
const Expr* ExpressionParser::subscript(const Expr* subject) {
  const Token open = take();
  if (open.is(".")) {
    const Token name = take();
    if (name.kind == TokenKind::name) {
      Expr& made = make(ExprKind::attribute, open.at);
      made.children = {subject};
      made.name = name.text;
      return &made;
    }
    if (name.kind != TokenKind::integer) error("expected a name or number behind the dot", name.at);
    Expr& index = make(ExprKind::constant, name.at);
    try {
      index.value = parse_integer(name.text, 0).value_or(0);
    } catch (const Fault& fault) {
      error(fault.message, name.at);
    }
    Expr& made = make(ExprKind::item, open.at);
    made.children = {subject, &index};
    return &made;
  }
  const Expr* parts[3] = {nullptr, nullptr, nullptr};
  const auto bound = [&](int i) {
    if (!current().is(":") && !current().is("]")) parts[i] = expression();
  };
  if (skip("]")) {  // an empty tuple is the key
    Expr& made = make(ExprKind::item, open.at);
    made.children = {subject, &make(ExprKind::tuple, open.at)};
    return &made;
  }
  bound(0);
  if (!current().is(":")) {
    const Expr* key = parts[0];
    if (current().is(",")) {
      Expr& keys = make(ExprKind::tuple, open.at);
      keys.children = {key};
      while (skip(",")) {
        const Expr* next = expression();
        keys.children.push_back(next);
      }
      key = &keys;
    }
    expect("]");
    Expr& made = make(ExprKind::item, open.at);
    made.children = {subject, key};
    return &made;
  }
  take();
  bound(1);
  if (skip(":")) bound(2);
  expect("]");
  Expr& made = make(ExprKind::slice, open.at);
  made.children = {subject, parts[0], parts[1], parts[2]};
  return &made;
}

// arguments: (expression | name "=" expression | "*" expression | "**" expression), with commas between
CallArguments ExpressionParser::call_arguments() {
  CallArguments arguments;
  std::unordered_set<std::string> names;
  expect("(");
  bool first = true;
  const auto check = [&](bool fine) {
    if (!fine) error("invalid syntax for function call expression");
  };
  while (!current().is(")")) {
    if (!first) {
      expect(",");
      if (current().is(")")) break;
    }
    first = false;
    if (current().is("*")) {
      check(arguments.more_positional == nullptr && arguments.more_named == nullptr);
      take();
      arguments.more_positional = expression();
    } else if (current().is("**")) {
      check(arguments.more_named == nullptr);
      take();
      arguments.more_named = expression();
    } else if (current().kind == TokenKind::name && ahead().is("=")) {
      check(arguments.more_named == nullptr);
      std::string name = take().text;
      if (!names.insert(name).second) error("keyword argument repeated: " + name);
      take();
      const Expr* value = expression();
      arguments.named.emplace_back(std::move(name), value);
    } else {
      check(arguments.more_positional == nullptr && arguments.more_named == nullptr &&
            arguments.named.empty());
      const Expr* value = expression();
      arguments.positional.push_back(value);
    }
  }
  expect(")");
  return arguments;
}

const Expr* ExpressionParser::call(const Expr* callee) {
  const Position at = current().at;
  CallArguments arguments = call_arguments();
  Expr& made = make(ExprKind::call, at);
  made.children = {callee};
  made.arguments = std::move(arguments);
  return &made;
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect_name();
  while (skip(".")) name += "." + expect_name();
  return name;
}

// filter: name ("." name)* ["(" arguments ")"]
const Expr* ExpressionParser::filters(const Expr* subject, bool starts_here) {
  while (starts_here || current().is("|")) {
    if (!starts_here) take();
    starts_here = false;
    const Position at = current().at;
    std::string name = dotted_name();
    CallArguments arguments = current().is("(") ? call_arguments() : CallArguments{};
    Expr& made = make(ExprKind::filter, at);
    made.children = {subject};
    made.name = std::move(name);
    made.arguments = std::move(arguments);
    if (!soft_) program_.uses.push_back({made.name, false, at});
    subject = &made;
  }
  return subject;
}

// test: ["not"] name ("." name)* ["(" arguments ")" | primary postfix]
const Expr* ExpressionParser::test(const Expr* subject) {
  const Position at = take().at;
  const bool negated = skip_name("not");
  std::string name = dotted_name();
  CallArguments arguments;
  const Token& next = current();
  const bool operand =
      next.kind == TokenKind::string || next.kind == TokenKind::integer || next.kind == TokenKind::real ||
      next.is("[") || next.is("{") ||
      (next.kind == TokenKind::name && !next.is_name("else") && !next.is_name("or") && !next.is_name("and"));
  if (next.is("(")) {
    arguments = call_arguments();
  } else if (operand) {
    if (next.is_name("is")) error("You cannot chain multiple tests with is");
    arguments.positional = {postfix(primary())};
  }
  Expr& made = make(ExprKind::test, at);
  made.children = {subject};
  made.name = std::move(name);
  made.arguments = std::move(arguments);
  if (!soft_) program_.uses.push_back({made.name, true, at});
  if (!negated) return &made;
  Expr& inverse = make(ExprKind::logical_not, at);
  inverse.children = {&made};
  return &inverse;
}

}  // namespace caldera::chat
