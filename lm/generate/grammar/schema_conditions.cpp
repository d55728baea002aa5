#include <fmt/format.h>

#include "lm/generate/grammar/schema_keywords.h"

namespace caldera::grammar {
namespace {

constexpr int kMostConditionDepth = 24;

Schema any_of(Schema alternatives) {
  if (alternatives.empty()) return false;
  return alternatives.size() == 1 ? alternatives.front() : Schema{{"anyOf", std::move(alternatives)}};
}

// "enum" and "const" alone: what is not them is written by the compiler.
bool is_of_constants(const Schema& schema) {
  bool some = false;
  if (!schema.is_object()) return false;
  for (const auto& [keyword, value] : schema.items()) {
    if (is_annotation(keyword)) continue;
    if (keyword != "enum" && keyword != "const") return false;
    some = true;
  }
  return some;
}

/// Adds what violates one keyword to alternatives.
class Negation {
 public:
  Negation(const Schema& root, const Schema& schema, const std::string& where, int depth)
      : root_(root), schema_(schema), where_(where), depth_(depth) {}

  Schema all() {
    for (const auto& [keyword, value] : schema_.items()) add(keyword, value);
    // Numbers that are not whole would be missed: where whole ones alone are meant, that is half of it.
    if (is_integer_ && !has_others_)
      refuse_schema("the opposite of 'integer' is not supported: numbers that are not whole", where_);
    return any_of(std::move(alternatives_));
  }

 private:
  void push(Schema schema) {
    if (schema != false) alternatives_.push_back(std::move(schema));
    has_others_ = true;
  }
  Schema opposite(const Schema& schema) const { return negated(root_, schema, where_, depth_ + 1); }

  void add(const std::string& keyword, const Schema& value) {
    if (is_annotation(keyword) || keyword == "$defs" || keyword == "definitions" || keyword == "nullable")
      return;
    if (keyword == "type") return add_type();
    if (keyword == "enum" || keyword == "const")
      return push({{"not", {{"enum", keyword == "enum" ? value : Schema::array({value})}}}});
    if (keyword == "properties") {
      for (const auto& [name, property] : value.items())
        if (Schema wrong = opposite(property); wrong != false)
          push({{"type", "object"}, {"required", {name}}, {"properties", {{name, std::move(wrong)}}}});
      return;
    }
    if (keyword == "required") {
      for (const Schema& name : value)
        if (name.is_string()) push({{"type", "object"}, {"properties", {{name.get<std::string>(), false}}}});
      return;
    }
    if (keyword == "anyOf") {
      Schema each = Schema::array();
      for (const Schema& part : value) each.push_back(opposite(part));
      return push({{"allOf", std::move(each)}});
    }
    if (keyword == "allOf") {
      for (const Schema& part : value) push(opposite(part));
      return;
    }
    if (keyword == "not") return push(value);
    if (!add_bound(keyword, value))
      refuse_schema(fmt::format("the opposite of '{}' is not supported", keyword.substr(0, 60)), where_);
  }

  void add_type() {
    const unsigned types = declared_types(schema_, where_);
    is_integer_ = (types & kInteger) != 0 && (types & kNumber) == 0;
    const unsigned others = kAnyType & ~types & (is_integer_ ? ~static_cast<unsigned>(kNumber) : ~0U);
    if (others != 0) alternatives_.push_back({{"type", type_list(others)}});
  }

  bool add_bound(const std::string& keyword, const Schema& value) {
    struct Bound {
      const char* keyword;
      const char* opposite;
      const char* type;
      int step;  // of sizes
    };
    constexpr Bound kBounds[] = {{"minimum", "exclusiveMaximum", "number", 0},
                                 {"maximum", "exclusiveMinimum", "number", 0},
                                 {"exclusiveMinimum", "maximum", "number", 0},
                                 {"exclusiveMaximum", "minimum", "number", 0},
                                 {"minLength", "maxLength", "string", -1},
                                 {"maxLength", "minLength", "string", 1},
                                 {"minItems", "maxItems", "array", -1},
                                 {"maxItems", "minItems", "array", 1},
                                 {"minProperties", "maxProperties", "object", -1},
                                 {"maxProperties", "minProperties", "object", 1}};
    for (const Bound& bound : kBounds) {
      if (keyword != bound.keyword) continue;
      Schema limit = value;
      if (bound.step != 0) {
        const std::int64_t size = whole_number(schema_, bound.keyword, 0, where_).value_or(0) + bound.step;
        if (size < 0) return true;  // nothing is shorter
        limit = size;
      }
      push({{"type", bound.type}, {bound.opposite, std::move(limit)}});
      return true;
    }
    return false;
  }

  const Schema& root_;
  const Schema& schema_;
  const std::string& where_;
  int depth_;
  Schema alternatives_ = Schema::array();
  bool is_integer_ = false;  // its type is that of whole numbers
  bool has_others_ = false;  // it says more than a type
};

}  // namespace

Schema negated(const Schema& root, const Schema& schema, const std::string& where, int depth) {
  if (depth > kMostConditionDepth) refuse_schema("conditions nest too deep", where);
  const Schema plain = without_reference(root, schema, where, depth);
  if (plain.is_boolean()) return plain == false;
  check_keywords(plain, where);
  return Negation(root, plain, where, depth).all();
}

bool has_conditions(const Schema& schema) {
  if (!schema.is_object()) return false;
  return schema.contains("if") || schema.contains("then") || schema.contains("else") ||
         schema.contains("dependentRequired") || (schema.contains("not") && !is_of_constants(schema["not"]));
}

Schema without_conditions(const Schema& root, const Schema& schema, const std::string& where, int depth) {
  if (depth > kMostConditionDepth) refuse_schema("conditions nest too deep", where);
  check_keywords(schema, where);
  Schema result = schema;
  for (const char* keyword : {"if", "then", "else", "dependentRequired"}) result.erase(keyword);
  const auto hold = [&](const Schema& also) { result = merge_schemas(root, result, also, where, depth + 1); };
  if (schema.contains("not") && !is_of_constants(schema["not"])) {
    result.erase("not");
    hold(negated(root, schema["not"], where, depth + 1));
  }
  if (schema.contains("if")) {
    const auto both = [&](const Schema& condition, const char* keyword) {
      return schema.contains(keyword) ? merge_schemas(root, condition, schema[keyword], where, depth + 1)
                                      : condition;
    };
    Schema alternatives = Schema::array();
    for (const Schema& part :
         {both(schema["if"], "then"), both(negated(root, schema["if"], where, depth + 1), "else")})
      if (part != false) alternatives.push_back(part);
    hold(any_of(std::move(alternatives)));
  }
  if (schema.contains("dependentRequired")) {
    for (const auto& [name, others] : schema["dependentRequired"].items()) {
      Schema all = others.is_array() ? others : Schema::array();
      all.push_back(name);
      hold({{"anyOf", {{{"properties", {{name, false}}}}, {{"required", std::move(all)}}}}});
    }
  }
  return result;
}

}  // namespace caldera::grammar
