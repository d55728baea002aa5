#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "lm/generate/grammar/key_classes.h"
#include "lm/generate/grammar/schema_keywords.h"

namespace caldera::grammar {
namespace {

constexpr int kMostMergeDepth = 32;

bool is_one_of(std::string_view keyword, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), keyword) != names.end();
}

Schema intersection(const Schema& a, const Schema& b) {
  Schema result = Schema::array();
  for (const Schema& value : a)
    if (std::find(b.begin(), b.end(), value) != b.end()) result.push_back(value);
  return result;
}

// Properties of both; one that only one lists is held to the other's patterns, or additionalProperties.
void merge_properties(const Schema& root, const Schema& a, const Schema& b, const std::string& where,
                      int depth, Schema& result) {
  const Schema none = Schema::object();
  const Schema& left = a.contains("properties") ? a["properties"] : none;
  const Schema& right = b.contains("properties") ? b["properties"] : none;
  const auto held = [&](const std::string& name, Schema property, const Schema& other) {
    bool matches = false;
    if (other.contains("patternProperties"))
      for (const auto& [pattern, schema] : other["patternProperties"].items()) {
        if (KeyClasses({read_pattern(pattern, "grammar: " + where)}, {}).class_of(name).empty()) continue;
        matches = true;
        property = merge_schemas(root, property, schema, where, depth + 1);
      }
    if (matches || !other.contains("additionalProperties")) return property;
    return merge_schemas(root, property, other["additionalProperties"], where, depth + 1);
  };
  Schema merged = Schema::object();
  for (const auto& [name, property] : left.items())
    merged[name] = right.contains(name) ? merge_schemas(root, property, right[name], where, depth + 1)
                                        : held(name, property, b);
  for (const auto& [name, property] : right.items())
    if (!left.contains(name)) merged[name] = held(name, property, a);
  result["properties"] = std::move(merged);
}

// One keyword that both have.
Schema merge_keyword(const Schema& root, const std::string& keyword, const Schema& a, const Schema& b,
                     const std::string& where, int depth) {
  if (a == b) return a;
  if (is_one_of(keyword, {"minimum", "exclusiveMinimum", "minItems", "minLength", "minProperties"}))
    return a < b ? b : a;
  if (is_one_of(keyword, {"maximum", "exclusiveMaximum", "maxItems", "maxLength", "maxProperties"}))
    return a < b ? a : b;
  if (is_one_of(keyword, {"additionalProperties", "items", "additionalItems"}) && !a.is_array() &&
      !b.is_array())
    return merge_schemas(root, a, b, where, depth + 1);
  if (is_one_of(keyword, {"required", "allOf"})) {
    Schema both = a;
    for (const Schema& entry : b)
      if (std::find(both.begin(), both.end(), entry) == both.end()) both.push_back(entry);
    return both;
  }
  if (keyword == "uniqueItems") return a.get<bool>() || b.get<bool>();
  if (keyword == "multipleOf" && a.is_number_integer() && b.is_number_integer() && a > 0 && b > 0 &&
      a < 1000000 && b < 1000000)
    return std::lcm(a.get<std::int64_t>(), b.get<std::int64_t>());
  if (keyword == "not") {
    Schema both = constants(a);
    for (const Schema& value : constants(b)) both.push_back(value);
    return {{"enum", std::move(both)}};
  }
  if (keyword == "patternProperties") {
    Schema both = a;
    for (const auto& [pattern, schema] : b.items())
      both[pattern] =
          both.contains(pattern) ? merge_schemas(root, both[pattern], schema, where, depth + 1) : schema;
    return both;
  }
  if (keyword == "anyOf") {
    Schema pairs = Schema::array();
    for (const Schema& left : a)
      for (const Schema& right : b) pairs.push_back(merge_schemas(root, left, right, where, depth + 1));
    if (pairs.size() > 256) refuse_schema("'anyOf' of several schemas has too many pairs", where);
    return pairs;
  }
  refuse_schema(fmt::format("'{}' of two schemas that both hold cannot be made one", keyword), where,
                keyword);
}

// The constants of one keyword, or of that of one property.
Schema property_constants(const Schema& root, const Schema& schema, const std::string& name,
                          const std::string& where) {
  if (!schema.contains("properties") || !schema["properties"].contains(name)) return nullptr;
  const Schema property = without_reference(root, schema["properties"][name], where, 0);
  return property.is_object() ? constants(property) : Schema();
}

bool are_apart(const Schema& a, const Schema& b) {
  return a.is_array() && b.is_array() && intersection(a, b).empty();
}

bool is_closed(const Schema& schema) {
  return !schema.contains("additionalProperties") || schema["additionalProperties"] == false;
}

// What keys beside those listed are held to cannot be said of the other's patterns.
void check_patterns(const Schema& a, const Schema& b, const std::string& where) {
  const bool speaks = b.contains("additionalProperties") && b["additionalProperties"] != true;
  if (!a.contains("patternProperties") || !speaks) return;
  if (b.contains("patternProperties") && a["patternProperties"] == b["patternProperties"]) return;
  refuse_schema("'patternProperties' beside another schema's 'additionalProperties' is not supported", where,
                "patternProperties");
}

}  // namespace

Schema constants(const Schema& schema) {
  if (schema.contains("const")) return Schema::array({schema["const"]});
  return schema.contains("enum") ? schema["enum"] : Schema();
}

Schema without_reference(const Schema& root, const Schema& schema, const std::string& where, int depth) {
  if (depth > kMostMergeDepth) refuse_schema("'$ref' leads round in a circle, or too far", where);
  if (!schema.is_object() || !schema.contains("$ref")) return schema;
  Schema rest = schema;
  rest.erase("$ref");
  const auto reference = schema["$ref"].get<std::string>();
  const Schema& target = resolve_reference(root, reference, where);
  return merge_schemas(root, target, rest, where, depth + 1);
}

Schema merge_schemas(const Schema& root, const Schema& first, const Schema& second, const std::string& where,
                     int depth) {
  if (depth > kMostMergeDepth) refuse_schema("schemas that hold together nest too deep", where);
  if (first == true || first == second) return second;
  if (second == true) return first;
  if (first == false || second == false) return false;
  const auto plain = [&](const Schema& schema) {
    const Schema own = without_reference(root, schema, where, depth);
    return has_conditions(own) ? without_conditions(root, own, where, depth + 1) : own;
  };
  const Schema a = plain(first);
  const Schema b = plain(second);
  if (!a.is_object() || !b.is_object()) return merge_schemas(root, a, b, where, depth + 1);
  check_keywords(a, where);
  check_keywords(b, where);
  check_patterns(a, b, where);
  check_patterns(b, a, where);

  Schema result = a;
  for (const auto& [keyword, value] : b.items()) {
    if (is_annotation(keyword) || is_one_of(keyword, {"$defs", "definitions"})) continue;
    if (is_one_of(keyword, {"type", "nullable", "enum", "const", "properties"})) continue;
    if (!a.contains(keyword)) {
      result[keyword] = value;
    } else {
      result[keyword] = merge_keyword(root, keyword, a[keyword], value, where, depth);
    }
  }
  if (a.contains("properties") || b.contains("properties"))
    merge_properties(root, a, b, where, depth, result);
  if (a.contains("type") || b.contains("type")) {
    const unsigned types = declared_types(a, where) & declared_types(b, where);
    if (types == 0) return false;
    result["type"] = type_list(types);
    result.erase("nullable");
  }
  const Schema left = constants(a);
  const Schema right = constants(b);
  if (!left.is_null() || !right.is_null()) {
    result.erase("const");
    result["enum"] = left.is_null() ? right : right.is_null() ? left : intersection(left, right);
  }
  return result;
}

bool never_both(const Schema& root, const Schema& first, const Schema& second, const std::string& where) {
  const Schema written = without_reference(root, first, where, 0);
  const Schema other = without_reference(root, second, where, 0);
  if (!written.is_object() || !other.is_object()) return other == false || written == false;
  const auto types = [&](const Schema& schema) {
    unsigned bits = declared_types(schema, where);
    const Schema values = constants(schema);
    if (!values.is_array()) return bits;
    unsigned spoken = 0;
    for (const Schema& value : values) spoken |= type_of(value);
    return bits & spoken;
  };
  if ((types(written) & types(other)) == 0) return true;
  if (are_apart(constants(written), constants(other))) return true;
  // From here on both may be objects, and nothing else may be both.
  if ((types(written) & types(other)) != kObject) return false;
  const Schema required = written.value("required", Schema::array());
  for (const Schema& name : required)
    if (name.is_string() && are_apart(property_constants(root, written, name.get<std::string>(), where),
                                      property_constants(root, other, name.get<std::string>(), where)))
      return true;
  if (!is_closed(written) || !written.contains("properties")) return false;
  for (const Schema& name : other.value("required", Schema::array()))
    if (name.is_string() && !written["properties"].contains(name.get<std::string>()) &&
        std::find(required.begin(), required.end(), name) == required.end())
      return true;
  return false;
}

}  // namespace caldera::grammar
