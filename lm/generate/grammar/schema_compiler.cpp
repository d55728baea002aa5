#include "lm/generate/grammar/schema_compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "lm/generate/grammar/key_classes.h"

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
  if (!lenient_) check_keywords(schema, where);
  // The same schema at two places is one rule; so is one that is met again while it is compiled.
  const std::string key = schema.dump();
  const auto found = rules_of_.find(key);
  if (found != rules_of_.end()) return found->second;
  if (depth_ >= kMostSchemaDepth)
    throw ValueError(fmt::format("grammar: schemas nest too deep (at {})", where));
  const RuleId rule = rules_.add_rule();
  rules_of_.emplace(key, rule);
  const StateId end = rules_.add_state();
  rules_.accept(end);
  const int depth = depth_++;
  for (Schema held = schema;;) {
    // What was begun before a refusal is reached from nowhere.
    const StateId begin = rules_.add_state();
    try {
      fill(begin, end, held, where);
      rules_.skip(rules_.begin(rule), begin);
      break;
    } catch (const SchemaRefusal& refusal) {
      if (!lenient_) throw;
      depth_ = depth + 1;
      held = without_refused(held, refusal.keyword());
    }
  }
  depth_ = depth;
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
  if (has_conditions(schema)) {
    rules_.call(from, compile(without_conditions(root_, schema, where, 0), where), to);
    return true;
  }
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
    const bool one = keyword == std::string_view("oneOf");
    rules_.call(from, compile(one ? one_of(alternatives, i, merged[i], place, where) : merged[i], place), to);
  }
}

/// An alternative of "oneOf" without what others are valid for as well.
Schema SchemaCompiler::one_of(const Schema& alternatives, std::size_t i, const Schema& merged,
                              const std::string& place, const std::string& where) {
  Schema result = merged;
  for (std::size_t k = 0; k < alternatives.size(); ++k) {
    if (i == k || never_both(root_, result, alternatives[k], place)) continue;
    try {
      result = merge_schemas(root_, result, negated(root_, alternatives[k], place, 0), place);
    } catch (const SchemaRefusal&) {
      refuse_schema(
          fmt::format("'oneOf': values of alternative {} may be valid for alternative {} as well; use "
                      "'anyOf', or tell them apart by 'type' or by a required key with a 'const'",
                      i, k),
          where, "oneOf");
    }
  }
  return result;
}

void SchemaCompiler::add_constants(StateId from, StateId to, const Schema& schema, const Schema& values,
                                   const std::string& where) {
  for (const auto& [keyword, value] : schema.items()) {
    const bool known = keyword == "type" || keyword == "enum" || keyword == "const" ||
                       keyword == "nullable" || keyword == "$defs" || keyword == "definitions" ||
                       keyword == "not" || is_annotation(keyword);
    if (!known)
      refuse_schema(fmt::format("the keyword '{}' is not supported beside 'enum' and 'const'", keyword),
                    where, keyword);
  }
  const Schema refused = schema.contains("not") ? constants(schema["not"]) : Schema::array();
  const unsigned types = declared_types(schema, where);
  for (const Schema& value : values) {
    // "number" allows whole numbers as well; both bits are set then.
    if ((types & type_of(value)) == 0) continue;
    if (std::find(refused.begin(), refused.end(), value) != refused.end()) continue;
    if (schema.contains("enum") && schema.contains("const") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      continue;
    rules_.text(from, value.dump(), to);
  }
}

void SchemaCompiler::add_types(StateId from, StateId to, const Schema& schema, unsigned types,
                               const std::string& where) {
  // What is not to come, of the types that may.
  const Schema refused = schema.contains("not") ? constants(schema["not"]) : Schema::array();
  const auto comes = [&](const Schema& value) {
    return std::find(refused.begin(), refused.end(), value) == refused.end();
  };
  std::vector<std::string> texts;
  for (const Schema& value : refused) {
    if (value.is_string()) texts.push_back(value.get<std::string>());
    if (value.is_structured() && (types & type_of(value)) != 0)
      refuse_schema("'not' of lists and objects is not supported", where, "not");
  }
  if ((types & kNull) != 0 && comes(nullptr)) rules_.text(from, "null", to);
  if ((types & kBoolean) != 0) {
    if (comes(true)) rules_.text(from, "true", to);
    if (comes(false)) rules_.text(from, "false", to);
  }
  if ((types & (kInteger | kNumber)) != 0) add_numbers(from, to, schema, (types & kNumber) == 0, where);
  if ((types & kString) != 0) add_string_but(from, to, schema, texts, where);
  if ((types & kArray) != 0) add_array(from, to, schema, where);
  if ((types & kObject) != 0) add_object(from, to, schema, where);
}

/// A string that is none of some.
void SchemaCompiler::add_string_but(StateId from, StateId to, const Schema& schema,
                                    const std::vector<std::string>& names, const std::string& where) {
  if (names.empty()) return add_string(from, to, schema, where);
  std::vector<CharacterAutomaton> held;
  const std::string place = "grammar: " + where;
  if (schema.contains("pattern")) held.push_back(read_pattern(schema["pattern"].get<std::string>(), place));
  if (schema.contains("format"))
    held.push_back(read_pattern(format_pattern(schema["format"].get<std::string>(), where), place));
  const std::int64_t least = whole_number(schema, "minLength", 0, where).value_or(0);
  const auto most = whole_number(schema, "maxLength", 0, where);
  if (least > 0 || most) {
    const std::string end = most ? std::to_string(*most) : "";
    if (most && *most < least) return;
    held.push_back(read_pattern(fmt::format("[^]{{{},{}}}", least, end), place, true));
  }
  KeyClasses(held, names).write(rules_, from, [&](const KeyClasses::Class& matched) {
    return matched.size() == held.size() ? to : kNone;
  });
}

void SchemaCompiler::add_string(StateId from, StateId to, const Schema& schema, const std::string& where) {
  const std::int64_t least = whole_number(schema, "minLength", 0, where).value_or(0);
  const auto most = whole_number(schema, "maxLength", 0, where);
  if (schema.contains("pattern") && schema.contains("format"))
    refuse_schema("'format' is not supported beside 'pattern'", where, "format");
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

}  // namespace caldera::grammar
