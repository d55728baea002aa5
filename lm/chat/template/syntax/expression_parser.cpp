#include "lm/chat/template/syntax/expression_parser.h"

#include <algorithm>

#include "lm/chat/template/base/chat_template_error.h"
#include "lm/chat/template/base/number_text.h"

namespace caldera::chat {
namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::text:
      return "text";
    case TokenKind::block_begin:
      return "begin of statement block";
    case TokenKind::block_end:
      return "end of statement block";
    case TokenKind::print_begin:
      return "begin of print statement";
    case TokenKind::print_end:
      return "end of print statement";
    case TokenKind::end:
      return "end of template";
    default:
      return "'" + token.text + "'";
  }
}

bool is_constant_name(std::string_view name) {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" ||
         name == "None";
}

}  // namespace

ExpressionParser::ExpressionParser(std::vector<Token> tokens, const ChatTemplateLimits& limits)
    : tokens_(std::move(tokens)), max_depth_(limits.max_depth), stack_(limits.max_stack_bytes) {}

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  if (parser.depth_ >= parser.max_depth_) parser.error("nested too deeply (max_depth)");
  try {
    parser.stack_.check();
  } catch (const Fault& fault) {
    parser.error(fault.message);
  }
  ++parser.depth_;
}

void ExpressionParser::error(const std::string& message, Position at) {
  throw ChatTemplateError(message, at.line, at.column);
}

Token ExpressionParser::take() {
  Token token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool ExpressionParser::skip(std::string_view symbol) {
  if (!current().is(symbol)) return false;
  take();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

void ExpressionParser::expect(std::string_view symbol) {
  if (!skip(symbol)) error("expected '" + std::string(symbol) + "', got " + describe(current()));
}

void ExpressionParser::expect(TokenKind kind) {
  if (current().kind != kind) {
    Token wanted;
    wanted.kind = kind;
    error("expected " + describe(wanted) + ", got " + describe(current()));
  }
  take();
}

void ExpressionParser::expect_word(std::string_view name) {
  if (!skip_name(name)) error("expected '" + std::string(name) + "', got " + describe(current()));
}

std::string ExpressionParser::expect_name() {
  if (current().kind != TokenKind::name) error("expected a name, got " + describe(current()));
  return take().text;
}

Expr& ExpressionParser::make(ExprKind kind, Position at) {
  Expr& made = program_.expressions.emplace_back();
  made.kind = kind;
  made.at = at;
  return made;
}

// expression: or [ "if" or [ "else" expression ] ]...
const Expr* ExpressionParser::expression(bool with_conditional) {
  const Level level(*this);
  const std::size_t uses = program_.uses.size();
  const Expr* value = or_expression();
  while (with_conditional && current().is_name("if")) {
    Expr& made = make(ExprKind::conditional, take().at);
    const Expr* condition = or_expression();
    const Expr* otherwise = skip_name("else") ? expression() : nullptr;
    made.children = {condition, value, otherwise};
    value = &made;
    program_.uses.resize(uses);  // what stands in a branch is looked up when it is taken
  }
  return value;
}

// or: and ("or" and)*
const Expr* ExpressionParser::or_expression() {
  const Expr* left = and_expression();
  while (current().is_name("or")) {
    Expr& made = make(ExprKind::logical_or, take().at);
    made.children = {left, and_expression()};
    left = &made;
  }
  return left;
}

// and: not ("and" not)*
const Expr* ExpressionParser::and_expression() {
  const Expr* left = not_expression();
  while (current().is_name("and")) {
    Expr& made = make(ExprKind::logical_and, take().at);
    made.children = {left, not_expression()};
    left = &made;
  }
  return left;
}

// not: "not" not | comparison
const Expr* ExpressionParser::not_expression() {
  if (!current().is_name("not")) return comparison();
  const Level level(*this);
  Expr& made = make(ExprKind::logical_not, take().at);
  made.children = {not_expression()};
  return &made;
}

// comparison: sum (("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not" "in") sum)*
const Expr* ExpressionParser::comparison() {
  struct Symbol {
    std::string_view text;
    Comparison meaning;
  };
  constexpr Symbol kSymbols[] = {{"==", Comparison::equal},  {"!=", Comparison::unequal},
                                 {"<", Comparison::less},    {"<=", Comparison::less_equal},
                                 {">", Comparison::greater}, {">=", Comparison::greater_equal}};
  const Position at = current().at;
  const Expr* first = sum();
  Expr* made = nullptr;
  while (true) {
    const auto* symbol = std::find_if(std::begin(kSymbols), std::end(kSymbols),
                                      [&](const Symbol& each) { return current().is(each.text); });
    Comparison meaning = Comparison::in;
    if (symbol != std::end(kSymbols)) {
      meaning = symbol->meaning;
    } else if (current().is_name("not") && ahead().is_name("in")) {
      meaning = Comparison::not_in;
      take();
    } else if (!current().is_name("in")) {
      break;
    }
    take();
    if (made == nullptr) {
      made = &make(ExprKind::compare, at);
      made->children = {first};
    }
    made->comparisons.push_back(meaning);
    const Expr* right = sum();
    made->children.push_back(right);
  }
  return made != nullptr ? made : first;
}

const Expr* ExpressionParser::binary(Arithmetic operation, const Expr* left, const Expr* right) {
  Expr& made = make(ExprKind::arithmetic, left->at);
  made.operation = operation;
  made.children = {left, right};
  return &made;
}

// sum: concatenation (("+" | "-") concatenation)*
const Expr* ExpressionParser::sum() {
  const Expr* left = concatenation();
  while (current().is("+") || current().is("-")) {
    const Arithmetic operation = take().text == "+" ? Arithmetic::add : Arithmetic::subtract;
    left = binary(operation, left, concatenation());
  }
  return left;
}

// concatenation: product ("~" product)*
const Expr* ExpressionParser::concatenation() {
  const Position at = current().at;
  const Expr* first = product();
  if (!current().is("~")) return first;
  std::vector<const Expr*> parts{first};
  while (skip("~")) parts.push_back(product());
  Expr& made = make(ExprKind::concat, at);
  made.children = std::move(parts);
  return &made;
}

// product: power (("*" | "/" | "//" | "%") power)*
const Expr* ExpressionParser::product() {
  const Expr* left = power();
  while (true) {
    Arithmetic operation = Arithmetic::multiply;
    if (current().is("/")) {
      operation = Arithmetic::divide;
    } else if (current().is("//")) {
      operation = Arithmetic::floor_divide;
    } else if (current().is("%")) {
      operation = Arithmetic::modulo;
    } else if (!current().is("*")) {
      return left;
    }
    take();
    left = binary(operation, left, power());
  }
}

// power: unary ("**" unary)*, from left to right
const Expr* ExpressionParser::power() {
  const Expr* left = unary(true);
  while (skip("**")) left = binary(Arithmetic::power, left, unary(true));
  return left;
}

// unary: ("-" | "+") unary postfix | primary postfix, then filters and tests. So -1|abs is (-1)|abs.
const Expr* ExpressionParser::unary(bool with_filters) {
  const Expr* value = nullptr;
  if (current().is("-") || current().is("+")) {
    const Level level(*this);
    const bool minus = current().is("-");
    Expr& made = make(minus ? ExprKind::negative : ExprKind::positive, take().at);
    made.children = {unary(false)};
    value = &made;
  } else {
    value = primary();
  }
  value = postfix(value);
  return with_filters ? filters_and_tests(value) : value;
}

const Expr* ExpressionParser::literal() {
  const Token token = take();
  Expr& made = make(ExprKind::constant, token.at);
  try {
    if (token.kind == TokenKind::integer) {
      made.value = parse_integer(token.text, 0).value_or(0);
    } else if (token.kind == TokenKind::real) {
      made.value = parse_float(token.text).value_or(0);
    } else {
      std::string text = token.text;
      while (current().kind == TokenKind::string) text += take().text;  // "a" "b" is "ab"
      made.value = Value(std::move(text));
    }
  } catch (const Fault& fault) {
    error(fault.message, token.at);
  }
  return &made;
}

// primary: name | string+ | number | "(" tuple ")" | list | dict
const Expr* ExpressionParser::primary(bool with_members) {
  const Token& token = current();
  switch (token.kind) {
    case TokenKind::string:
    case TokenKind::integer:
    case TokenKind::real:
      return literal();
    case TokenKind::name:
      break;
    default:
      if (token.is("(")) {
        take();
        const Expr* inner = tuple(true, {}, true);
        expect(")");
        return inner;
      }
      if (token.is("[")) return list();
      if (token.is("{")) return dict();
      error("unexpected " + describe(token));
  }
  const Token name = take();
  if (is_constant_name(name.text)) {
    Expr& made = make(ExprKind::constant, name.at);
    if (name.text[0] != 'n' && name.text[0] != 'N') made.value = name.text[0] == 't' || name.text[0] == 'T';
    return &made;
  }
  const bool member = with_members && skip(".");
  Expr& made = make(member ? ExprKind::member : ExprKind::name, name.at);
  made.name = name.text;
  if (member) made.attribute = expect_name();
  read_.caller = read_.caller || name.text == "caller";
  read_.kwargs = read_.kwargs || name.text == "kwargs";
  read_.varargs = read_.varargs || name.text == "varargs";
  return &made;
}

// tuple: expression ("," expression)* [","]
const Expr* ExpressionParser::tuple(bool with_conditional, std::string_view end_word, bool in_parentheses) {
  const Position at = current().at;
  std::vector<const Expr*> items;
  bool several = false;
  while (true) {
    if (!items.empty()) expect(",");
    const bool ended = current().kind == TokenKind::print_end || current().kind == TokenKind::block_end ||
                       current().is(")") || (!end_word.empty() && current().is_name(end_word));
    if (ended) break;
    items.push_back(expression(with_conditional));
    if (!current().is(",")) break;
    several = true;
  }
  if (!several && items.size() == 1) return items[0];
  if (!several && !in_parentheses) error("expected an expression, got " + describe(current()));
  Expr& made = make(ExprKind::tuple, at);
  made.children = std::move(items);
  return &made;
}

void ExpressionParser::check_target(const Expr& target) const {
  const bool name = target.kind == ExprKind::name || target.kind == ExprKind::member;
  if (!name && target.kind != ExprKind::tuple) error("can't assign to what stands here", target.at);
  if (target.kind == ExprKind::tuple) {
    for (const Expr* part : target.children) check_target(*part);
  }
}

// target: part ("," part)*;  part: name | name "." name | "(" target ")"
const Expr* ExpressionParser::target(std::string_view end_word, bool with_members) {
  const Position at = current().at;
  std::vector<const Expr*> parts;
  bool several = false;
  while (true) {
    if (!parts.empty()) expect(",");
    if (current().kind == TokenKind::block_end || (!end_word.empty() && current().is_name(end_word))) break;
    parts.push_back(primary(with_members));
    if (!current().is(",")) break;
    several = true;
  }
  if (parts.empty()) error("expected a name, got " + describe(current()));
  const Expr* made = parts[0];
  if (several) {
    Expr& together = make(ExprKind::tuple, at);
    together.children = std::move(parts);
    made = &together;
  }
  check_target(*made);
  return made;
}

// list: "[" [expression ("," expression)* [","]] "]"
const Expr* ExpressionParser::list() {
  Expr& made = make(ExprKind::list, take().at);
  while (!current().is("]")) {
    if (!made.children.empty()) expect(",");
    if (current().is("]")) break;
    const Expr* item = expression();
    made.children.push_back(item);
  }
  expect("]");
  return &made;
}

// dict: "{" [expression ":" expression ("," …)* [","]] "}"
const Expr* ExpressionParser::dict() {
  Expr& made = make(ExprKind::dict, take().at);
  while (!current().is("}")) {
    if (!made.children.empty()) expect(",");
    if (current().is("}")) break;
    const Expr* key = expression();
    expect(":");
    const Expr* value = expression();
    made.children.insert(made.children.end(), {key, value});
  }
  expect("}");
  return &made;
}

}  // namespace caldera::chat
