#include "lm/base/json_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_integers.h"
#include "lm/base/json_nesting.h"

namespace caldera::detail {
namespace {

constexpr int kMaxDepth = 64;

const char* type_of(const nlohmann::json& value) {
  if (value.is_number_float()) return "a number with a fraction";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "a boolean";
  if (value.is_array()) return "a list";
  return "an object";
}

/// Where the text is at fault, and why: the library's reason behind the place that it names first.
std::string problem_of(std::string_view message, std::size_t byte, std::string_view text) {
  const std::size_t place = message.find("column ");
  const std::size_t colon = place == message.npos ? place : message.find(": ", place);
  const std::string reason = colon == message.npos ? "" : ": " + printable(message.substr(colon + 2));
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::ranges::count(before, '\n');
  // Of one line the caller has said which.
  if (line == 0) return fmt::format("byte {}{}", byte, reason);
  return fmt::format("line {}, byte {} of it{}", line + 1, before.size() - before.rfind('\n') - 1, reason);
}

template <typename Json>
Json parse_as(std::string_view text, const std::string& where, Json (*parse)(std::string_view)) {
  if (nests_deeper(text, kMaxDepth)) {
    throw FileError(fmt::format("{}: not usable: JSON nested deeper than {} levels", where, kMaxDepth));
  }
  // The lexer takes NUL for the end of the text; whatever follows would go unread.
  if (text.find('\0') != text.npos) {
    throw FileError(fmt::format("{}: not valid JSON (it holds a NUL byte)", where));
  }
  try {
    return parse(text);
  } catch (const typename Json::parse_error& e) {
    throw FileError(fmt::format("{}: not valid JSON ({})", where, problem_of(e.what(), e.byte, text)));
  } catch (const typename Json::exception& e) {  // a number beyond double's range, say
    throw FileError(fmt::format("{}: not valid JSON ({})", where, printable(e.what())));
  }
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where) {
  return parse_as<nlohmann::json>(text, where,
                                  [](std::string_view all) { return nlohmann::json::parse(all); });
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where) {
  return parse_as(text, where, parse_whole_integers);
}

nlohmann::json read_json_object(const std::filesystem::path& path) {
  auto json = parse_json(read_text_file(path), path.string());
  if (!json.is_object()) throw FileError(fmt::format("{}: the JSON root is not an object", path.string()));
  return json;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMaxBytes = 120;
  std::string out;
  const std::size_t shown = std::min(text.size(), kMaxBytes);
  for (const char c : text.substr(0, shown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  if (shown < text.size()) out += "...";
  return out;
}

JsonFields::JsonFields(const nlohmann::json& object, const std::string& where)
    : object_(object), where_(where) {
  if (!object.is_object()) throw FileError(fmt::format("{}: a JSON object was expected", where));
}

const nlohmann::json* JsonFields::find(const char* field) const {
  const auto it = object_.find(field);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void JsonFields::fail(const char* field, const std::string& problem) const {
  throw FileError(fmt::format("{}: field '{}' {}", where_, field, problem));
}

std::optional<std::int64_t> JsonFields::integer(const char* field) const {
  const auto* value = find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) fail(field, fmt::format("must be an integer, not {}", type_of(*value)));
  if (value->is_number_unsigned() &&
      value->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    fail(field, "is too large");
  }
  return value->get<std::int64_t>();
}

std::int64_t JsonFields::require_integer(const char* field) const {
  const auto value = integer(field);
  if (!value) fail_absent(field);
  return *value;
}

std::optional<double> JsonFields::number(const char* field) const {
  const auto* value = find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail(field, fmt::format("must be a number, not {}", type_of(*value)));
  return value->get<double>();
}

std::optional<bool> JsonFields::boolean(const char* field) const {
  const auto* value = find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) fail(field, fmt::format("must be true or false, not {}", type_of(*value)));
  return value->get<bool>();
}

std::optional<std::string> JsonFields::string(const char* field) const {
  const auto* value = find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(field, fmt::format("must be a string, not {}", type_of(*value)));
  return value->get<std::string>();
}

std::string JsonFields::require_string(const char* field) const {
  auto value = string(field);
  if (!value) fail_absent(field);
  return *std::move(value);
}

const nlohmann::json& JsonFields::require_array(const char* field) const {
  const auto* value = find(field);
  if (value == nullptr) fail_absent(field);
  if (!value->is_array()) fail(field, fmt::format("must be a list, not {}", type_of(*value)));
  return *value;
}

void JsonFields::fail_absent(const char* field) const {
  fail(field, names_field(field) ? "is null, and must have a value" : "is missing");
}

bool JsonFields::names_field(const char* field) const { return object_.contains(field); }

JsonKind JsonFields::kind(const char* field) const {
  const auto* value = find(field);
  if (value == nullptr) return JsonKind::missing;
  if (value->is_boolean()) return JsonKind::boolean;
  if (value->is_number()) return JsonKind::number;
  if (value->is_string()) return JsonKind::string;
  return value->is_array() ? JsonKind::list : JsonKind::object;
}

std::optional<std::string> JsonFields::first_object() const {
  for (const auto& [name, value] : object_.items())
    if (value.is_object()) return name;
  return std::nullopt;
}

std::vector<std::string> JsonFields::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) names.push_back(name);
  return names;
}

bool JsonFields::is_unset(const char* field) const {
  const auto* value = find(field);
  if (value == nullptr) return true;
  if (value->is_boolean()) return !value->get<bool>();
  return value->is_structured() && value->empty();
}

std::vector<std::int64_t> JsonFields::integers(const char* field) const {
  if (kind(field) == JsonKind::missing) return {};
  if (kind(field) != JsonKind::list) return {*integer(field)};
  std::vector<std::int64_t> numbers;
  for (const auto& item : *find(field)) {
    if (!item.is_number_integer()) fail(field, "must be an integer, a list of integers, or null");
    numbers.push_back(item.get<std::int64_t>());
  }
  return numbers;
}

std::vector<std::string> JsonFields::strings(const char* field) const {
  std::vector<std::string> texts;
  const auto* value = find(field);
  if (value == nullptr) return texts;
  if (!value->is_array()) fail(field, fmt::format("must be a list, not {}", type_of(*value)));
  for (const auto& item : *value) {
    if (!item.is_string()) fail(field, "must be a list of strings");
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

struct JsonDocument::Impl {
  Impl(std::string_view text, std::string document)
      : where(std::move(document)), json(parse_json(text, where)), fields(json, where) {}

  std::string where;
  nlohmann::json json;
  JsonFields fields;
};

JsonDocument::JsonDocument(std::string_view text, std::string where)
    : impl_(std::make_unique<Impl>(text, std::move(where))) {}
JsonDocument::~JsonDocument() = default;

const JsonFields& JsonDocument::fields() const { return impl_->fields; }

}  // namespace caldera::detail
