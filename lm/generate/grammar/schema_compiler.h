// SchemaCompiler: a JSON schema as rules of a grammar.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "lm/generate/grammar/json_text.h"
#include "lm/generate/grammar/number_range.h"
#include "lm/generate/grammar/pattern.h"
#include "lm/generate/grammar/schema_keywords.h"

namespace caldera::grammar {

/// Makes a rule of each different schema of a document: one that refers to itself becomes one that calls
/// itself.
class SchemaCompiler {
 public:
  /// Keeps references. `root` is what references refer to. `lenient`: what is not supported is left out, so
  /// that texts may not be valid, instead of being refused.
  SchemaCompiler(Rules& rules, JsonText& json, const Schema& root, bool lenient)
      : rules_(rules), json_(json), patterns_(rules, json), root_(root), lenient_(lenient) {}

  /// The rule of a schema; `where` is its place, for messages. Throws ValueError for what is not supported.
  RuleId compile(const Schema& schema, const std::string& where);

 private:
  void fill(StateId from, StateId to, const Schema& schema, const std::string& where);
  bool fill_combined(StateId from, StateId to, const Schema& schema, const std::string& where);
  void add_alternatives(StateId from, StateId to, const Schema& schema, const char* keyword,
                        const std::string& where);
  void add_constants(StateId from, StateId to, const Schema& schema, const Schema& values,
                     const std::string& where);
  void add_types(StateId from, StateId to, const Schema& schema, unsigned types, const std::string& where);
  Schema one_of(const Schema& alternatives, std::size_t i, const Schema& merged, const std::string& place,
                const std::string& where);
  void add_string_but(StateId from, StateId to, const Schema& schema, const std::vector<std::string>& names,
                      const std::string& where);
  void add_string(StateId from, StateId to, const Schema& schema, const std::string& where);
  void add_numbers(StateId from, StateId to, const Schema& schema, bool whole, const std::string& where);
  void add_between(StateId from, StateId to, const Schema& schema, NumberBounds bounds, bool whole,
                   const std::string& where);
  void add_decimals(StateId from, StateId to, const Schema& schema, bool whole, const std::string& where);
  void add_different_items(StateId state, StateId close, const Schema& values, std::int64_t least,
                           std::int64_t most);
  Schema few_values(const Schema& schema, const std::string& where) const;
  void add_array(StateId from, StateId to, const Schema& schema, const std::string& where);
  void add_object(StateId from, StateId to, const Schema& schema, const std::string& where);
  struct Keys;
  Keys keys_of(const Schema& schema, const std::string& where);
  RuleId other_member(const Keys& keys, const std::string& where);
  RuleId member(RuleId key, RuleId value);
  RuleId literal(const std::string& text);

  Rules& rules_;
  JsonText& json_;
  PatternWriter patterns_;
  const Schema& root_;
  std::unordered_map<std::string, RuleId> rules_of_;
  int depth_ = 0;
  bool lenient_;
};

}  // namespace caldera::grammar
