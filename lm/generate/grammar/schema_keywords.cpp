#include "lm/generate/grammar/schema_keywords.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "engine/base/error.h"

namespace caldera::grammar {
namespace {

enum class Shape : std::uint8_t { any, number, boolean, text, list, object, schema };

// Keywords that are enforced, and what their values are.
constexpr std::array<std::pair<std::string_view, Shape>, 28> kKeywords{{
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
    {"$schema", Shape::text},
}};

constexpr std::array<std::string_view, 12> kAnnotations{
    "title",    "description", "default",    "examples", "example",          "$comment",
    "readOnly", "writeOnly",   "deprecated", "$id",      "contentMediaType", "discriminator"};

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
  refuse_schema("'type' must be null, boolean, integer, number, string, array or object", where);
}

}  // namespace

void refuse_schema(const std::string& problem, const std::string& where) {
  throw ValueError(fmt::format("grammar: {} (at {})", problem, where));
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
      refuse_schema(fmt::format("the keyword '{}' is not supported", keyword.substr(0, 60)), where);
    if (!has_shape(value, known->second))
      refuse_schema(fmt::format("the keyword '{}' has a value of the wrong type", keyword), where);
    if (keyword == "uniqueItems" && value.get<bool>())
      refuse_schema("the keyword 'uniqueItems' is not supported", where);
  }
}

const Schema& resolve_reference(const Schema& root, const std::string& reference, const std::string& where) {
  if (reference == "#") return root;
  if (!reference.starts_with("#/"))
    refuse_schema(fmt::format("'$ref' must refer to this document, not to '{}'", reference.substr(0, 100)),
                  where);
  try {
    const Schema::json_pointer pointer(reference.substr(1));
    if (root.contains(pointer)) return root.at(pointer);
  } catch (const Schema::exception&) {
    // Malformed, as below.
  }
  refuse_schema(fmt::format("'$ref' refers to '{}', which is not there", reference.substr(0, 100)), where);
}

std::optional<std::int64_t> whole_number(const Schema& schema, const char* keyword, std::int64_t least,
                                         const std::string& where) {
  const auto found = schema.find(keyword);
  if (found == schema.end()) return std::nullopt;
  const auto value = found->get<double>();
  constexpr double kMost = 1e18;
  if (value != std::floor(value) || std::abs(value) > kMost || value < static_cast<double>(least))
    refuse_schema(fmt::format("'{}' must be a whole number here", keyword), where);
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
  static const std::map<std::string_view, std::string_view> kPatterns{
      {"date", kDateOnly},
      {"time", kTimeOnly},
      {"date-time", kDateTime},
      {"hostname", kHostname},
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
                    "ipv4, ipv6, uri and uuid are)",
                    format.substr(0, 60)),
        where);
  return found->second;
}

}  // namespace caldera::grammar
