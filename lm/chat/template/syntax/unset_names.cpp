#include "lm/chat/template/syntax/unset_names.h"

#include <map>
#include <set>
#include <string_view>

namespace caldera::chat {
namespace {

/// How a scope comes by a name that it mentions.
enum class Origin : std::uint8_t { parameter, outside, unset };

struct Names {
  const Names* outer = nullptr;   ///< of the scope outside
  const Names* before = nullptr;  ///< of the same scope, where this is a branch of it
  std::map<std::string_view, Origin> origins;
  std::set<std::string_view> stored;

  bool knows_here(std::string_view name) const {
    for (const Names* names = this; names != nullptr; names = names->before) {
      if (names->origins.contains(name)) return true;
    }
    return false;
  }

  bool knows(std::string_view name) const {
    for (const Names* names = this; names != nullptr; names = names->outer) {
      if (names->knows_here(name)) return true;
    }
    return false;
  }

  bool stores(std::string_view name) const {
    for (const Names* names = this; names != nullptr; names = names->before) {
      if (names->stored.contains(name)) return true;
    }
    return false;
  }

  void load(std::string_view name) {
    if (!knows(name)) origins.emplace(name, Origin::outside);
  }

  void store(std::string_view name) {
    stored.insert(name);
    if (knows_here(name)) return;
    origins.emplace(name, knows(name) ? Origin::outside : Origin::unset);
  }

  void parameter(std::string_view name) {
    stored.insert(name);
    origins[name] = Origin::parameter;
  }

  std::vector<std::string> unset() const {
    std::vector<std::string> found;
    for (const auto& [name, origin] : origins) {
      if (origin == Origin::unset) found.emplace_back(name);
    }
    return found;
  }
};

void load_all(const Expr* root, Names& names) {
  std::vector<const Expr*> left{root};  // expressions may be deep
  while (!left.empty()) {
    const Expr* expr = left.back();
    left.pop_back();
    if (expr == nullptr) continue;
    if (expr->kind == ExprKind::name || expr->kind == ExprKind::member) names.load(expr->name);
    left.insert(left.end(), expr->children.begin(), expr->children.end());
    const CallArguments& arguments = expr->arguments;
    left.insert(left.end(), arguments.positional.begin(), arguments.positional.end());
    for (const auto& [name, argument] : arguments.named) left.push_back(argument);
    left.push_back(arguments.more_positional);
    left.push_back(arguments.more_named);
  }
}

void store_target(const Expr& target, Names& names, bool as_parameter) {
  if (target.kind == ExprKind::member) return names.load(target.name);
  if (target.kind == ExprKind::name)
    return as_parameter ? names.parameter(target.name) : names.store(target.name);
  for (const Expr* part : target.children) store_target(*part, names, as_parameter);
}

/// What the statements of a scope mention, without those in scopes inside of it.
void mention(const Body& body, Names& names);

void mention_branches(const Stmt& statement, Names& names) {
  std::vector<Names> branches;
  for (const Branch& branch : statement.branches) {
    load_all(branch.test, names);
    Names& inside = branches.emplace_back();
    inside.outer = names.outer;
    inside.before = &names;
    mention(branch.body, inside);
  }
  std::set<std::string_view> stored;
  for (const Names& branch : branches) {
    for (const auto& [name, origin] : branch.origins) names.origins[name] = origin;
    for (const std::string_view name : branch.stored) {
      if (!names.stores(name)) stored.insert(name);
    }
  }
  for (const std::string_view name : stored) names.origins[name] = Origin::outside;
  names.stored.insert(stored.begin(), stored.end());
}

void mention(const Stmt& statement, Names& names) {
  switch (statement.kind) {
    case StmtKind::condition:
      mention_branches(statement, names);
      break;
    case StmtKind::macro:
      names.store(statement.name);
      break;
    case StmtKind::assign_block:
      store_target(*statement.target, names, false);
      break;
    default:
      for (const Expr* expr : statement.exprs) load_all(expr, names);
      if (statement.kind == StmtKind::assign) store_target(*statement.target, names, false);
      break;
  }
}

void mention(const Body& body, Names& names) {
  for (const Stmt* statement : body) mention(*statement, names);
}

void analyze_inside(const Body& body, const Names& names);

/// The scopes that a statement opens.
void analyze(Stmt& statement, const Names& outer) {
  Names names;
  names.outer = statement.kind == StmtKind::block ? nullptr : &outer;
  switch (statement.kind) {
    case StmtKind::condition:
      for (const Branch& branch : statement.branches) analyze_inside(branch.body, outer);
      return;
    case StmtKind::loop: {
      names.parameter("loop");
      store_target(*statement.target, names, true);
      Names otherwise;
      otherwise.outer = &outer;
      mention(statement.otherwise, otherwise);
      statement.unset_otherwise = otherwise.unset();
      analyze_inside(statement.otherwise, otherwise);
      break;
    }
    case StmtKind::macro:
    case StmtKind::call:
      for (const std::string& name : statement.signature.names) names.parameter(name);
      for (const Expr* value : statement.signature.defaults) load_all(value, names);
      for (const char* name : {"caller", "kwargs", "varargs"}) names.parameter(name);
      break;
    case StmtKind::with:
      for (const Expr* target : statement.targets) store_target(*target, names, true);
      break;
    default:
      if (statement.body.empty()) return;
      break;
  }
  mention(statement.body, names);
  statement.unset = names.unset();
  analyze_inside(statement.body, names);
}

void analyze_inside(const Body& body, const Names& names) {
  for (Stmt* statement : body) analyze(*statement, names);
}

}  // namespace

void find_unset_names(Program& program) {
  Names names;
  mention(program.body, names);
  program.unset = names.unset();
  analyze_inside(program.body, names);
}

}  // namespace caldera::chat
