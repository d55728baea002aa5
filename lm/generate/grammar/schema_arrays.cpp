#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lm/generate/grammar/schema_compiler.h"

namespace caldera::grammar {
namespace {

// Of so many values any order may come; of more they come in the order in which they are listed.
constexpr std::size_t kMostFreeValues = 8;
constexpr std::size_t kMostValues = 1000;

}  // namespace

void SchemaCompiler::add_array(StateId from, StateId to, const Schema& schema, const std::string& where) {
  const std::int64_t least = whole_number(schema, "minItems", 0, where).value_or(0);
  const auto most = whole_number(schema, "maxItems", 0, where);
  // Before draft 2020-12 a list of schemas was "items", and the rest "additionalItems".
  const bool old_list = schema.contains("items") && schema["items"].is_array();
  const Schema prefix = old_list ? schema["items"] : schema.value("prefixItems", Schema::array());
  Schema rest = true;
  const char* rest_keyword = old_list ? "additionalItems" : "items";
  if (schema.contains(rest_keyword)) rest = schema[rest_keyword];
  const auto listed = static_cast<std::int64_t>(prefix.size());
  // Items beyond those that are listed come where the schema speaks of them, or demands them.
  std::int64_t end = most.value_or(-1);
  const bool speaks = prefix.empty() || schema.contains(rest_keyword);
  if (!speaks && (end < 0 || end > std::max(listed, least))) end = std::max(listed, least);
  if (end >= 0 && end < least) return;
  const bool different = schema.value("uniqueItems", false) && end != 1 && end != 0;
  Schema values;
  if (different) {
    values = few_values(rest, where);
    if (!prefix.empty() || values.is_null())
      refuse_schema("'uniqueItems' of items that are no list of constants is not supported", where,
                    "uniqueItems");
  }

  const RuleId array = rules_.add_rule();
  rules_.set_nests(array);
  rules_.call(from, array, to);
  StateId state = json_.blanks(rules_.text(rules_.begin(array), "["));
  const StateId close = rules_.add_state();  // where the list may end
  rules_.accept(rules_.text(json_.blanks(close), "]"));
  if (different) return add_different_items(state, close, values, least, end);
  std::vector<StateId> ends;
  const auto rule_of = [&](std::int64_t i) {
    if (i < listed)
      return compile(prefix[static_cast<std::size_t>(i)], fmt::format("{}/prefixItems/{}", where, i));
    return compile(rest, where + "/items");
  };
  const std::int64_t written = end >= 0 ? end : std::max(std::max(listed, least), std::int64_t{1});
  for (std::int64_t i = 0; i < written; ++i) {
    if (i >= least) ends.push_back(state);
    if (i > 0) state = json_.blanks(rules_.text(state, ","));
    state = rules_.call(state, rule_of(i));
  }
  // Any number more.
  if (end < 0) rules_.call(json_.blanks(rules_.text(state, ",")), rule_of(written), state);
  ends.push_back(state);
  for (const StateId last : ends) rules_.skip(last, close);
}

/// The values that a schema is valid for, each once, where those are listed; else null.
Schema SchemaCompiler::few_values(const Schema& schema, const std::string& where) const {
  const Schema plain = without_reference(root_, schema, where, 0);
  if (!plain.is_object()) return nullptr;
  Schema listed = constants(plain);
  if (listed.is_null()) {
    const unsigned types = declared_types(plain, where);
    if ((types & ~(kNull | kBoolean)) != 0 || plain.contains("anyOf") || plain.contains("oneOf"))
      return nullptr;
    listed = Schema::array();
    if ((types & kNull) != 0) listed.push_back(nullptr);
    if ((types & kBoolean) != 0) listed.insert(listed.end(), {true, false});
  } else {
    const unsigned types = declared_types(plain, where);
    std::erase_if(listed.get_ref<Schema::array_t&>(),
                  [&](const Schema& value) { return (types & type_of(value)) == 0; });
  }
  Schema values = Schema::array();
  for (const Schema& value : listed)
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  return values.size() > kMostValues ? Schema() : values;
}

/// A list of different ones of some values, from behind its opening bracket on.
void SchemaCompiler::add_different_items(StateId state, StateId close, const Schema& values,
                                         std::int64_t least, std::int64_t most) {
  const bool free = values.size() <= kMostFreeValues;
  std::vector<RuleId> items;
  for (const Schema& value : values) items.push_back(literal(value.dump()));
  // By what has come: a set of values, or the last one and how many there were, where that counts.
  using Key = std::pair<std::size_t, std::int64_t>;
  std::map<Key, StateId> states{{{0, 0}, state}};
  std::vector<Key> open{{0, 0}};
  const std::int64_t counted = std::max(least, most);
  while (!open.empty()) {
    const Key key = open.back();
    open.pop_back();
    const StateId from = states.at(key);
    const auto [came, count] = key;
    if (count >= least) rules_.skip(from, close);
    if (most >= 0 && count >= most) continue;
    const StateId item = count == 0 && came == 0 ? from : json_.blanks(rules_.text(from, ","));
    for (std::size_t i = free ? 0 : came; i < items.size(); ++i) {
      if (free && ((came >> i) & 1U) != 0) continue;
      const Key next{free ? came | (std::size_t{1} << i) : i + 1,
                     free || count < counted ? count + 1 : count};
      const auto [found, is_new] = states.try_emplace(next, kNone);
      if (is_new) {
        found->second = rules_.add_state();
        open.push_back(next);
      }
      rules_.call(item, items[i], found->second);
    }
  }
}

}  // namespace caldera::grammar
