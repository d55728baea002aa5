#include "lm/serve/protocol/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lm/base/json_integers.h"
#include "lm/base/json_nesting.h"

namespace caldera::serve {

Json parse_body(const std::string& body, int max_depth) {
  if (detail::nests_deeper(body, max_depth))
    throw bad_request(fmt::format("the body nests deeper than {} levels", max_depth));
  // The lexer takes NUL for the end of the text; whatever follows would go unread.
  if (body.find('\0') != body.npos) throw bad_request("the body is not JSON: it holds a NUL byte");
  Json document;
  try {
    document = detail::parse_whole_integers(body);
  } catch (const Json::exception& error) {
    // Without the library's name for it.
    const std::string_view what = error.what();
    const std::size_t name_end = what.find("] ");
    throw bad_request(
        fmt::format("the body is not JSON: {}", what.substr(name_end == what.npos ? 0 : name_end + 2)));
  }
  if (!document.is_object()) throw bad_request("the body must be a JSON object");
  return document;
}

const Json* Fields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> Fields::text(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(name, "must be a string");
  return value->get<std::string>();
}

std::optional<bool> Fields::flag(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) fail(name, "must be true or false");
  return value->get<bool>();
}

std::optional<std::int64_t> Fields::integer(const char* name, std::int64_t low, std::int64_t high) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  // Some clients write whole numbers as 1.0.
  const bool whole = value->is_number_float() && std::abs(value->get<double>()) < 1e15 &&
                     value->get<double>() == std::floor(value->get<double>());
  if (!value->is_number_integer() && !whole) fail(name, "must be a whole number");
  const bool too_large =
      value->is_number_unsigned() &&
      value->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (too_large || value->get<std::int64_t>() < low || value->get<std::int64_t>() > high)
    fail(name, fmt::format("must lie in {} to {}", low, high));
  return value->get<std::int64_t>();
}

std::optional<double> Fields::number(const char* name, double low, double high) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail(name, "must be a number");
  const auto result = value->get<double>();
  if (!(result >= low && result <= high)) fail(name, fmt::format("must lie in {:g} to {:g}", low, high));
  return result;
}

const Json* Fields::object(const char* name) const {
  const Json* value = find(name);
  if (value != nullptr && !value->is_object()) fail(name, "must be an object");
  return value;
}

const Json* Fields::list(const char* name, std::size_t most) const {
  const Json* value = find(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) fail(name, "must be a list");
  if (value->size() > most) fail(name, fmt::format("has {} entries, at most {}", value->size(), most));
  return value;
}

std::vector<std::string> Fields::texts(const char* name, std::size_t most, std::size_t bytes) const {
  const Json* value = find(name);
  if (value == nullptr) return {};
  std::vector<std::string> result;
  const auto add = [&](const Json& entry) {
    if (!entry.is_string()) fail(name, "must be a string or a list of strings");
    result.push_back(entry.get<std::string>());
    if (result.back().size() > bytes) fail(name, fmt::format("has a string of more than {} bytes", bytes));
  };
  if (value->is_array()) {
    for (const Json& entry : *list(name, most)) add(entry);
  } else {
    add(*value);
  }
  return result;
}

void Fields::refuse_others(const std::vector<std::string_view>& known) const {
  for (const auto& [name, value] : object_.items()) {
    if (value.is_null() || std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw bad_request(fmt::format("unrecognized request argument: {}", path_ + name.substr(0, 60)),
                      path_ + name.substr(0, 60), "unknown_parameter");
  }
}

void Fields::fail(const std::string& name, const std::string& problem) const {
  throw bad_request(fmt::format("'{}' {}", path_ + name, problem), path_ + name);
}

}  // namespace caldera::serve
