#include "lm/generate/grammar/schema_keywords.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "lm/generate/grammar/pattern.h"

namespace caldera::grammar {
namespace {

enum class Shape : std::uint8_t { any, number, boolean, text, list, object, schema };

// Keywords that are enforced, and what their values are.
constexpr std::array<std::pair<std::string_view, Shape>, 38> kKeywords{{
    {"type", Shape::any},
    {"enum", Shape::list},
    {"const", Shape::any},
    {"properties", Shape::object},
    {"required", Shape::list},
    {"additionalProperties", Shape::schema},
    {"items", Shape::any},
    {"prefixItems", Shape::list},
    {"additionalItems", Shape::schema},
    {"minItems", Shape::number},
    {"maxItems", Shape::number},
    {"minLength", Shape::number},
    {"maxLength", Shape::number},
    {"pattern", Shape::text},
    {"format", Shape::text},
    {"minimum", Shape::number},
    {"maximum", Shape::number},
    {"exclusiveMinimum", Shape::number},
    {"exclusiveMaximum", Shape::number},
    {"anyOf", Shape::list},
    {"oneOf", Shape::list},
    {"allOf", Shape::list},
    {"$ref", Shape::text},
    {"$defs", Shape::object},
    {"definitions", Shape::object},
    {"nullable", Shape::boolean},
    {"uniqueItems", Shape::boolean},
    {"multipleOf", Shape::number},
    {"minProperties", Shape::number},
    {"maxProperties", Shape::number},
    {"patternProperties", Shape::object},
    {"propertyNames", Shape::schema},
    {"dependentRequired", Shape::object},
    {"not", Shape::schema},
    {"if", Shape::schema},
    {"then", Shape::schema},
    {"else", Shape::schema},
    {"$schema", Shape::text},
}};

constexpr std::array<std::string_view, 13> kAnnotations{
    "title",     "description", "default", "examples",         "example",       "$comment",       "readOnly",
    "writeOnly", "deprecated",  "$id",     "contentMediaType", "discriminator", "contentEncoding"};

bool has_shape(const Schema& value, Shape shape) {
  switch (shape) {
    case Shape::any:
      return true;
    case Shape::number:
      return value.is_number();
    case Shape::boolean:
      return value.is_boolean();
    case Shape::text:
      return value.is_string();
    case Shape::list:
      return value.is_array();
    case Shape::object:
      return value.is_object();
    case Shape::schema:
      return value.is_object() || value.is_boolean();
  }
  return false;
}

constexpr std::array<std::pair<std::string_view, unsigned>, 7> kTypes{{{"null", kNull},
                                                                       {"boolean", kBoolean},
                                                                       {"integer", kInteger},
                                                                       {"number", kNumber | kInteger},
                                                                       {"string", kString},
                                                                       {"array", kArray},
                                                                       {"object", kObject}}};

unsigned type_named(const Schema& name, const std::string& where) {
  if (name.is_string())
    for (const auto& [known, bits] : kTypes)
      if (known == name.get<std::string>()) return bits;
  refuse_schema("'type' must be null, boolean, integer, number, string, array or object", where, "type");
}

/// A schema without what says nothing, at any depth.
Schema relaxed_of_annotations(const Schema& schema) {
  if (schema.is_array()) {
    Schema list = Schema::array();
    for (const Schema& part : schema) list.push_back(relaxed_of_annotations(part));
    return list;
  }
  if (!schema.is_object()) return schema;
  Schema result = Schema::object();
  for (const auto& [keyword, value] : schema.items())
    if (!is_annotation(keyword)) result[keyword] = relaxed_of_annotations(value);
  return result;
}

}  // namespace

void refuse_schema(const std::string& problem, const std::string& where, const std::string& keyword) {
  throw SchemaRefusal(fmt::format("grammar: {} (at {})", problem, where), keyword);
}

bool is_annotation(std::string_view keyword) {
  return keyword == "$schema" || keyword.starts_with("x-") ||
         std::find(kAnnotations.begin(), kAnnotations.end(), keyword) != kAnnotations.end();
}

void check_keywords(const Schema& schema, const std::string& where) {
  if (schema.is_boolean()) return;
  if (!schema.is_object()) refuse_schema("a schema must be an object, true or false", where);
  for (const auto& [keyword, value] : schema.items()) {
    if (is_annotation(keyword)) continue;
    const auto* const known =
        std::find_if(kKeywords.begin(), kKeywords.end(),
                     [&, &name = keyword](const auto& entry) { return entry.first == name; });
    if (known == kKeywords.end())
      refuse_schema(fmt::format("the keyword '{}' is not supported", keyword.substr(0, 60)), where, keyword);
    if (!has_shape(value, known->second))
      refuse_schema(fmt::format("the keyword '{}' has a value of the wrong type", keyword), where, keyword);
  }
}

Schema relaxed(const Schema& schema) {
  if (!schema.is_object()) return schema.is_boolean() ? schema : Schema(true);
  Schema result = Schema::object();
  for (const auto& [keyword, value] : schema.items()) {
    const auto* const known =
        std::find_if(kKeywords.begin(), kKeywords.end(),
                     [&, &name = keyword](const auto& entry) { return entry.first == name; });
    if (is_annotation(keyword) || known == kKeywords.end() || !has_shape(value, known->second)) continue;
    Schema kept = value;
    if (keyword == "not" || keyword == "if") {
      // Less of what is not to be would be more of what is to be.
      if (relaxed(value) != relaxed_of_annotations(value)) continue;
    } else if (known->second == Shape::schema || (keyword == "items" && value.is_object())) {
      kept = relaxed(value);
    } else if (value.is_object() && keyword != "dependentRequired" && keyword != "const") {
      for (auto& [name, property] : kept.items()) property = relaxed(property);
    } else if (value.is_array() && (keyword.ends_with("Of") || keyword.ends_with("tems"))) {
      for (Schema& part : kept) part = relaxed(part);
    } else if (keyword == "pattern" || keyword == "format") {
      try {
        const std::string text = value.get<std::string>();
        read_pattern(keyword == "format" ? std::string(format_pattern(text, "")) : text, "");
      } catch (const ValueError&) {
        continue;
      }
    }
    result[keyword] = std::move(kept);
  }
  // Without its condition what follows would hold always.
  if (!result.contains("if")) {
    result.erase("then");
    result.erase("else");
  }
  return result;
}

Schema without_refused(Schema schema, const std::string& keyword) {
  if (!schema.is_object()) return true;
  if (keyword == "oneOf" && schema.contains("oneOf") && !schema.contains("anyOf")) {
    schema["anyOf"] = schema["oneOf"];
    schema.erase("oneOf");
    return schema;
  }
  const auto take_away = [&](const std::string& name) {
    if (schema.erase(name) == 0) return false;
    if (name == "if") {
      schema.erase("then");
      schema.erase("else");
    }
    return true;
  };
  if (take_away(keyword)) return schema;
  for (const char* combined : {"not", "if", "dependentRequired", "oneOf", "anyOf", "allOf", "$ref"})
    if (take_away(combined)) return schema;
  const Schema type = schema.value("type", Schema());
  return type.is_null() || schema.size() == 1 ? Schema(true) : Schema{{"type", type}};
}

const Schema& resolve_reference(const Schema& root, const std::string& reference, const std::string& where) {
  if (reference == "#") return root;
  if (!reference.starts_with("#/"))
    refuse_schema(fmt::format("'$ref' must refer to this document, not to '{}'", reference.substr(0, 100)),
                  where, "$ref");
  try {
    const Schema::json_pointer pointer(reference.substr(1));
    if (root.contains(pointer)) return root.at(pointer);
  } catch (const Schema::exception&) {
    // Malformed, as below.
  }
  refuse_schema(fmt::format("'$ref' refers to '{}', which is not there", reference.substr(0, 100)), where,
                "$ref");
}

std::optional<std::int64_t> whole_number(const Schema& schema, const char* keyword, std::int64_t least,
                                         const std::string& where) {
  const auto found = schema.find(keyword);
  if (found == schema.end()) return std::nullopt;
  const auto value = found->get<double>();
  constexpr double kMost = 1e18;
  if (value != std::floor(value) || std::abs(value) > kMost || value < static_cast<double>(least))
    refuse_schema(fmt::format("'{}' must be a whole number here", keyword), where, keyword);
  return found->is_number_integer() ? found->get<std::int64_t>() : static_cast<std::int64_t>(value);
}

unsigned declared_types(const Schema& schema, const std::string& where) {
  const auto type = schema.find("type");
  if (type == schema.end()) return kAnyType;
  unsigned bits = 0;
  if (type->is_array()) {
    for (const Schema& name : *type) bits |= type_named(name, where);
  } else {
    bits = type_named(*type, where);
  }
  if (schema.value("nullable", false)) bits |= kNull;
  return bits;
}

unsigned spoken_types(const Schema& schema) {
  static const std::map<std::string_view, unsigned> kSpoken{{"properties", kObject},
                                                            {"required", kObject},
                                                            {"additionalProperties", kObject},
                                                            {"patternProperties", kObject},
                                                            {"propertyNames", kObject},
                                                            {"minProperties", kObject},
                                                            {"maxProperties", kObject},
                                                            {"uniqueItems", kArray},
                                                            {"multipleOf", kNumber | kInteger},
                                                            {"items", kArray},
                                                            {"prefixItems", kArray},
                                                            {"additionalItems", kArray},
                                                            {"minItems", kArray},
                                                            {"maxItems", kArray},
                                                            {"minLength", kString},
                                                            {"maxLength", kString},
                                                            {"pattern", kString},
                                                            {"format", kString},
                                                            {"minimum", kNumber | kInteger},
                                                            {"maximum", kNumber | kInteger},
                                                            {"exclusiveMinimum", kNumber | kInteger},
                                                            {"exclusiveMaximum", kNumber | kInteger}};
  unsigned bits = 0;
  for (const auto& [keyword, value] : schema.items()) {
    const auto found = kSpoken.find(keyword);
    if (found != kSpoken.end()) bits |= found->second;
  }
  return bits;
}

Schema type_list(unsigned bits) {
  Schema list = Schema::array();
  for (const auto& [name, own] : kTypes)
    if ((bits & own) == own && (name != "integer" || (bits & kNumber) == 0)) list.push_back(name);
  return list;
}

unsigned type_of(const Schema& value) {
  if (value.is_null()) return kNull;
  if (value.is_boolean()) return kBoolean;
  if (value.is_number_integer()) return kInteger;
  if (value.is_number())
    return value.get<double>() == std::floor(value.get<double>()) ? kInteger : static_cast<unsigned>(kNumber);
  if (value.is_string()) return kString;
  return value.is_array() ? kArray : kObject;
}

std::string_view format_pattern(const std::string& format, const std::string& where) {
  // Values that every checker of a format takes: a part of what the format allows.
  static constexpr std::string_view kDate =
      "[1-9]\\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|"
      "02-(?:0[1-9]|1\\d|2[0-8]))";
  static constexpr std::string_view kTime =
      "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";
  static const std::string kDateOnly = fmt::format("^{}$", kDate);
  static const std::string kTimeOnly = fmt::format("^{}$", kTime);
  static const std::string kDateTime = fmt::format("^{}T{}$", kDate, kTime);
  static constexpr std::string_view kLabel = "[a-z0-9](?:[a-z0-9-]{0,20}[a-z0-9])?";
  static const std::string kHostname = fmt::format("^{0}(?:\\.{0}){{0,4}}$", kLabel);
  static const std::string kEmail = fmt::format(
      "^[A-Za-z0-9_+-]{{1,30}}(?:\\.[A-Za-z0-9_+-]{{1,30}}){{0,3}}@{0}(?:\\.{0}){{1,4}}$", kLabel);
  static const std::string kUri =
      fmt::format("^https?://{0}(?:\\.{0}){{1,4}}(?:/[A-Za-z0-9._~-]{{1,40}}){{0,8}}/?$", kLabel);
  static constexpr std::string_view kAnything = "";  // hints for forms, not rules
  static const std::map<std::string_view, std::string_view> kPatterns{
      {"date", kDateOnly},
      {"time", kTimeOnly},
      {"date-time", kDateTime},
      {"hostname", kHostname},
      {"binary", kAnything},
      {"password", kAnything},
      {"email", kEmail},
      {"uri", kUri},
      {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
      {"ipv4", "^(?:(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)$"},
      {"ipv6", "^(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$"},
      {"duration", "^P(?:\\d{1,4}W|\\d{1,4}D(?:T\\d{1,4}H)?|T\\d{1,4}(?:H|M|S))$"}};
  const auto found = kPatterns.find(format);
  if (found == kPatterns.end())
    refuse_schema(
        fmt::format("the format '{}' is not supported (date, time, date-time, duration, email, hostname, "
                    "ipv4, ipv6, uri, uuid, binary and password are)",
                    format.substr(0, 60)),
        where, "format");
  return found->second;
}

}  // namespace caldera::grammar
