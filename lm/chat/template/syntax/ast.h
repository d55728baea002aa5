// A parsed template: expressions and statements. They are owned by the Program and do not change.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "lm/chat/template/syntax/lexer.h"
#include "lm/chat/template/value/operators.h"
#include "lm/chat/template/value/value.h"

namespace caldera::chat {

enum class ExprKind : std::uint8_t {
  constant,
  name,
  attribute,  ///< children[0].name
  item,       ///< children[0][children[1]]
  slice,      ///< children[0][children[1]:children[2]:children[3]], each of the three may be nullptr
  call,       ///< children[0](arguments)
  filter,     ///< children[0]|name(arguments); in a filter block the first may be nullptr
  test,       ///< children[0] is name(arguments)
  logical_not,
  logical_and,
  logical_or,
  negative,
  positive,
  arithmetic,  ///< children[0] and children[1], by `operation`
  compare,     ///< children[0], then one child for each of `comparisons`
  concat,
  conditional,  ///< children[1] if children[0] else children[2], which may be nullptr
  list,
  tuple,
  dict,   ///< keys and values by turns
  member  ///< name.attribute as a target of set
};

enum class Comparison : std::uint8_t { equal, unequal, less, less_equal, greater, greater_equal, in, not_in };

struct Expr;

struct CallArguments {
  std::vector<const Expr*> positional;
  std::vector<std::pair<std::string, const Expr*>> named;
  const Expr* more_positional = nullptr;  ///< *x
  const Expr* more_named = nullptr;       ///< **x
};

struct Expr {
  ExprKind kind = ExprKind::constant;
  Position at;
  Value value;
  std::string name;
  std::string attribute;
  std::vector<const Expr*> children;
  CallArguments arguments;
  Arithmetic operation = Arithmetic::add;
  std::vector<Comparison> comparisons;
};

enum class StmtKind : std::uint8_t {
  text,
  print,
  condition,
  loop,
  assign,        ///< target = exprs[0]
  assign_block,  ///< target = body, through the filter exprs[0] if there is one
  macro,
  call,    ///< exprs[0], a call, with the body as caller
  filter,  ///< exprs[0], a filter, of the body
  with,
  block,
  generation,
  break_loop,
  continue_loop
};

struct Stmt;
using Body = std::vector<Stmt*>;

/// Lists what a macro or the body of a call takes.
struct Signature {
  std::vector<std::string> names;
  std::vector<const Expr*> defaults;  ///< of the last names
  bool uses_caller = false;
  bool uses_kwargs = false;
  bool uses_varargs = false;
};

struct Branch {
  const Expr* test = nullptr;  ///< nullptr for else
  Body body;
};

struct Stmt {
  StmtKind kind = StmtKind::text;
  Position at;
  Value text;
  std::string name;
  std::vector<const Expr*> exprs;
  const Expr* target = nullptr;
  std::vector<const Expr*> targets;  ///< of with
  const Expr* filter = nullptr;      ///< `if` of a loop
  bool recursive = false;
  Body body;
  Body otherwise;  ///< else of a loop
  std::vector<Branch> branches;
  Signature signature;
  /// Names that begin as undefined in the scope of the body, and in that of `otherwise` (unset_names.h).
  std::vector<std::string> unset, unset_otherwise;
};

/// A filter or test that has to exist for the template to be accepted. Those in a branch are looked up when
/// it is taken.
struct Use {
  std::string name;
  bool is_test = false;
  Position at;
};

struct Program {
  std::deque<Expr> expressions;
  std::deque<Stmt> statements;
  Body body;
  std::vector<Use> uses;
  std::vector<std::string> unset;
};

}  // namespace caldera::chat
