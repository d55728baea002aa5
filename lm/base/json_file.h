// Parses JSON from untrusted files, with a limit on nesting, and reads its fields by type, with errors that
// name the file and the field. Private to lm/ and training/: public headers do not include it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caldera::detail {

/// Parses one JSON document. `where` (a path, or path:line) begins every error message. Throws FileError for
/// text that is not JSON or nests deeper than any file of ours does.
nlohmann::json parse_json(std::string_view text, const std::string& where);
/// Parses JSON, with the members of objects in the order they are written in.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where);

/// Reads and parses `path`; the root must be an object. Throws FileError.
nlohmann::json read_json_object(const std::filesystem::path& path);

/// `text` for an error message: one line, control characters escaped, at most about 120 characters.
std::string printable(std::string_view text);

enum class JsonKind : std::uint8_t { missing, boolean, number, string, list, object };

/// Typed, checked access to the fields of one JSON object. A field that is absent or null is "missing".
/// Every getter throws FileError "where: field 'x' ..." on a wrong type; the `require` forms also when
/// missing.
class JsonFields {
 public:
  /// Keeps references to both arguments.
  JsonFields(const nlohmann::json& object, const std::string& where);

  const std::string& where() const { return where_; }
  bool has(const char* field) const { return find(field) != nullptr; }
  /// Whether the field is there, be it null.
  bool names_field(const char* field) const;
  JsonKind kind(const char* field) const;
  /// The name of the first field that holds an object, if any does.
  std::optional<std::string> first_object() const;
  /// The names of all fields, in the order of their bytes.
  std::vector<std::string> names() const;
  /// Whether a feature is off: missing, false, or an empty list or object.
  bool is_unset(const char* field) const;
  /// The value, or nullptr where it is missing or null.
  const nlohmann::json* find(const char* field) const;

  std::optional<std::int64_t> integer(const char* field) const;
  std::int64_t require_integer(const char* field) const;
  std::optional<double> number(const char* field) const;
  std::optional<bool> boolean(const char* field) const;
  std::optional<std::string> string(const char* field) const;
  std::string require_string(const char* field) const;
  const nlohmann::json& require_array(const char* field) const;
  /// The strings of a list; none where it is missing.
  std::vector<std::string> strings(const char* field) const;
  /// The integers of a list, or the one that stands there alone; none where it is missing.
  std::vector<std::int64_t> integers(const char* field) const;
  /// The fields of an object. Keeps a reference to `where`.
  JsonFields object(const char* field, const std::string& where) const { return {*find(field), where}; }

  /// Throws FileError "where: field 'x' <problem>".
  [[noreturn]] void fail(const char* field, const std::string& problem) const;

 private:
  [[noreturn]] void fail_absent(const char* field) const;

  const nlohmann::json& object_;
  const std::string& where_;
};

/// A JSON object from a text, for readers that need no more of it than its fields.
class JsonDocument {
 public:
  /// Throws FileError, beginning with `where`, for text that is not a JSON object.
  JsonDocument(std::string_view text, std::string where);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  const JsonFields& fields() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caldera::detail
