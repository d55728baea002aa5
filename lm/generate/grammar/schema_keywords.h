// The keywords of JSON Schema that are known, and what the compiler of schemas asks of a schema.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace caldera::grammar {

/// Keys in the order in which they are written, which is that of the texts.
using Schema = nlohmann::ordered_json;

/// Tells of a schema that is not supported: "grammar: <problem> (at <where>)".
class SchemaRefusal : public ValueError {
 public:
  SchemaRefusal(const std::string& message, std::string keyword)
      : ValueError(message), keyword_(std::move(keyword)) {}
  /// The keyword at fault; empty where it is not one alone.
  const std::string& keyword() const { return keyword_; }

 private:
  std::string keyword_;
};
[[noreturn]] void refuse_schema(const std::string& problem, const std::string& where,
                                const std::string& keyword = {});

/// Throws ValueError for a keyword that is not supported, or has a value of the wrong type.
void check_keywords(const Schema& schema, const std::string& where);
/// Whether the keyword says nothing about which values are valid.
bool is_annotation(std::string_view keyword);

/// Finds what a "$ref" within the document refers to. Throws ValueError where there is no such thing.
const Schema& resolve_reference(const Schema& root, const std::string& reference, const std::string& where);

/// A whole number that a keyword has, at least `least`.
std::optional<std::int64_t> whole_number(const Schema& schema, const char* keyword, std::int64_t least,
                                         const std::string& where);

/// Types of JSON values as bits.
enum TypeBits : unsigned {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kNumber = 8,  ///< a number that need not be whole; always together with kInteger
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAnyType = 127,
};

/// The types that "type" allows, and "nullable"; all where there is none.
unsigned declared_types(const Schema& schema, const std::string& where);
Schema type_list(unsigned bits);
/// The types that the other keywords speak of.
unsigned spoken_types(const Schema& schema);
unsigned type_of(const Schema& value);

/// A regular expression for a value of "format". Throws ValueError for one that is not known.
std::string_view format_pattern(const std::string& format, const std::string& where);

/// A schema that is valid for what both are valid for. `root` is the document that references refer to.
/// Throws ValueError where two keywords cannot be made one.
Schema merge_schemas(const Schema& root, const Schema& a, const Schema& b, const std::string& where,
                     int depth = 0);

/// The values of "const" or "enum"; null where there is neither.
Schema constants(const Schema& schema);
/// A schema without "$ref" at its top: what that refers to and what stands beside it.
Schema without_reference(const Schema& root, const Schema& schema, const std::string& where, int depth);

/// Whether it has "if", "dependentRequired", or a "not" of more than constants.
bool has_conditions(const Schema& schema);
/// Writes those as alternatives ("anyOf"), some of which may be no values at all. Throws ValueError where
/// what is negated has keywords whose opposites are not supported.
Schema without_conditions(const Schema& root, const Schema& schema, const std::string& where, int depth);
/// A schema that is valid for what another is not, but for values that are hard to say.
Schema negated(const Schema& root, const Schema& schema, const std::string& where, int depth);

/// Takes away what is not supported, as far as that can be seen of each keyword alone.
Schema relaxed(const Schema& schema);
/// Takes away a keyword that was refused, or what it may have come from; in the end all but the type.
Schema without_refused(Schema schema, const std::string& keyword);

/// Whether no text that is written for `written` is valid for `other`, by what they say of types, of
/// constants, and of keys and their constants. False where that is not known.
bool never_both(const Schema& root, const Schema& written, const Schema& other, const std::string& where);

}  // namespace caldera::grammar
