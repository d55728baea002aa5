#include "lm/generate/grammar/schema_compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "lm/generate/grammar/number_range.h"

namespace caldera::grammar {
namespace {

constexpr int kMostSchemaDepth = 100;

Schema without(const Schema& schema, std::initializer_list<const char*> keywords) {
  Schema result = schema;
  for (const char* keyword : keywords) result.erase(keyword);
  return result;
}

// Whether it says anything about values.
bool is_free(const Schema& schema) {
  return std::all_of(schema.items().begin(), schema.items().end(), [](const auto& entry) {
    return is_annotation(entry.key()) || entry.key() == "$defs" || entry.key() == "definitions";
  });
}

}  // namespace

RuleId SchemaCompiler::compile(const Schema& schema, const std::string& where) {
  check_keywords(schema, where);
  // The same schema at two places is one rule; so is one that is met again while it is compiled.
  const std::string key = schema.dump();
  const auto found = rules_of_.find(key);
  if (found != rules_of_.end()) return found->second;
  if (++depth_ > kMostSchemaDepth) refuse_schema("schemas nest too deep", where);
  const RuleId rule = rules_.add_rule();
  rules_of_.emplace(key, rule);
  const StateId end = rules_.add_state();
  rules_.accept(end);
  fill(rules_.begin(rule), end, schema, where);
  --depth_;
  return rule;
}

void SchemaCompiler::fill(StateId from, StateId to, const Schema& schema, const std::string& where) {
  if (schema == false) return;  // nothing is valid: the rule has no text, and what needs it falls away
  if (schema == true || is_free(schema)) {
    rules_.call(from, json_.value(), to);
    return;
  }
  if (fill_combined(from, to, schema, where)) return;
  if (schema.contains("const"))
    return add_constants(from, to, schema, Schema::array({schema["const"]}), where);
  if (schema.contains("enum")) return add_constants(from, to, schema, schema["enum"], where);
  // Without a type, keywords say nothing of values of other types: those of the keywords' are enough.
  unsigned types = declared_types(schema, where);
  if (!schema.contains("type") && spoken_types(schema) != 0) types = spoken_types(schema);
  add_types(from, to, schema, types, where);
}

// Keywords that make one schema of several.
bool SchemaCompiler::fill_combined(StateId from, StateId to, const Schema& schema, const std::string& where) {
  if (schema.contains("$ref")) {
    const auto reference = schema["$ref"].get<std::string>();
    const Schema& target = resolve_reference(root_, reference, where);
    const Schema rest = without(schema, {"$ref"});
    const Schema both = is_free(rest) ? target : merge_schemas(root_, target, rest, where);
    rules_.call(from, compile(both, reference), to);
    return true;
  }
  if (schema.contains("allOf")) {
    Schema all = without(schema, {"allOf"});
    for (const Schema& part : schema["allOf"]) all = merge_schemas(root_, all, part, where);
    rules_.call(from, compile(all, where + "/allOf"), to);
    return true;
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (!schema.contains(keyword)) continue;
    add_alternatives(from, to, schema, keyword, where);
    return true;
  }
  return false;
}

void SchemaCompiler::add_alternatives(StateId from, StateId to, const Schema& schema, const char* keyword,
                                      const std::string& where) {
  const Schema& alternatives = schema[keyword];
  const Schema rest = without(schema, {keyword});
  std::vector<Schema> merged;
  for (const Schema& alternative : alternatives)
    merged.push_back(is_free(rest) ? alternative : merge_schemas(root_, rest, alternative, where));
  for (std::size_t i = 0; i < merged.size(); ++i) {
    const std::string place = fmt::format("{}/{}/{}", where, keyword, i);
    for (std::size_t k = 0; k < merged.size() && keyword == std::string_view("oneOf"); ++k) {
      if (i == k || never_both(root_, merged[i], alternatives[k], place)) continue;
      refuse_schema(
          fmt::format("'oneOf': values of alternative {} may be valid for alternative {} as well; use "
                      "'anyOf', or tell them apart by 'type' or by a required key with a 'const'",
                      i, k),
          where);
    }
    rules_.call(from, compile(merged[i], place), to);
  }
}

void SchemaCompiler::add_constants(StateId from, StateId to, const Schema& schema, const Schema& values,
                                   const std::string& where) {
  for (const auto& [keyword, value] : schema.items()) {
    const bool known = keyword == "type" || keyword == "enum" || keyword == "const" ||
                       keyword == "nullable" || keyword == "$defs" || keyword == "definitions" ||
                       is_annotation(keyword);
    if (!known)
      refuse_schema(fmt::format("the keyword '{}' is not supported beside 'enum' and 'const'", keyword),
                    where);
  }
  const unsigned types = declared_types(schema, where);
  for (const Schema& value : values) {
    // "number" allows whole numbers as well; both bits are set then.
    if ((types & type_of(value)) == 0) continue;
    if (schema.contains("enum") && schema.contains("const") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      continue;
    rules_.text(from, value.dump(), to);
  }
}

void SchemaCompiler::add_types(StateId from, StateId to, const Schema& schema, unsigned types,
                               const std::string& where) {
  if ((types & kNull) != 0) rules_.text(from, "null", to);
  if ((types & kBoolean) != 0) {
    rules_.text(from, "true", to);
    rules_.text(from, "false", to);
  }
  if ((types & (kInteger | kNumber)) != 0) add_numbers(from, to, schema, (types & kNumber) == 0, where);
  if ((types & kString) != 0) add_string(from, to, schema, where);
  if ((types & kArray) != 0) add_array(from, to, schema, where);
  if ((types & kObject) != 0) add_object(from, to, schema, where);
}

void SchemaCompiler::add_string(StateId from, StateId to, const Schema& schema, const std::string& where) {
  const std::int64_t least = whole_number(schema, "minLength", 0, where).value_or(0);
  const auto most = whole_number(schema, "maxLength", 0, where);
  if (schema.contains("pattern") && schema.contains("format"))
    refuse_schema("'format' is not supported beside 'pattern'", where);
  const bool has_pattern = schema.contains("pattern") || schema.contains("format");
  if (!has_pattern && least == 0 && !most) {
    rules_.call(from, json_.string(), to);
    return;
  }
  StateId state = rules_.text(from, "\"");
  if (has_pattern) {
    const std::string pattern = schema.contains("pattern")
                                    ? schema["pattern"].get<std::string>()
                                    : std::string(format_pattern(schema["format"].get<std::string>(), where));
    const std::optional<std::size_t> bound =
        most ? std::optional(static_cast<std::size_t>(*most)) : std::nullopt;
    state = patterns_.write(state, read_pattern(pattern, "grammar: " + where),
                            static_cast<std::size_t>(least), bound);
    rules_.text(state, "\"", to);
    return;
  }
  for (std::int64_t i = 0; i < least; ++i) state = rules_.call(state, json_.character());
  const StateId end = rules_.add_state();
  rules_.skip(state, end);
  if (!most) rules_.call(state, json_.character(), state);
  for (std::int64_t i = least; most && i < *most; ++i) {
    state = rules_.call(state, json_.character());
    rules_.skip(state, end);
  }
  if (most && *most < least) return;  // no length is both
  rules_.text(end, "\"", to);
}

void SchemaCompiler::add_numbers(StateId from, StateId to, const Schema& schema, bool whole,
                                 const std::string& where) {
  constexpr std::int64_t kLow = -1000000000000000000;
  NumberBounds bounds;
  bounds.low = whole_number(schema, "minimum", kLow, where);
  bounds.high = whole_number(schema, "maximum", kLow, where);
  if (const auto low = whole_number(schema, "exclusiveMinimum", kLow, where);
      low && (!bounds.low || *low >= *bounds.low)) {
    bounds.low = low;
    bounds.open_low = true;
  }
  if (const auto high = whole_number(schema, "exclusiveMaximum", kLow, where);
      high && (!bounds.high || *high <= *bounds.high)) {
    bounds.high = high;
    bounds.open_high = true;
  }
  if (!bounds.low && !bounds.high) {
    rules_.call(from, whole ? json_.integer() : json_.number(), to);
  } else if (whole) {
    const auto low = bounds.open_low ? std::optional(*bounds.low + 1) : bounds.low;
    const auto high = bounds.open_high ? std::optional(*bounds.high - 1) : bounds.high;
    rules_.skip(add_integer_range(rules_, from, low, high), to);
  } else {
    rules_.skip(add_number_range(rules_, from, bounds), to);
  }
}

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

  const RuleId array = rules_.add_rule();
  rules_.set_nests(array);
  rules_.call(from, array, to);
  StateId state = json_.blanks(rules_.text(rules_.begin(array), "["));
  const StateId close = rules_.add_state();  // where the list may end
  rules_.accept(rules_.text(json_.blanks(close), "]"));
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

void SchemaCompiler::add_object(StateId from, StateId to, const Schema& schema, const std::string& where) {
  std::vector<std::string> required;
  for (const Schema& name : schema.value("required", Schema::array())) {
    if (!name.is_string()) refuse_schema("'required' must list strings", where);
    required.push_back(name.get<std::string>());
  }
  Schema properties = schema.value("properties", Schema::object());
  const bool has_others = schema.contains("additionalProperties");
  const Schema others = has_others ? schema["additionalProperties"] : Schema(true);
  for (const std::string& name : required)
    if (!properties.contains(name)) properties[name] = others;
  // Keys beyond those that are listed come where the schema speaks of them, or of none at all.
  const bool writes_others = has_others ? others != false : properties.empty();

  const RuleId object = rules_.add_rule();
  rules_.set_nests(object);
  rules_.call(from, object, to);
  // Where nothing has been written yet, and where something has.
  StateId first = json_.blanks(rules_.text(rules_.begin(object), "{"));
  StateId later = rules_.add_state();
  std::vector<std::string> names;
  for (const auto& [name, property] : properties.items()) {
    names.push_back(name);
    const bool optional = std::find(required.begin(), required.end(), name) == required.end();
    const RuleId value = compile(property, fmt::format("{}/properties/{}", where, name));
    const RuleId entry = member(literal(Schema(name).dump()), value);
    const StateId next_later = rules_.add_state();
    rules_.call(first, entry, next_later);
    rules_.call(json_.blanks(rules_.text(later, ",")), entry, next_later);
    const StateId next_first = rules_.add_state();
    if (optional) {
      rules_.skip(first, next_first);
      rules_.skip(later, next_later);
    }
    first = next_first;
    later = next_later;
  }
  if (writes_others) {
    const RuleId key = names.empty() ? json_.string() : json_.other_key(names);
    const RuleId entry = member(key, compile(others, where + "/additionalProperties"));
    rules_.call(first, entry, later);
    rules_.call(json_.blanks(rules_.text(later, ",")), entry, later);
  }
  const StateId close = rules_.add_state();
  rules_.skip(first, close);
  rules_.skip(later, close);
  rules_.accept(rules_.text(json_.blanks(close), "}"));
}

}  // namespace caldera::grammar
