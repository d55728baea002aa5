#include <fmt/format.h>

#include <algorithm>

#include "lm/generate/grammar/key_classes.h"
#include "lm/generate/grammar/schema_compiler.h"

namespace caldera::grammar {

/// Says what the keys of an object are held to.
struct SchemaCompiler::Keys {
  Schema properties = Schema::object();  // those that are listed, or required
  std::vector<std::string> required;
  std::vector<Schema> matched;  // of each pattern of "patternProperties", the schema
  KeyClasses classes;           // of these patterns, and of those of "propertyNames"
  std::size_t named = 0;        // how many the latter are: the last ones
  Schema others = true;         // of other keys
  bool writes_others = false;   // whether such keys come

  bool is_required(const std::string& name) const {
    return std::find(required.begin(), required.end(), name) != required.end();
  }
};

SchemaCompiler::Keys SchemaCompiler::keys_of(const Schema& schema, const std::string& where) {
  const std::string place = "grammar: " + where;
  std::vector<CharacterAutomaton> patterns;
  std::vector<Schema> matched;
  const Schema by_pattern = schema.value("patternProperties", Schema::object());
  for (const auto& [pattern, value] : by_pattern.items()) {
    patterns.push_back(read_pattern(pattern, place));
    matched.push_back(value);
  }
  const Schema names = without_reference(root_, schema.value("propertyNames", Schema(true)), where, 0);
  if (names == false) refuse_schema("'propertyNames' allows no name", where, "propertyNames");
  if (names.is_object()) {
    for (const auto& [keyword, value] : names.items())
      if (keyword != "pattern" && keyword != "minLength" && keyword != "maxLength" &&
          !(keyword == "type" && value == "string") && !is_annotation(keyword))
        refuse_schema(fmt::format("'propertyNames' with '{}' is not supported", keyword), where,
                      "propertyNames");
    if (names.contains("pattern"))
      patterns.push_back(read_pattern(names["pattern"].get<std::string>(), place));
    const std::int64_t least = whole_number(names, "minLength", 0, where).value_or(0);
    const auto most = whole_number(names, "maxLength", 0, where);
    if (most && *most < least) refuse_schema("'propertyNames' allows no name", where, "propertyNames");
    if (least > 0 || most)
      patterns.push_back(
          read_pattern(fmt::format("[^]{{{},{}}}", least, most ? std::to_string(*most) : ""), place, true));
  }
  std::vector<std::string> required;
  for (const Schema& name : schema.value("required", Schema::array())) {
    if (!name.is_string()) refuse_schema("'required' must list strings", where, "required");
    required.push_back(name.get<std::string>());
  }
  const bool has_others = schema.contains("additionalProperties");
  const Schema others = has_others ? schema["additionalProperties"] : Schema(true);

  const KeyClasses classes(patterns, {});
  const std::size_t named = patterns.size() - matched.size();
  const auto held = [&](const std::string& name, const Schema* listed) {
    const KeyClasses::Class own = classes.class_of(name);
    std::size_t allowed = 0;
    Schema value = listed != nullptr ? *listed : Schema(true);
    bool is_matched = listed != nullptr;
    for (const std::size_t pattern : own) {
      if (pattern >= matched.size()) {
        ++allowed;
        continue;
      }
      value = merge_schemas(root_, value, matched[pattern], where);
      is_matched = true;
    }
    if (allowed < named) return Schema(false);
    return is_matched ? value : others;
  };
  Schema properties = Schema::object();
  bool lists = false;
  const Schema by_name = schema.value("properties", Schema::object());
  for (const auto& [name, value] : by_name.items()) {
    properties[name] = held(name, &value);
    lists = lists || value != false;
  }
  for (const std::string& name : required) {
    lists = true;
    if (!properties.contains(name)) properties[name] = held(name, nullptr);
  }
  std::vector<std::string> listed;
  for (const auto& [name, value] : properties.items()) listed.push_back(name);
  // Keys beyond those that are listed come where the schema speaks of them, or of none at all.
  const bool writes = has_others ? others != false : !lists && matched.empty();
  return {std::move(properties),
          std::move(required),
          std::move(matched),
          KeyClasses(patterns, listed),
          named,
          others,
          writes};
}

RuleId SchemaCompiler::literal(const std::string& text) {
  const RuleId rule = rules_.add_rule();
  rules_.accept(rules_.text(rules_.begin(rule), text));
  return rule;
}

RuleId SchemaCompiler::member(RuleId key, RuleId value) {
  const RuleId rule = rules_.add_rule();
  const StateId colon = rules_.text(rules_.call(rules_.begin(rule), key), ":");
  rules_.accept(rules_.call(json_.blanks(colon), value));
  return rule;
}

/// A member whose key is none of those listed.
RuleId SchemaCompiler::other_member(const Keys& keys, const std::string& where) {
  const std::string place = where + "/additionalProperties";
  if (keys.matched.empty() && keys.named == 0) {
    std::vector<std::string> names;
    for (const auto& [name, value] : keys.properties.items()) names.push_back(name);
    return member(names.empty() ? json_.string() : json_.other_key(names), compile(keys.others, place));
  }
  const RuleId rule = rules_.add_rule();
  const StateId end = rules_.add_state();
  rules_.accept(end);
  keys.classes.write(rules_, rules_.begin(rule), [&](const KeyClasses::Class& own) {
    Schema value = true;
    std::size_t allowed = 0, matched = 0;
    for (const std::size_t pattern : own) {
      ++(pattern < keys.matched.size() ? matched : allowed);
      if (pattern < keys.matched.size()) value = merge_schemas(root_, value, keys.matched[pattern], where);
    }
    if (matched == 0) value = keys.others;
    if (allowed < keys.named || (matched == 0 && !keys.writes_others) || value == false) return kNone;
    const StateId behind = rules_.add_state();
    rules_.call(json_.blanks(rules_.text(behind, ":")), compile(value, matched > 0 ? where : place), end);
    return behind;
  });
  return rule;
}

void SchemaCompiler::add_object(StateId from, StateId to, const Schema& schema, const std::string& where) {
  const Keys keys = keys_of(schema, where);
  const std::int64_t least = whole_number(schema, "minProperties", 0, where).value_or(0);
  const std::int64_t most = whole_number(schema, "maxProperties", 0, where).value_or(-1);
  if (most >= 0 && most < least) return;
  const bool has_others = keys.writes_others || !keys.matched.empty();
  std::int64_t different = has_others ? 1 : 0;
  for (const auto& [name, value] : keys.properties.items()) different += value != false ? 1 : 0;
  if (least > different)
    refuse_schema("'minProperties': keys that are not listed may be the same, and count as one", where,
                  "minProperties");

  const RuleId object = rules_.add_rule();
  rules_.set_nests(object);
  rules_.call(from, object, to);
  // at[n]: where n members have been written, or more where that makes no difference.
  const auto cap = static_cast<std::size_t>(std::max<std::int64_t>(1, std::max(least, most)));
  std::vector<StateId> at(cap + 1);
  const auto new_states = [&] {
    std::vector<StateId> states(cap + 1);
    for (StateId& state : states) state = rules_.add_state();
    return states;
  };
  at = new_states();
  at[0] = json_.blanks(rules_.text(rules_.begin(object), "{"));
  const auto may_write = [&](std::size_t n) { return most < 0 || static_cast<std::int64_t>(n) < most; };
  const auto write = [&](StateId state, std::size_t n, RuleId entry, StateId next) {
    rules_.call(n == 0 ? state : json_.blanks(rules_.text(state, ",")), entry, next);
  };
  for (const auto& [name, property] : keys.properties.items()) {
    if (property == false && !keys.is_required(name)) continue;
    const RuleId value = compile(property, fmt::format("{}/properties/{}", where, name));
    const RuleId entry = member(literal(Schema(name).dump()), value);
    const std::vector<StateId> next = new_states();
    for (std::size_t n = 0; n <= cap; ++n) {
      if (may_write(n)) write(at[n], n, entry, next[std::min(n + 1, cap)]);
      if (!keys.is_required(name)) rules_.skip(at[n], next[n]);
    }
    at = next;
  }
  const StateId close = rules_.add_state();
  for (std::size_t n = 0; n <= cap; ++n)
    if (static_cast<std::int64_t>(n) >= least) rules_.skip(at[n], close);
  if (has_others) {
    // Of other keys one is known to differ from those before.
    const RuleId entry = other_member(keys, where);
    const std::vector<StateId> behind = new_states();
    for (std::size_t n = 0; n <= cap; ++n) {
      if (!may_write(n)) continue;
      const std::size_t next = std::min(n + 1, cap);
      if (static_cast<std::int64_t>(n) + 1 >= least) write(at[n], n, entry, behind[next]);
      if (n > 0) write(behind[n], n, entry, behind[next]);
    }
    for (const StateId last : behind) rules_.skip(last, close);
  }
  rules_.accept(rules_.text(json_.blanks(close), "}"));
}

}  // namespace caldera::grammar
