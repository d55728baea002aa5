// Fields: the fields of a request's JSON object, by type and within bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lm/serve/protocol/api_error.h"

namespace caldera::serve {

/// Parses a request's body: one JSON object. Throws ApiError 400 for anything else, for text that is not
/// UTF-8, and for one that nests deeper than `max_depth`.
Json parse_body(const std::string& body, int max_depth);

/// Reads fields of one object. A field that is absent or null is missing. Throws ApiError 400 that names the
/// field for a value of the wrong type or out of its bounds. The object must outlive it.
class Fields {
 public:
  /// `path` goes before the names of fields in messages: "messages[0].".
  explicit Fields(const Json& object, std::string path = {}) : object_(object), path_(std::move(path)) {}

  const Json* find(const char* name) const;
  bool has(const char* name) const { return find(name) != nullptr; }
  std::optional<std::string> text(const char* name) const;
  std::optional<bool> flag(const char* name) const;
  std::optional<std::int64_t> integer(const char* name, std::int64_t low, std::int64_t high) const;
  std::optional<double> number(const char* name, double low, double high) const;
  /// An object; throws for anything else.
  const Json* object(const char* name) const;
  /// A list of at most `most`.
  const Json* list(const char* name, std::size_t most) const;
  /// A text, or a list of texts, each of at most `bytes`; none where it is missing.
  std::vector<std::string> texts(const char* name, std::size_t most, std::size_t bytes) const;

  /// Throws ApiError 400 for a field that `known` does not list, unless it is null.
  void refuse_others(const std::vector<std::string_view>& known) const;
  /// Throws ApiError 400: "field 'x' <problem>".
  [[noreturn]] void fail(const std::string& name, const std::string& problem) const;
  std::string path(const std::string& name) const { return path_ + name; }

 private:
  const Json& object_;
  std::string path_;
};

}  // namespace caldera::serve
